"""Arguments as tract takes them: numbers, arrays and tensors stand for one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.ir import Tensor

__all__ = [
    "as_standard",
    "cast",
    "extents",
    "indices",
    "is_present",
    "number",
    "numbers",
    "promote",
    "tensors",
]

_NUMPY = {"scalar": np.float32, "integer": np.int64, "logical": np.bool_}
_PRIMITIVES = {bool: "logical", int: "integer", float: "scalar"}
_ORDER = ("logical", "integer", "scalar")


def is_present(call: Invoked, parameter: str) -> bool:
    """Whether there is an optional tensor: its default is ``false``."""
    return call.values[parameter] is not False


def numbers(call: Invoked, parameter: str) -> Array:
    """Return the value of an argument that must be a constant.

    Raises
    ------
    ModelError
        If it depends on an input.
    """
    value = call.values[parameter]
    data = value.data if isinstance(value, Tensor) else call.tensor(parameter).data
    if data is None:
        raise call.error(
            f"{parameter!r} depends on an input of the graph",
            "it must be known when the graph is built",
            at=parameter,
        )
    return data


def number(call: Invoked, parameter: str) -> AttributeValue:
    """Return an argument that must be one constant number.

    Raises
    ------
    ModelError
        If it is not one constant number.
    """
    data = numbers(call, parameter)
    if data.size != 1:
        raise call.error(f"{parameter!r} must be one number, not {data.size}", at=parameter)
    return data.item()


def extents(call: Invoked, parameter: str) -> list[int]:
    """Return an array of integers some of which may be tensors of one or several integers.

    Raises
    ------
    ModelError
        If one depends on an input or is not an integer.
    """
    result: list[int] = []
    for value in _flat(call, parameter, call.values[parameter]):
        if not isinstance(value, int | float) or not float(value).is_integer():
            raise call.error(
                f"{parameter!r} has the item {value}, which is not an integer", at=parameter
            )
        result.append(int(value))
    return result


def _flat(call: Invoked, parameter: str, value: object) -> Iterator[object]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(call, parameter, item)
    elif isinstance(value, Tensor):
        if value.data is None:
            raise call.error(
                f"{parameter!r} depends on an input of the graph, by {value.name!r}",
                "dimensions must be known when the graph is built; give symbols a value: --dim S=1",
                at=parameter,
            )
        yield from np.ravel(value.data).tolist()
    else:
        yield value


def tensors(call: Invoked, parameter: str) -> list[Tensor]:
    """Return an array of tensors."""
    where = call.places.get(parameter, call.location)
    name = f"{call.name}_{parameter}"
    return [call.evaluator.tensor(item, name, where) for item in call.values[parameter]]


def promote(call: Invoked, *parameters: str) -> str:
    """Give arguments one data-type, the widest of theirs: logical < integer < scalar; return it.

    A number becomes a constant of that type, a tensor is cast.
    """
    found = {parameter: _dtype(call, parameter) for parameter in parameters}
    dtype = max(found.values(), key=_ORDER.index)
    for parameter in parameters:
        value = call.values[parameter]
        if not isinstance(value, Tensor):
            call.values[parameter] = {"scalar": float, "integer": int, "logical": bool}[dtype](
                value
            )
        elif value.dtype != dtype:
            call.values[parameter] = cast(call, value, dtype)
    return dtype


def _dtype(call: Invoked, parameter: str) -> str:
    value = call.values[parameter]
    if type(value) in _PRIMITIVES:
        return _PRIMITIVES[type(value)]
    tensor = call.values[parameter] = call.tensor(parameter)
    return tensor.dtype


def cast(call: Invoked, tensor: Tensor, dtype: str, name: str | None = None) -> Tensor:
    """Return a tensor with another data-type; the data of a constant are converted."""
    if tensor.dtype == dtype:
        return tensor
    builder, wanted = call.evaluator.builder, name or f"{call.name}_{tensor.name}_{dtype}"
    if tensor.data is not None:
        return builder.constant(wanted, tensor.data.astype(_NUMPY[dtype]), location=call.location)
    (result,) = builder.node(
        "cast",
        [tensor],
        {},
        wanted,
        (dtype,),
        location=call.location,
        origin=call.scope.location,
    )
    return result


def indices(call: Invoked, parameter: str = "indices") -> Tensor:
    """Return an argument as integers."""
    return cast(call, call.tensor(parameter), "integer")


def as_standard(call: Invoked, op: str | None = None, **values: object) -> object:
    """Make the node of an operator of the standard from these values in place of the given."""
    declaration = load_library("standard")[op or call.op]
    return replace(call, declaration=declaration, values={**call.values, **values}).node()
