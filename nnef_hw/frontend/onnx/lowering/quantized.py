"""Quantized values: integers in ONNX, in the Graph the real numbers that they stand for.

An operator that reads or writes codes, and one that only moves them, works on the real numbers;
for all others the codes are computed. A tensor's ``quant`` says how its real numbers are rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.onnx.file.declarations import MICROSOFT
from nnef_hw.frontend.onnx.file.model import FLOAT32, ElementType
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.coding import Coding
from nnef_hw.frontend.onnx.lowering.registry import Lowering
from nnef_hw.reference.real.quantize import decode

__all__ = ["Quantized", "codes", "constant_codes", "dequantized", "lower_node", "quantized"]

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
        """None: constant codes are not a quantized value."""

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
        coding = replace(found[0].coding, limits=found[0].type.limits)
        return [
            Quantized(value.tensor, coding.element, coding)
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
    """Return codes of fewer bits than their type has; None if they are not codes or not limited."""
    x, *limiting = call.arguments
    if x is None or x.type.dtype != "integer" or call.since < 11:
        return None
    if any(value and (value.data is None or value.type != x.type) for value in limiting):
        return None
    lo = call.optional_number(1, "the minimum")
    hi = call.optional_number(2, "the maximum")
    least, most = (code if lo is None else max(code, lo) for code in _limits(x))
    limits = (least, most) if hi is None else (min(least, hi), min(most, hi))
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


def quantized(call: OnnxCall, value: Value, coding: Coding) -> Value:
    """Return real numbers as codes; constants become constant codes, as onnxruntime rounds them.

    What was made for this node is given the quantization, anything else is copied.
    """
    element = coding.element
    if value.data is not None:
        scale, zero_point = coding.aligned(value.rank)
        # onnxruntime divides in float32
        steps = np.rint(value.data.astype(np.float32) / scale.astype(np.float32))
        data = np.clip(steps.astype(np.float64) + zero_point, *coding.limits)
        return constant_codes(call, data, coding, like=value)
    exact = None
    if value.tensor.name not in call.created:
        exact, value = value, call.emit("copy", value)
    tensor = replace(value.tensor, quant=coding.quantization)
    return Quantized(call.builder.add(tensor), element, coding, exact)


def constant_codes(call: OnnxCall, data: Array, coding: Coding, *, like: Value) -> Value:
    """Return constant codes within the limits of a coding, made from the value ``like``."""
    result = call.constant(data, coding.element, like=like)
    return _Narrow(result.tensor, coding.element, coding.limits)


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
    # Unsigned codes with the middle for 0 are signed ones with 0, which hardware has weights of.
    middle = 1 << (coding.element.bits - 1)
    is_middle = not coding.element.signed and (coding.zero_point == middle).all()
    offset = middle if is_middle else 0
    forms = [
        replace(coding, zero_point=coding.zero_point - offset, limits=(lo - offset, hi - offset))
        for lo, hi in (_limits(value), coding.limits)
    ]
    quant = next(filter(None, (form.quantization for form in forms)))
    quant = replace(quant, ties_to_even=False)  # its numbers are those of codes
    name = value.tensor.name
    tensor = call.builder.constant(name, decode(data - offset, quant), location=call.location)
    tensor = replace(tensor, label=label or name if data.ndim else None, quant=quant)
    call.created.add(tensor.name)
    return Value(call.builder.add(tensor), element)


def _limits(value: Value) -> tuple[int, int]:
    """Return the least and the greatest integer that a value may have."""
    if isinstance(value, Quantized):
        return value.coding.limits
    return value.limits if isinstance(value, _Narrow) else value.type.limits


def codes(builder: Builder, value: Value) -> Value:
    """Return the integers of a quantized value, for operators that calculate with them.

    Rounding is ONNX's: halves to even.
    """
    if not isinstance(value, Quantized):
        return value
    coding, (lo, hi) = value.coding, value.coding.limits
    name = f"{value.tensor.name}_codes"
    source = value.tensor if value.exact is None else value.exact.tensor

    def step(op: str, *numbers: object, dtype: str = "scalar") -> None:
        nonlocal source
        constants = [builder.constant(name, np.asarray(x, np.float64)) for x in numbers]
        where = source.location
        (source,) = builder.node(op, [source, *constants], {}, name, [dtype], location=where)

    step("div", coding.scale)
    step("round_even")
    if coding.zero_point.any():
        step("add", coding.zero_point)
    step("clamp", lo, hi)
    step("cast", dtype="integer")
    return Value(source, value.type)
