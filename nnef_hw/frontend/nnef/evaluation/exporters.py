"""Documents of exporters that the specification forbids, read by lenient rules with a warning."""

from __future__ import annotations

import logging

import numpy as np

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.syntax import (
    ArrayType,
    Declaration,
    Invocation,
    PrimitiveType,
    TensorType,
    TupleType,
    Type,
)
from nnef_hw.frontend.nnef.language.types import INTEGER, SCALAR, fits
from nnef_hw.ir import Node, Tensor, Trait
from nnef_hw.reference.real.registry import Evaluation, evaluate

__all__ = [
    "LENIENTLY",
    "batch_normalization",
    "convert_arguments",
    "converts",
    "is_constant_number",
    "max_pool",
    "max_pool_without_border",
    "or_leniently",
    "warn_of",
    "warn_of_invocation",
]

_log = logging.getLogger(__name__)

LENIENTLY = "read it with --lenient"
"""A remedy."""

_SAMPLES = np.linspace(-16, 16, 1025)


def is_constant_number(kind: Type, wanted: Type) -> bool:
    """Whether a tensor's type is that of the number that an attribute should be."""
    return (
        isinstance(kind, TensorType)
        and isinstance(wanted, PrimitiveType)
        and kind.item == wanted.name
    )


def converts(kind: Type, wanted: Type) -> bool:
    """Whether :func:`convert_arguments` makes a value of one type one of another.

    It makes scalars of integers, a number of a constant tensor, tensors of arrays, tuples of
    arrays, and an array of one item.
    """
    if fits(kind, wanted) or is_constant_number(kind, wanted):
        return True
    if isinstance(wanted, ArrayType):
        return converts(kind.item if isinstance(kind, ArrayType) else kind, wanted.item)
    if isinstance(wanted, TupleType):
        return isinstance(kind, ArrayType) and all(converts(kind.item, i) for i in wanted.items)
    if isinstance(wanted, TensorType):
        if isinstance(kind, ArrayType):
            return converts(kind.item, wanted)
        return wanted == TensorType("scalar") and kind in {INTEGER, TensorType("integer")}
    return wanted == SCALAR and kind == INTEGER


def or_leniently(error: ModelError) -> ModelError:
    """Return an error whose remedy names ``--lenient``, too."""
    remedy = LENIENTLY if error.remedy is None else f"{error.remedy}, or {LENIENTLY}"
    return ModelError(error.reason, remedy=remedy, location=error.location)


def warn_of(error: ModelError) -> None:
    """Log an error as a warning: what it is about is read nevertheless."""
    remedy = f"; {error.remedy}" if error.remedy else ""
    _log.warning("%s: %s%s", error.location, error.reason, remedy)


def warn_of_invocation(invocation: Invocation, declaration: Declaration, title: str) -> None:
    """Log what of an invocation the specification forbids: the operator, or arguments.

    Parameters
    ----------
    title
        What messages call the invocation, such as ``conv 'y'``.
    """
    parameters = declaration.parameters
    names = {item.name for item in parameters}
    if load_library("extended").get(declaration.name) is declaration:
        what = "NNEF has no such operator; that of docs/operators.md is taken"
        _warn(invocation.location, f"{title}: {what}")
    for index, argument in enumerate(invocation.arguments):
        if argument.name is not None:
            if argument.name not in names:
                _warn(
                    argument.location,
                    f"{title}: there is no argument {argument.name!r}; it is ignored",
                )
        elif index >= len(parameters):
            _warn(
                argument.location,
                f"{title}: the operator has no argument number {index + 1}; it is ignored",
            )
        elif not parameters[index].is_tensor:
            name = parameters[index].name
            _warn(
                argument.location,
                f"{title}: the attribute {name!r} must be named; write {name} = ...",
            )


def convert_arguments(call: Invoked) -> None:
    """Convert the arguments of an invocation to the types of their parameters.

    Raises
    ------
    ModelError
        If a tensor that stands for a number is computed, or an argument cannot be converted.
    """
    _read_numbers(call)
    call.coerce()
    for parameter in call.declaration.parameters:
        if parameter.type == TensorType("scalar"):
            _make_scalars(call, parameter.name)


def _read_numbers(call: Invoked) -> None:
    """Replace constant tensors of one element that stand for attributes by their numbers."""
    for parameter in call.declaration.parameters:
        value = call.values[parameter.name]
        if not isinstance(parameter.type, PrimitiveType) or not isinstance(value, Tensor):
            continue
        where = call.places.get(parameter.name, call.location)
        if value.data is None or value.data.size != 1:
            what = "computed" if value.data is None else f"of shape {list(value.shape)}"
            raise call.error(
                f"{parameter.name!r} must be {parameter.type}, not the tensor {value.name!r}, "
                f"which is {what}",
                "write a number",
                at=parameter.name,
            )
        call.values[parameter.name] = number = value.data.reshape(-1)[0].item()
        _warn(where, f"{parameter.name!r} is a tensor; write {parameter.name} = {number:g}")


def _make_scalars(call: Invoked, name: str) -> None:
    """Let an argument be a tensor of scalars where it is an array, or a tensor of integers."""
    value = call.values[name]
    if isinstance(value, list):
        value = call.values[name] = call.tensor(name)
    if not isinstance(value, Tensor) or value.dtype != "integer":
        return
    builder, wanted = call.evaluator.builder, f"{call.name}_{value.name}_scalar"
    if value.data is not None:
        data = value.data.astype(np.float32)
        call.values[name] = builder.constant(wanted, data, location=call.location)
    else:
        (call.values[name],) = builder.node("cast", [value], {}, wanted, location=call.location)


def batch_normalization(call: Invoked) -> object:
    """Normalize; parameters [1, ..., 1, C] of torch_to_nnef, behind the channels, are [1, C].

    Only with all of them along the last axis, as many elements as there are channels, and no value
    that depends on an input.
    """
    shape, builder = call.tensor("input").shape, call.evaluator.builder
    names = ("mean", "variance", "offset", "scale")
    found = {name: call.values[name] for name in names}
    if len(shape) > 2 and all(_is_behind(value, shape, builder) for value in found.values()):
        for name, value in found.items():
            assert isinstance(value, Tensor)
            call.values[name] = _along_channels(call, value)
        _warn(
            call.location,
            f"the parameters of batch_normalization {call.name!r} lie along the last axis; "
            "they are taken for those of the channels, [1, C]",
        )
    return call.node()


def _is_behind(value: object, shape: tuple[int, ...], builder: Builder) -> bool:
    expected = (*[1] * (len(shape) - 1), shape[1])
    return isinstance(value, Tensor) and value.shape == expected and _is_independent(value, builder)


def _is_independent(tensor: Tensor, builder: Builder) -> bool:
    """Whether a tensor does not depend on any input of the graph."""
    wanted = {tensor.name}
    for node in reversed(builder.nodes):
        wanted = {name for name in wanted if builder.tensors[name].data is None}
        if wanted.intersection(builder.inputs) or not wanted:
            break
        if wanted.intersection(node.outputs):
            wanted = wanted.difference(node.outputs).union(node.inputs)
    return all(builder.tensors[name].data is not None for name in wanted)


def _along_channels(call: Invoked, value: Tensor) -> Tensor:
    builder = call.evaluator.builder
    if value.data is not None:
        return builder.constant(value.name, value.data.reshape(1, -1), location=call.location)
    attrs = {"shape": [1, -1], "axis_start": 0, "axis_count": -1}
    name = f"{value.name}_channels"
    (result,) = builder.node("reshape", [value], attrs, name, location=call.location)
    return result


def max_pool(call: Invoked) -> object:
    """Take the largest of each window; a warning tells that zeros of the border are in it."""
    result = call.node()
    if _has_zeros(call):
        _warn(
            call.location,
            f"max_pool {call.name!r}: border = 'constant' takes zeros for what is outside, as the "
            "specification says; write border = 'ignore' if they must not count, or read what "
            "torch_to_nnef writes for Khronos with --lenient",
        )
    return result


def max_pool_without_border(call: Invoked) -> object:
    """Take the largest of each window; torch_to_nnef's border 'constant' stands for 'ignore'."""
    result = call.node()
    if _has_zeros(call):
        nodes = call.evaluator.builder.nodes
        nodes[-1] = nodes[-1].with_attrs(border="ignore")
        _warn(
            call.location,
            f"max_pool {call.name!r}: border = 'constant' is taken for 'ignore'; write "
            "border = 'ignore'",
        )
    return result


def _has_zeros(call: Invoked) -> bool:
    """Whether zeros of the border can be the largest of a window of the pool added last."""
    builder = call.evaluator.builder
    pool = builder.nodes[-1]
    if pool.attrs["border"] != "constant" or not any(map(any, pool.attrs["padding"])):
        return False
    for node in reversed(builder.nodes[:-1]):
        if pool.inputs[0] in node.outputs:
            return not (node.has(Trait.TABLE) and _is_never_negative(node))
    return True


def _is_never_negative(node: Node) -> bool:
    operands = (_SAMPLES, *[np.ones(1)] * (len(node.inputs) - 1))
    (values,) = evaluate(Evaluation(node, operands, (_SAMPLES.shape,)))
    return bool(values.min() >= 0)


def _warn(where: Location, text: str) -> None:
    _log.warning("%s: %s", where, text)
