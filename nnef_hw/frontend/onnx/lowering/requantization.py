"""Integer networks: ``clip(floor((x * mul + add) / div))`` on numbers that are integers.

The exporters of PULP (NEMO, quantlib, DORY, Deeploy) write it as one operator, or as products,
sums, casts, a quotient and a clip. Both become a product and a sum of real numbers whose result is
quantized in steps of 1, and the integer filters in front of them keep their codes. So is
``clip(round(x))`` a quantization in steps of 1.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, FLOAT32, ElementType
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.coding import Coding
from nnef_hw.frontend.onnx.lowering.quantized import dequantized, quantized
from nnef_hw.ir import Quantization, Tensor, Trait
from nnef_hw.reference.real.quantize import code_range

__all__ = ["EXACT", "as_integers", "follow", "integers_in", "requantized"]

EXACT = ELEMENT_TYPES[11]
"""Type of constants that integers are computed with."""

_WIDEST = 1 << 31
_NUDGE = 0.25
"""A quarter of a numerator's unit keeps whole quotients from being rounded below themselves."""

_EXACT_RESULTS: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "mul": operator.mul, "sub": operator.sub,
}  # fmt: skip
_MULT_BITS = 16
"""Of a multiplier, which sums of codes are requantized with."""
_MOST_BITS = 16
"""Of an activation, in which hardware has all integers that a sum or a product may be."""

_FILTERS = {"conv": (1,), "linear": (1,), "matmul": (0, 1)}
"""Which inputs of an operator may be its filter."""

Array = Array


@dataclass(frozen=True, slots=True, eq=False)
class _Sum(Value):
    """``(source * factor + addend) / divisor``, numbers whose integers an exporter computes with.

    Parameters
    ----------
    is_whole
        Whether the quotient was rounded down, or, if ``is_cut``, towards 0.
    """

    source: Value
    factor: Array
    addend: Array
    divisor: float = 1.0
    is_whole: bool = False
    is_cut: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Rounded(Value):
    """Real numbers rounded to integers, and what they were before."""

    source: Value


def follow(call: OnnxCall, results: Value | Sequence[Value | None]) -> Value | None:
    """Return the value that a node computes, if the node is a part of the idiom; None otherwise.

    Parameters
    ----------
    results
        The node's results as they were lowered.
    """
    function = _PARTS.get(call.node.op) if not call.node.domain else None
    result = results if isinstance(results, Value) else next(iter(results), None)
    return None if function is None or result is None else function(call, result)


def _operands(call: OnnxCall) -> tuple[Value, Array, bool] | None:
    """Return the operand that varies, the constant one, and whether this one is the first."""
    if len(call.arguments) != 2:
        return None
    first, second = call.inputs
    if (first.data is None) == (second.data is None):
        return None
    value, constant = (second, first) if second.data is None else (first, second)
    data = constant.data
    assert data is not None
    if not _is_whole(data) or call.attr("axis") is not None:
        return None
    return value, data.astype(np.float64), constant is first


def _begun(value: Value) -> _Sum:
    if isinstance(value, _Sum) and value.divisor == 1:
        return value
    return _Sum(value.tensor, value.type, value, np.ones(()), np.zeros(()))


def _product(call: OnnxCall, result: Value) -> Value | None:
    found = _operands(call)
    if found is None:
        return None
    value, data, _ = found
    old = _begun(value)
    return replace(
        old, tensor=result.tensor, type=result.type, factor=old.factor * data,
        addend=old.addend * data,
    )  # fmt: skip


def _addition(call: OnnxCall, result: Value) -> Value | None:
    found = _operands(call)
    if found is None:
        return None
    old = _begun(found[0])
    return replace(old, tensor=result.tensor, type=result.type, addend=old.addend + found[1])


def _quotient(call: OnnxCall, result: Value) -> Value | None:
    found = _operands(call)
    if found is None or found[2] or found[1].size != 1:
        return None
    divisor, old = float(found[1].reshape(-1)[0]), _begun(found[0])
    if divisor < 1:
        return None
    earlier, has_no_effect = old.source, (old.factor == divisor).all() and not old.addend.any()
    if isinstance(earlier, _Sum) and earlier.is_whole and has_no_effect:
        return replace(earlier, tensor=result.tensor, type=result.type)
    whole = result.type.dtype == "integer"
    return replace(
        old, tensor=result.tensor, type=result.type, divisor=divisor, is_whole=whole, is_cut=whole
    )


def _cast(call: OnnxCall, result: Value) -> Value | None:
    x = call.input(0)
    if not isinstance(x, _Sum) or (result.type.dtype == "integer" and result.type.bits < 32):
        return None
    cut = result.type.dtype == "integer" and x.divisor != 1 and not x.is_whole
    return replace(
        x,
        tensor=result.tensor,
        type=result.type,
        is_whole=x.is_whole or cut,
        is_cut=x.is_cut or cut,
    )


def _floor(call: OnnxCall, result: Value) -> Value | None:
    x = call.input(0)
    if not isinstance(x, _Sum):
        return None
    return replace(x, tensor=result.tensor, is_whole=True)


def _round(call: OnnxCall, result: Value) -> Value | None:
    return _Rounded(result.tensor, result.type, call.required(0))


def _clip(call: OnnxCall, result: Value) -> Value | None:
    x, limits = call.input(0), _clip_limits(call)
    if not isinstance(x, _Sum | _Rounded) or limits is None or x.source.type.dtype != "scalar":
        return None
    if isinstance(x, _Rounded):
        return _codes(call, x.source, limits)
    if not x.is_whole or x.type.dtype != "scalar" or (x.is_cut and limits[0] < 0):
        return None
    if _spread(x.source.shape, x.factor, x.addend) is None:
        return None
    return requantized(call, x.source, x.factor, x.addend, x.divisor, limits)


def _codes(call: OnnxCall, x: Value, limits: tuple[int, int]) -> Value:
    """Return ``clip(round(x))`` as numbers in steps of 1."""
    coding = _coding(limits)
    codes = quantized(call, Value(x.tensor, FLOAT32), coding)
    return dequantized(call, codes, coding, FLOAT32)


def _clip_limits(call: OnnxCall) -> tuple[int, int] | None:
    """Return the limits of a Clip; None if they are not the range of some number of bits."""
    if call.since < 11:
        lo, hi = call.attr("min"), call.attr("max")
    else:
        values = [call.input(index) for index in (1, 2)]
        if any(value is None or value.data is None for value in values):
            return None
        lo, hi = call.number(1, "the minimum"), call.number(2, "the maximum")
    if lo is None or hi is None or not _is_whole(np.array([lo, hi])) or not lo < hi:
        return None
    limits = (int(lo), int(hi))
    return limits if _coding(limits).quantization is not None else None


_PARTS = {
    "Add": _addition, "Cast": _cast, "Clip": _clip, "Div": _quotient, "Floor": _floor,
    "Mul": _product, "Round": _round,
}  # fmt: skip


def requantized(
    call: OnnxCall,
    x: Value,
    factor: Array,
    addend: Array,
    divisor: float,
    limits: tuple[int, int],
) -> Value:
    """Return ``clip(floor((x * factor + addend) / divisor), *limits)`` as a quantized tensor.

    Rounding to the nearest of a number that is half a step less is rounding down.

    Parameters
    ----------
    x
        Real numbers that are integers.
    factor, addend
        Broadcast with x from the last dimension.
    limits
        Least and greatest result, of which some number of bits is the range.

    Raises
    ------
    ModelError
        If the constants do not fit x.
    """
    shape = _spread(x.shape, factor, addend)
    if shape is None:
        raise call.error(
            f"constants of shapes {list(factor.shape)} and {list(addend.shape)} do not fit "
            f"{list(x.shape)}"
        )
    if factor.size == addend.size == 1:
        found = _of_codes(call, x, factor.item(), addend.item(), divisor, limits)
        if found is not None:
            return found
    _keep_codes(call.builder, x.tensor)
    _keep_integers(call.builder, x.tensor)
    scaled = call.spread("mul", x, call.constant(factor / divisor, EXACT))
    offset = (addend + _NUDGE) / divisor - 0.5
    moved = call.spread("add", scaled, call.constant(offset, EXACT))
    return as_integers(call, moved, limits)


def _of_codes(
    call: OnnxCall, x: Value, factor: float, addend: float, divisor: float, limits: tuple[int, int]
) -> Value | None:
    """Return the same of codes of 8 bits, as one function, or of their sum or product.

    A sum is requantized at once: in steps of ``divisor / factor`` its codes are what is wanted.
    None for others, and where 16 bits of a multiplier or the rounding are not enough.
    """
    builder = call.builder
    given = integers_in(builder, x.tensor)
    if given is not None and _is_short(given):
        offset = (addend + _NUDGE) / divisor
        every = np.arange(given[0], given[1] + 1)
        if (np.floor(every * (factor / divisor) + offset).clip(*limits) == every).all():
            return as_integers(call, call.emit("copy", x), limits)
        return as_integers(
            call, call.emit("rescale", x, factor=factor / divisor, offset=offset), limits
        )
    node = next((node for node in reversed(builder.nodes) if x.tensor.name in node.outputs), None)
    if node is None or node.op not in _EXACT_RESULTS or 2 * addend != divisor:
        return None
    operands = [builder.tensors[name] for name in node.inputs]
    found = [integers_in(builder, operand) for operand in operands]
    ratio = Fraction(factor) / Fraction(divisor)
    if not 0 < ratio.numerator < 1 << _MULT_BITS or ratio.denominator & ratio.denominator - 1:
        return None
    if not all(one is not None and _is_short(one) for one in found):
        return None
    total = call.emit(node.op, *(Value(operand, x.type) for operand in operands))
    scale = np.asarray(divisor / factor)
    coding = replace(_coding(limits), scale=scale, ties_to_even=False)
    codes = dequantized(call, quantized(call, total, coding), coding, FLOAT32)
    integers = call.emit("rescale", codes, factor=factor / divisor, offset=0.5)
    return as_integers(call, integers, limits)


def _is_short(limits: tuple[int, int]) -> bool:
    lo, hi = limits
    return hi - lo < 1 << TABLE_BITS


def as_integers(call: OnnxCall, x: Value, limits: tuple[int, int]) -> Value:
    """Return ``clip(floor(x + 1/2), *limits)``: numbers in steps of 1."""
    coding = replace(_coding(limits), ties_to_even=False)
    return dequantized(call, quantized(call, Value(x.tensor, FLOAT32), coding), coding, FLOAT32)


def integers_in(builder: Builder, tensor: Tensor) -> tuple[int, int] | None:
    """Return the limits of a tensor that is integers; None if it is not known to be."""
    quant, name = tensor.quant, tensor.name
    for node in reversed(builder.nodes):
        if quant is not None:
            break
        if name in node.outputs and node.has(Trait.KEEPS_FORMAT) and node.op != "pad":
            name = node.inputs[0]
            quant = builder.tensors[name].quant
    if quant is None or quant.op != "zero_point_linear_quantize":
        return None
    is_plain = np.all(quant.args["scale"] == 1) and not np.any(quant.args["zero_point"])
    return code_range(quant) if is_plain else None


def _spread(shape: tuple[int, ...], *arrays: Array) -> tuple[int, ...] | None:
    """Return the shape of x if constants broadcast to it; None if they do not."""
    try:
        found = np.broadcast_shapes(shape, *(array.shape for array in arrays))
    except ValueError:
        return None
    return found if found == shape else None


def _coding(limits: tuple[int, int]) -> Coding:
    signed = limits[0] < 0
    element = ElementType(f"{'' if signed else 'u'}int32", "integer", 32, signed=signed)
    return Coding(np.ones(()), np.zeros((), np.int64), element, limits)


def _is_whole(data: Array) -> bool:
    """Whether all numbers are integers of at most 31 bits."""
    numbers = np.asarray(data, np.float64)
    return bool(np.isfinite(numbers).all() and (np.abs(numbers) <= _WIDEST).all()
                and (numbers == np.rint(numbers)).all())  # fmt: skip


def _keep_codes(builder: Builder, result: Tensor) -> None:
    """Give the integer filters of the layer that computes a tensor a quantization in steps of 1."""
    names = {result.name}
    for node in reversed(builder.nodes):
        if names.isdisjoint(node.outputs):
            continue
        if node.op in _FILTERS:
            for index in _FILTERS[node.op]:
                _quantize_filter(builder, node.inputs[index])
            return
        if node.op not in {"add", "reshape", "unsqueeze", "squeeze", "transpose"}:
            return
        names = {name for name in node.inputs if builder.tensors[name].data is None}


def _keep_integers(builder: Builder, result: Tensor) -> None:
    """Give the sum or the product of two activations that are integers a format that has all."""
    node = next((node for node in reversed(builder.nodes) if result.name in node.outputs), None)
    if node is None or node.op not in _EXACT_RESULTS or builder.tensors[result.name].quant:
        return
    found = [integers_in(builder, builder.tensors[name]) for name in node.inputs]
    if len(found) != 2 or None in found:
        return
    first, second = (limits for limits in found if limits is not None)
    corners = [_EXACT_RESULTS[node.op](a, b) for a in first for b in second]
    bits = signed_bits(min(corners), max(corners))
    if bits <= _MOST_BITS:
        quant = _coding((-1 << bits - 1, (1 << bits - 1) - 1)).quantization
        builder.add(replace(builder.tensors[result.name], quant=quant))


def _quantize_filter(builder: Builder, name: str) -> None:
    tensor = builder.tensors[name]
    data = tensor.data
    if data is None or tensor.quant is not None or data.ndim < 2 or not _is_whole(data):
        return
    lo, hi = int(data.min()), int(data.max())
    if lo < -128 or hi > 127:
        return
    bits = max(signed_bits(lo, hi), 2)
    symmetric = lo > -(1 << (bits - 1))
    args = {
        "zero_point": 0, "scale": 1.0, "bits": bits, "signed": True, "symmetric": symmetric,
    }  # fmt: skip
    quant = Quantization("zero_point_linear_quantize", args)
    builder.add(replace(tensor, quant=quant))
