"""Quantization of any width: the operators of QONNX, which Brevitas and FINN write too.

They take and return real numbers. Formulas: the operators' documents in the ``qonnx`` project.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.declarations import QONNX
from nnef_hw.frontend.onnx.file.model import BOOL, FLOAT32, ElementType
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.coding import Coding
from nnef_hw.frontend.onnx.lowering.quantized import constant_codes, dequantized, quantized
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.ir import Quantization

__all__: list[str] = []

_MAX_BITS, _WIDE_BITS = 32, 16
_UNIFORM = 1e-6
"""Thresholds are stored in float32: by so much of a step may they miss equal distances."""

Array = Array


def _half_away(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def _half_to_zero(x: Array) -> Array:
    return np.sign(x) * np.ceil(np.abs(x) - 0.5)


def _away(x: Array) -> Array:
    return np.sign(x) * np.ceil(np.abs(x))


_ROUNDING: dict[str, Callable[[Array], Array]] = {
    "CEIL": np.ceil,
    "DOWN": np.trunc,
    "FLOOR": np.floor,
    "HALF_DOWN": _half_to_zero,
    "HALF_EVEN": np.rint,
    "HALF_UP": _half_away,
    "ROUND": np.rint,
    "ROUND_TO_ZERO": np.trunc,
    "UP": _away,
}
"""How constants are rounded, by the name of the mode."""

_NUDGE = 2.0**-20
"""Share of a step that is added where numbers which lie on a limit must not fall below it."""

_SHIFTS = {
    "ROUND": 0.0, "HALF_EVEN": 0.0, "HALF_UP": 0.0, "HALF_DOWN": 0.0, "FLOOR": -0.5,
}  # fmt: skip
"""Steps to add before rounding to the nearest, of modes that activations can have."""

_TO_EVEN = {"ROUND", "HALF_EVEN"}


@lowers("IntQuant", 1, domain=QONNX)
@lowers("Quant", 1, domain=QONNX)
def quant(call: OnnxCall) -> Value:
    """``(round(clip(x / scale + zero_point)) - zero_point) * scale``."""
    x, mode, bits = call.required(0), _mode(call), _bits(call, 3)
    signed, narrow = (_flag(call, name) for name in ("signed", "narrow"))
    if bits == 1 and signed:
        return _bipolar(call, x, _scale(call, 1, x))
    return _rounded(call, x, _coding(call, x, bits, signed=signed, narrow=narrow), mode)


@lowers("BipolarQuant", 1, domain=QONNX)
def bipolar_quant(call: OnnxCall) -> Value:
    """``scale`` where x is not negative, ``-scale`` elsewhere."""
    return _bipolar(call, call.required(0), _scale(call, 1, call.required(0)))


@lowers("Trunc", 1, domain=QONNX)
def trunc(call: OnnxCall) -> Value:
    """Drop low bits of quantized numbers: six arguments give the scale of the result.

    With five, as Brevitas wrote before 0.11, it keeps the scale, although its codes are smaller.
    """
    x, mode = call.required(0), _mode(call)
    signed, narrow = (_flag(call, name) for name in ("signed", "narrow"))
    in_bits, is_newer = _bits(call, 3), call.input(5) is not None
    bits = _bits(call, 5 if is_newer else 4)
    source = _coding(call, x, in_bits, signed=signed, narrow=False)
    if source.zero_point.any():
        raise call.unsupported("the zero point is not 0", "quantize with zero point 0")
    if is_newer:
        scale = _scale(call, 4, x)
        ratio = 2.0 ** np.rint(np.log2(scale / source.scale))
    elif bits <= in_bits:
        scale, ratio = source.scale, np.array(2.0 ** (in_bits - bits))
    else:
        raise call.error(f"{in_bits} bits are cut to {bits}, which are more")
    known = x.tensor.quant
    if known is None or not np.array_equal(known.args.get("scale", 0), source.scale):
        # hardware has 16 bits, which never limit what the file says has fewer
        widest = _WIDE_BITS if in_bits < _WIDE_BITS else _MAX_BITS
        whole = replace(source, limits=_limits(widest, signed=True))
        x = _rounded(call, x, replace(whole, element=_element(widest, whole.limits)), "ROUND")
        bits, signed = (bits, signed) if is_newer else (widest, True)
    elif not is_newer:
        signed = bool(known.args["signed"])
    limits = _limits(bits, signed=signed, narrow=narrow and is_newer)
    zeros = np.zeros(scale.shape, np.int64)
    coding = Coding(scale, zeros, _element(bits, limits), limits)
    return _rounded(call, _affine(call, x, scale / (source.scale * ratio), 0.0), coding, mode)


@lowers("MultiThreshold", 1, domain=QONNX)
def multi_threshold(call: OnnxCall) -> Value:
    """``out_scale * (number of thresholds that x reaches) + out_bias``, for each channel."""
    x = call.required(0)
    thresholds = call.constant_value(1, "the thresholds")
    assert thresholds is not None
    axis = _channels(call, x)
    channels = x.shape[axis] if x.rank > 1 else 1
    if thresholds.ndim != 2 or thresholds.shape[0] not in {1, channels} or not thresholds.size:
        raise call.error(
            f"thresholds of shape {list(thresholds.shape)} do not fit {channels} channels",
            f"they must have shape [1, steps] or [{channels}, steps]",
        )
    scale, bias = call.attr("out_scale"), call.attr("out_bias")
    if not (np.isfinite([scale, bias]).all() and scale > 0):
        raise call.error(
            f"out_scale {scale:g} and out_bias {bias:g} must be finite, scale positive"
        )
    if not np.isfinite(thresholds).all():
        raise call.error("a threshold is not finite", "leave out steps that are never reached")
    values = np.sort(thresholds.astype(np.float64), axis=1)
    if values.shape[1] == 1 and bias == -scale / 2:
        layout = (len(values), *[1] * (x.rank - axis - 1))
        return _bipolar(call, _affine(call, x, 1.0, -values.reshape(layout)), np.array(-bias))
    steps = _equal_steps(values)
    coding = None if steps is None else _count_coding(values.shape[1], scale, bias)
    if steps is not None and coding is not None:
        layout = (len(values), *[1] * (x.rank - axis - 1))
        first, step = values[:, 0].reshape(layout), steps.reshape(layout)
        ratio, half = scale / step, scale * (0.5 + _NUDGE)
        moved = _affine(call, x, ratio, coding.limits[0] * scale + half - first * ratio)
        return _rounded(call, moved, coding, "ROUND")
    return _counted(call, x, values, axis)


def _counted(call: OnnxCall, x: Value, values: Array, axis: int) -> Value:
    """Compare with every threshold along a new last dimension."""
    count, behind = values.shape[1], x.rank - axis - 1
    table = call.constant(values.reshape(len(values), *[1] * behind, count), _EXACT)
    reached = call.spread("ge", call.reshaped(x, (*x.shape, 1)), table, element=BOOL)
    ones = call.emit("select", reached, call.constant(1.0, FLOAT32), call.constant(0.0, FLOAT32),
                     element=FLOAT32)  # fmt: skip
    total = call.reshaped(call.emit("sum_reduce", ones, axes=[x.rank]), x.shape)
    return _affine(
        call, total, np.float64(call.attr("out_scale")), np.float64(call.attr("out_bias"))
    )


_EXACT = ElementType("double", "scalar", 64)


def _equal_steps(values: Array) -> Array | None:
    """Return the distance between the thresholds of each channel; None if it varies."""
    count = values.shape[1]
    if count == 1:
        return np.ones(len(values))
    step = (values[:, -1] - values[:, 0]) / (count - 1)
    expected = values[:, :1] + np.arange(count) * step[:, None]
    fine = (step > 0).all() and (np.abs(values - expected) <= _UNIFORM * step[:, None]).all()
    return step if fine else None


def _count_coding(count: int, scale: float, bias: float) -> Coding | None:
    """Return the format of 0..count steps from a bias; None if no code is 0 or no width fits."""
    lowest = bias / scale
    if lowest != round(lowest):
        return None
    limits = (int(lowest), int(lowest) + count)
    coding = Coding(np.array(scale, np.float64), np.zeros((), np.int64),
                    _element(_MAX_BITS, limits), limits)  # fmt: skip
    return coding if coding.quantization is not None else None


def _channels(call: OnnxCall, x: Value) -> int:
    """Return the axis of the channels."""
    layout = call.attr("data_layout") or {3: "NWC"}.get(x.rank, "")
    if layout and (len(layout) != x.rank or layout.count("C") != 1):
        raise call.error(f"data_layout {layout!r} does not fit the shape {list(x.shape)}")
    return layout.index("C") if layout else min(1, x.rank - 1)


def _rounded(call: OnnxCall, x: Value, coding: Coding, mode: str) -> Value:
    """Return real numbers rounded to those that codes stand for."""
    if x.data is not None:
        return _rounded_constant(call, x, coding, mode)
    if mode not in _SHIFTS:
        raise call.unsupported(
            f"activations are rounded in the mode {mode}", f"use one of {', '.join(_SHIFTS)}"
        )
    coding = replace(coding, ties_to_even=mode in _TO_EVEN)
    if _SHIFTS[mode]:
        x = _affine(call, x, np.float64(1.0), coding.aligned(x.rank)[0] * _SHIFTS[mode])
    if coding.quantization is None:  # an unsigned narrow range
        lowest, highest = (coding.real(code) for code in coding.limits)
        x = call.spread("clamp", x, *(call.constant(v, FLOAT32) for v in (lowest, highest)))
        coding = _widened(coding)
    return dequantized(call, quantized(call, x, coding), coding, FLOAT32)


def _rounded_constant(call: OnnxCall, x: Value, coding: Coding, mode: str) -> Value:
    """Return a constant with its quantization; x / scale is of 32 bits, as in QONNX."""
    data = x.data
    assert data is not None
    scale, zero_point = coding.aligned(x.rank)
    steps = data.astype(np.float32) / scale.astype(np.float32) + zero_point.astype(np.float32)
    found = np.clip(_ROUNDING[mode](np.clip(steps, *coding.limits)), *coding.limits)
    if coding.quantization is None:
        coding = _widened(coding)
    return dequantized(call, constant_codes(call, found, coding, like=x), coding, FLOAT32)


def _widened(coding: Coding) -> Coding:
    """Return a format with all codes of its bits."""
    return replace(coding, limits=coding.element.limits)


def _bipolar(call: OnnxCall, x: Value, scale: Array) -> Value:
    """Return ``scale`` or ``-scale``, as the format of one bit that has these two numbers."""
    first = scale.flat[0].item()
    one = first if (scale == first).all() else scale
    quant = Quantization("linear_quantize", {"min": -one, "max": one, "bits": 1})
    if x.data is not None:
        value = call.constant(np.where(x.data >= 0, scale, -scale), FLOAT32, like=x)
    elif x.tensor.name in call.created:
        value = x
    else:
        value = call.emit("copy", x)
    return Value(call.builder.add(replace(value.tensor, quant=quant)), FLOAT32)


def _affine(call: OnnxCall, x: Value, factor: object, offset: object) -> Value:
    """Return ``x * factor + offset``; the arrays broadcast from the last dimension."""
    if (np.asarray(factor) != 1).any():
        x = _multiplied(call, x, np.asarray(factor))
    if np.asarray(offset).any():
        x = call.spread("add", x, call.constant(np.asarray(offset), _EXACT))
    return Value(x.tensor, FLOAT32)


def _multiplied(call: OnnxCall, x: Value, factor: Array) -> Value:
    return Value(call.spread("mul", x, call.constant(factor, _EXACT)).tensor, FLOAT32)


def _coding(call: OnnxCall, x: Value, bits: int, *, signed: bool, narrow: bool) -> Coding:
    """Return the format that scale and zero point, the arguments 1 and 2, define."""
    scale = _scale(call, 1, x)
    zeros = _aligned(call, 2, x, "the zero point")
    whole = np.isfinite(zeros) & (zeros == np.rint(zeros)) & (np.abs(zeros) < 1 << _MAX_BITS)
    if not whole.all():
        raise call.error(f"a zero point is {zeros[~whole].flat[0]:g}, no integer of 32 bits")
    shape = np.broadcast_shapes(scale.shape, zeros.shape)
    limits = _limits(bits, signed=signed, narrow=narrow)
    return Coding(
        np.broadcast_to(scale, shape).astype(np.float64),
        np.broadcast_to(zeros, shape).astype(np.int64),
        _element(bits, limits),
        limits,
    )


def _limits(bits: int, *, signed: bool, narrow: bool = False) -> tuple[int, int]:
    """Return the least and the greatest code."""
    if signed:
        return narrow - (1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1 - narrow


def _element(bits: int, limits: tuple[int, int]) -> ElementType:
    signed = limits[0] < 0
    return ElementType(f"{'' if signed else 'u'}int{bits}", "integer", bits, signed=signed)


def _scale(call: OnnxCall, index: int, x: Value) -> Array:
    scale = _aligned(call, index, x, "the scale")
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        wrong = scale[~(np.isfinite(scale) & (scale > 0))].flat[0]
        raise call.error(f"a scale is {wrong:g}", "scales must be positive and finite")
    return scale


def _aligned(call: OnnxCall, index: int, x: Value, what: str) -> Array:
    """Return a constant that broadcasts with x from the last dimension, in the rank of x."""
    data = call.constant_value(index, what)
    if data is None:
        raise call.error(f"input {index}, {what}, is missing")
    if data.size == 1:
        return data.astype(np.float64).reshape(())
    missing = x.rank - data.ndim
    fits = missing >= 0 and all(
        n in {1, m} for n, m in zip(data.shape, x.shape[missing:], strict=True)
    )
    if not fits or not data.size:
        raise call.error(f"{what} of shape {list(data.shape)} does not fit {list(x.shape)}")
    return data.astype(np.float64).reshape((*[1] * missing, *data.shape))


def _mode(call: OnnxCall) -> str:
    mode: str = call.attr("rounding_mode").upper()
    if mode not in _ROUNDING:
        raise call.error(f"there is no rounding mode {mode!r}", f"use {', '.join(_ROUNDING)}")
    return mode


def _flag(call: OnnxCall, name: str) -> bool:
    value = call.attr(name)
    if value not in {0, 1}:
        raise call.error(f"{name} is {value}, not 0 or 1")
    return bool(value)


def _bits(call: OnnxCall, index: int) -> int:
    bits = call.number(index, "the number of bits")
    if bits != bits or not 1 <= bits <= _MAX_BITS or bits != int(bits):
        raise call.error(
            f"the number of bits is {bits:g}", f"use a whole number from 1 to {_MAX_BITS}"
        )
    return int(bits)
