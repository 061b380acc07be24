"""Quantized values: integers in ONNX, in the Graph the real numbers that they stand for.

An operator that reads or writes codes, and one that only moves them, works on the real numbers;
for all others the codes are computed. A tensor's ``quant`` says how its real numbers are rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.frontend.builder import Builder
from nnef_hw.frontend.onnx.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.declarations import MICROSOFT
from nnef_hw.frontend.onnx.model import FLOAT32, Constant, ElementType
from nnef_hw.frontend.onnx.registry import Lowering
from nnef_hw.ir import Quantization
from nnef_hw.reference.float_quantize import decode

__all__ = [
    "Coding",
    "Quantized",
    "codes",
    "dequantized",
    "lower_node",
    "quantized",
    "read_coding",
]

_KNOWING = {"DequantizeLinear", "QuantizeLinear", "QLinearConv", "QLinearMatMul"}
"""Standard operators that take quantized values as they are."""

_MOVING = {
    "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "GatherElements",
    "GatherND", "Identity", "MaxPool", "ReduceMax", "ReduceMin", "Reshape", "Slice",
    "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
}  # fmt: skip
"""Operators whose results are codes of their arguments."""

_COMPARING = {"ArgMax", "ArgMin"}
"""Operators whose results are the same for codes and for the numbers they stand for."""


@dataclass(frozen=True, slots=True, eq=False)
class Coding:
    """How integers stand for real numbers: ``scale * (code - zero_point)``.

    Parameters
    ----------
    scale, zero_point
        float64 and int64, of one shape that broadcasts from the tensor's first dimension.
    element
        ONNX's type of the codes.
    limits
        Least and greatest code.
    """

    scale: NDArray[np.float64]
    zero_point: NDArray[np.int64]
    element: ElementType
    limits: tuple[int, int]

    @property
    def quantization(self) -> Quantization | None:
        """The same as a line of ``graph.quant``; None if no number of bits has these limits."""
        lo, hi = self.limits
        bits = max((hi - lo).bit_length(), 1)
        signed = lo < 0
        ranges = {
            (0, (1 << bits) - 1): False,
            (-(1 << (bits - 1)), (1 << (bits - 1)) - 1): False,
            (1 - (1 << (bits - 1)), (1 << (bits - 1)) - 1): True,
        }
        if (lo, hi) not in ranges:
            return None
        return Quantization(
            "zero_point_linear_quantize",
            {
                "zero_point": _plain(self.zero_point),
                "scale": _plain(self.scale),
                "bits": bits,
                "signed": signed,
                "symmetric": ranges[lo, hi],
            },
        )

    def same_steps(self, other: Coding) -> bool:
        """Whether both map a code to the same number."""
        return np.array_equal(self.scale, other.scale) and np.array_equal(
            self.zero_point, other.zero_point
        )

    def real(self, code: int) -> float:
        """Return the number that a code stands for; there is one scale."""
        return float((code - self.zero_point.item()) * self.scale.item())


@dataclass(frozen=True, slots=True, eq=False)
class Quantized(Value):
    """Integers, of which ``tensor`` holds the real numbers; ``type`` is that of the integers.

    Parameters
    ----------
    coding
        What the integers stand for.
    exact
        The real numbers before they were rounded, if they are a tensor of their own.
    """

    coding: Coding
    exact: Value | None = None

    @property
    def data(self) -> None:
        """Not known: constant codes are no quantized value."""

    @property
    def real(self) -> Value:
        """The real numbers."""
        return Value(self.tensor, FLOAT32)


@dataclass(frozen=True, slots=True, eq=False)
class _Narrow(Value):
    """Constant integers behind a Clip: fewer bits than their type has."""

    limits: tuple[int, int]


def lower_node(lowering: Lowering, call: OnnxCall) -> Value | Sequence[Value | None]:
    """Lower a node some of whose arguments may be quantized values."""
    op, values = call.node.op, call.arguments
    found = [value for value in values if isinstance(value, Quantized)]
    if op == "Clip" and (clipped := _clipped(call)) is not None:
        return clipped
    knowing = call.node.domain == MICROSOFT or op in _KNOWING
    if not found or knowing:
        return lowering(call)
    if _moves(call) and _are_alike(op, values, found):
        real = [value.real if isinstance(value, Quantized) else value for value in values]
        results = lowering(call.on(*real))
        listed = [results] if isinstance(results, Value) else results
        if op in _COMPARING:
            return listed
        like = found[0]
        return [
            Quantized(value.tensor, like.type, like.coding)
            if value is not None and value.type == FLOAT32
            else value
            for value in listed
        ]
    if op == "Pad" and values[0] is found[0] and found[0].coding.scale.size == 1:
        return _padded(lowering, call, found[0])
    return lowering(call.on(*(value and codes(call.builder, value) for value in values)))


def _moves(call: OnnxCall) -> bool:
    """Whether an operator does the same to codes and to the numbers they stand for."""
    op = call.node.op
    if op in {"Resize", "Upsample"}:
        cropped = call.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
        return call.attr("mode") == "nearest" and not cropped
    return op in _MOVING | _COMPARING


def _are_alike(op: str, values: Sequence[Value | None], found: Sequence[Quantized]) -> bool:
    """Whether the tensors that an operator moves are quantized in one way, with one scale."""
    first = found[0]
    moved = values if op == "Concat" else values[:1]
    return first.coding.scale.size == 1 and all(
        isinstance(value, Quantized) and value.coding.same_steps(first.coding) for value in moved
    )


def _padded(lowering: Lowering, call: OnnxCall, x: Quantized) -> Value:
    """Pad with the number that the given code stands for."""
    code = call.optional_number(2, "the constant value") or 0
    value = call.constant(x.coding.real(code), FLOAT32)
    result = lowering(call.on(x.real, call.input(1), value, call.input(3)))
    assert isinstance(result, Value)
    return Quantized(result.tensor, x.type, x.coding)


def _clipped(call: OnnxCall) -> Value | None:
    """Return codes of fewer bits than their type has; None if they are no codes or not limited."""
    x, *limiting = call.arguments
    if x is None or x.type.dtype != "integer" or call.since < 11:
        return None
    if any(value and (value.data is None or value.type != x.type) for value in limiting):
        return None
    least, most = x.type.limits
    lo = call.optional_number(1, "the minimum")
    hi = call.optional_number(2, "the maximum")
    top = most if hi is None else min(hi, most)
    limits = min(top, least if lo is None else max(lo, least)), top
    if x.data is not None:
        clipped = call.constant(np.clip(x.data, *limits), x.type, like=x)
        return _Narrow(clipped.tensor, x.type, limits)
    if not isinstance(x, Quantized) or x.coding.scale.size != 1:
        return None
    coding = replace(x.coding, limits=limits)
    if coding.quantization is not None:
        return quantized(call, x.real if x.exact is None else x.exact, coding)
    lowest, highest = (coding.real(code) for code in limits)
    clamped = call.emit("clamp", x.real, lowest, highest)
    return Quantized(clamped.tensor, x.type, x.coding)


def read_coding(
    call: OnnxCall,
    shape: Sequence[int],
    element: ElementType,
    scale: int,
    zero_point: int | None,
    axis: int | None = None,
    *,
    block: int = 0,
    whole: bool = False,
) -> Coding:
    """Return what a scale and a zero point among a node's arguments say.

    Parameters
    ----------
    shape
        Of the tensor they belong to.
    element
        Of its codes.
    scale, zero_point
        Indices of the arguments; no zero point, or none given, is 0.
    axis
        Which dimension a vector belongs to; any other form is an error if it is None.
    block
        How many neighbours along the axis share a scale; 0: all that a vector's item belongs to.
    whole
        Whether scales may have the tensor's rank, with extent 1 where they are shared.

    Raises
    ------
    UnsupportedError
        If they are computed when the network runs.
    ModelError
        If they do not fit the tensor or each other.
    """
    steps = _constant(call, scale, "scale")
    zeros = None if zero_point is None else _constant(call, zero_point, "zero point")
    if steps is None:
        raise call.error(f"input {scale}, the scale, is missing")
    scales = steps.data.astype(np.float64)
    if not scales.size:
        raise call.error("there is no scale")
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        wrong = scales[~(np.isfinite(scales) & (scales > 0))].flat[0]
        raise call.error(f"a scale is {wrong:g}", "scales must be positive and finite")
    if zeros is None:
        zeros = Constant(np.zeros(scales.shape, np.int64), element)
    if zeros.type != element:
        raise call.error(f"the zero point is {zeros.type.name}, but the codes are {element.name}")
    if zeros.data.size != scales.size:
        raise call.error(f"there are {scales.size} scales, but {zeros.data.size} zero points")
    fits = len(scales.shape) == len(shape) > 1 and all(
        s in {1, n} for s, n in zip(scales.shape, shape, strict=True)
    )
    zero_points = zeros.data.reshape(scales.shape)
    if not (whole and fits):
        place = _placing(call, scales.shape, shape, axis, block)
        scales, zero_points = place(scales), place(zero_points)
    return Coding(scales, zero_points, element, element.limits)


def _placing(
    call: OnnxCall, given: tuple[int, ...], shape: Sequence[int], axis: int | None, block: int
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return a function that lays scales out so that they broadcast from the first dimension."""
    if int(np.prod(given)) == 1 and not block:
        return lambda array: array.reshape(())
    if axis is None:
        raise call.error(f"there are scales of shape {list(given)}, not one")
    axis = call.axis(axis, len(shape))
    if block:
        expected = [-(-n // block) if k == axis else n for k, n in enumerate(shape)]
        if list(given) != expected:
            raise call.error(
                f"scales of shape {list(given)} do not fit blocks of {block} along axis {axis} of "
                f"the shape {list(shape)}",
                f"the scales must have shape {expected}",
            )
        indices = np.arange(shape[axis]) // block
        return lambda array: array.take(indices, axis)
    if given != (shape[axis],):
        raise call.error(
            f"scales of shape {list(given)} do not fit axis {axis} of the shape {list(shape)}",
            f"give one scale, or {shape[axis]}",
        )
    return lambda array: array.reshape((1,) * axis + given)


def _constant(call: OnnxCall, index: int, what: str) -> Constant | None:
    value = call.input(index)
    if value is None:
        return None
    if value.data is None:
        raise call.unsupported(
            f"the {what} {value.tensor.name!r} is computed when the network runs",
            "quantize the network statically, as onnxruntime's quantize_static does",
        )
    return Constant(value.data, value.type)


def quantized(call: OnnxCall, value: Value, coding: Coding) -> Value:
    """Return real numbers as codes; constants become constant codes, as onnxruntime rounds them.

    What was made for this node is given the quantization, anything else is copied.
    """
    element = coding.element
    if value.data is not None:
        scale, zero_point = _aligned(coding, value.rank)
        # onnxruntime divides in float32
        steps = np.rint(value.data.astype(np.float32) / scale.astype(np.float32))
        data = np.clip(steps.astype(np.float64) + zero_point, *coding.limits)
        result = call.constant(data, element, like=value)
        return _Narrow(result.tensor, element, coding.limits)
    exact = None
    if value.tensor.name not in call.created:
        exact, value = value, call.emit("copy", value)
    tensor = replace(value.tensor, quant=coding.quantization)
    return Quantized(call.builder.add(tensor), element, coding, exact)


def dequantized(call: OnnxCall, value: Value, coding: Coding, element: ElementType) -> Value:
    """Return the real numbers that codes stand for.

    Constant codes become a variable with a ``quant``; codes that are computed are calculated with.
    """
    if isinstance(value, Quantized) and value.coding.same_steps(coding):
        return Value(value.tensor, element)
    if value.data is not None:
        return _decoded(call, value, coding, element)
    plain = codes(call.builder, value)
    real = call.emit("cast", plain, element=element)
    if coding.zero_point.any():
        real = call.emit("sub", real, call.constant(coding.zero_point, element))
    if (coding.scale == 1).all():
        return real
    return call.emit("mul", real, call.constant(coding.scale, element))


def _decoded(call: OnnxCall, value: Value, coding: Coding, element: ElementType) -> Value:
    data, label = value.data, value.tensor.label
    assert data is not None
    coding = replace(coding, limits=value.limits if isinstance(value, _Narrow) else coding.limits)
    middle = 1 << (coding.element.bits - 1)
    if not coding.element.signed and (coding.zero_point == middle).all():
        # The same codes without a zero point, which hardware has no weights with.
        lo, hi = coding.limits
        zeros, limits = np.zeros_like(coding.zero_point), (lo - middle, hi - middle)
        data, coding = data - middle, replace(coding, zero_point=zeros, limits=limits)
    quant = coding.quantization or replace(coding, limits=coding.element.limits).quantization
    assert quant is not None
    name = value.tensor.name
    tensor = call.builder.constant(name, decode(data, quant), location=call.location)
    tensor = replace(tensor, label=label or name if data.ndim else None, quant=quant)
    call.created.add(tensor.name)
    return Value(call.builder.add(tensor), element)


def codes(builder: Builder, value: Value) -> Value:
    """Return the integers of a quantized value, for operators that calculate with them.

    Rounding is ONNX's: halves to even.
    """
    if not isinstance(value, Quantized):
        return value
    coding, (lo, hi) = value.coding, value.coding.limits
    name = f"{value.tensor.name}_codes"
    source = value.tensor if value.exact is None else value.exact.tensor

    def constant(data: Any) -> Any:
        return builder.constant(name, np.asarray(data, np.float64))

    (tensor,) = builder.node("div", [source, constant(coding.scale)], {}, name)
    (tensor,) = builder.node("round_even", [tensor], {}, name)
    if coding.zero_point.any():
        (tensor,) = builder.node("add", [tensor, constant(coding.zero_point)], {}, name)
    (tensor,) = builder.node("clamp", [tensor, constant(lo), constant(hi)], {}, name)
    (tensor,) = builder.node("cast", [tensor], {}, name, ["integer"])
    return Value(tensor, value.type)


def _aligned(coding: Coding, rank: int) -> list[NDArray[Any]]:
    """Return scale and zero point with as many dimensions as a tensor."""
    arrays = (coding.scale, coding.zero_point)
    return [array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays]


def _plain(array: NDArray[Any]) -> Any:
    """Return an array all of whose items are the same as a number."""
    first = array.flat[0]
    return first.item() if (array == first).all() else array
