"""Operators that compute nothing: external, variable, constant and update."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nnef_hw.frontend.building.model_file import MAX_VOLUME
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.variable_data import literal_data
from nnef_hw.frontend.shapes import Call
from nnef_hw.ir import State, Tensor

__all__ = ["SOURCES", "positive_shape"]


def positive_shape(call: Invoked) -> tuple[int, ...]:
    """Return the ``shape`` argument.

    Raises
    ------
    ModelError
        If an extent is not positive, or the tensor is larger than any device.
    """
    shape = tuple(call.values["shape"])
    if any(extent < 1 for extent in shape):
        raise call.error(
            f"shape {list(shape)} must be positive", "every extent is at least 1", at="shape"
        )
    if math.prod(shape) > MAX_VOLUME:
        raise call.error(
            f"shape {list(shape)} has more than {MAX_VOLUME} elements",
            "no supported device holds it",
            at="shape",
        )
    return shape


def _dtype(call: Invoked) -> str:
    dtype = call.dtype or "scalar"
    if dtype == "string":
        raise call.error(
            "there is no tensor<string> in a graph", "write scalar, integer or logical"
        )
    return dtype


def _source(call: Invoked, **fields: Any) -> Tensor:
    name = call.evaluator.claim(call.name)
    location = call.scope.location or call.location
    return Tensor(name, positive_shape(call), _dtype(call), location=location, **fields)


def external(call: Invoked) -> Tensor:
    """Make a graph input."""
    return call.evaluator.builder.input(_source(call))


def variable(call: Invoked) -> Tensor:
    """Read a variable; labels are the same whether in upper or lower case."""
    evaluator = call.evaluator
    tensor = _source(call)
    label: str = call.values["label"]
    earlier = evaluator.labels.setdefault(label.casefold(), (label, tensor))
    label, other = earlier
    for what, mine, its in (
        ("shape", list(tensor.shape), list(other.shape)),
        ("data-type", tensor.dtype, other.dtype),
    ):
        if mine != its:
            raise call.error(
                f"the label {call.values['label']!r} is that of {other.name!r}, which has {what} "
                f"{its}, not {mine}",
                "variables with one label share their data; labels do not differ by case",
                at="label",
            )
    attrs = {"shape": list(tensor.shape), "label": label}
    request = Call("variable", tensor.name, (), attrs, (tensor.dtype,), call.places, call.location)
    tensor = evaluator.data.read(request, tensor)
    evaluator.variables[tensor.name] = tensor
    return evaluator.builder.add(tensor)


def constant(call: Invoked) -> Tensor:
    """Make a constant from numbers in the document."""
    tensor = _source(call)
    values, shape = call.values["value"], tensor.shape
    volume = math.prod(shape)
    if len(values) not in {1, volume}:
        raise call.error(
            f"{len(values)} values are given for the {volume} elements of shape {list(shape)}",
            "give one, or one per element",
            at="value",
        )
    data = literal_data(values, tensor.dtype, call.places.get("value", call.location))
    data = np.broadcast_to(data, volume).reshape(shape)
    return call.evaluator.builder.add(replace(tensor, data=data))


def update(call: Invoked) -> Tensor:
    """Give a variable the value it has in the next inference."""
    evaluator = call.evaluator
    states = evaluator.builder.states
    target = call.values["variable"]
    if not isinstance(target, Tensor) or target.name not in evaluator.variables:
        raise call.error(
            "only a variable can be updated", "its first argument is the result of variable(...)"
        )
    if target.name in states:
        raise call.error(
            f"the variable {target.name!r} is updated twice",
            "a variable takes one value for the next inference",
        )
    value = call.tensor("value")
    if value.shape != target.shape:
        raise call.error(
            f"the value has shape {list(value.shape)}, but the variable {target.name!r} "
            f"{list(target.shape)}",
            "both must be equal",
            at="value",
        )
    assert target.data is not None
    label = (target.label or "").casefold()
    sharing = [
        other for other in evaluator.variables.values() if (other.label or "").casefold() == label
    ]
    for other in sharing:
        states[other.name] = State(target.data, value.name, target.label)
    return value


SOURCES: Mapping[str, Callable[[Invoked], Any]] = {
    "external": external,
    "variable": variable,
    "constant": constant,
    "update": update,
}
"""Lowerings of the standard's operators that do not become nodes."""
