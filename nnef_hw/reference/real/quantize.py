"""Quantization in real numbers, as NNEF defines it: rounding to the nearest value of a code.

Rounding is ``floor(x + 0.5)``, or to even codes where the quantization says so; everything is
float64. Arguments of fewer dimensions than the
tensor broadcast from its first dimension.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.ir import Quantization
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__ = ["code_range", "decode", "encode", "fake_quantize"]

FloatArray = NDArray[np.float64]

_TENSORS = {
    "linear_quantize": ("min", "max"),
    "logarithmic_quantize": ("max",),
    "min_max_linear_quantize": ("min", "max"),
    "zero_point_linear_quantize": ("zero_point", "scale"),
}
"""Arguments that are tensors, in the order of the declarations."""


def fake_quantize(x: ArrayLike, quant: Quantization) -> FloatArray:
    """Return the values that a tensor has once it is quantized (spec section 4.9.5)."""
    values, args = _aligned(x, quant)
    with np.errstate(all="ignore"):
        if quant.op == "logarithmic_quantize":
            top, levels = np.ceil(np.log2(args["max"])), (1 << quant.args["bits"]) - 1
            exponent = np.maximum(np.minimum(np.log2(np.abs(values)), top), top - levels)
            result: FloatArray = np.sign(values) * np.exp2(np.floor(exponent + 0.5))
            return result
        return _real(_codes(values, args, quant), args, quant)


def encode(x: ArrayLike, quant: Quantization) -> NDArray[np.int64]:
    """Return the codes of real numbers in a linear quantization."""
    assert quant.op != "logarithmic_quantize", "has no codes in NNEF 1.0.5"
    values, args = _aligned(x, quant)
    return _codes(values, args, quant).astype(np.int64)


def decode(
    codes: NDArray[np.integer[AttributeValue]], quant: Quantization, *, sign_bit: bool = False
) -> FloatArray:
    """Return the real numbers that codes stand for.

    Parameters
    ----------
    codes
        Integers in :func:`code_range`.
    sign_bit
        Whether the highest bit of a logarithmic code is its sign.
    """
    values, args = _aligned(codes, quant)
    if quant.op != "logarithmic_quantize":
        return _real(values, args, quant)
    bits = quant.args["bits"]
    raw = codes.astype(np.int64) & ((1 << bits) - 1)
    negative = (raw >> (bits - 1)) & sign_bit
    levels = (1 << (bits - sign_bit)) - 1
    exponent = (raw & levels) - levels + np.ceil(np.log2(args["max"]))
    result: FloatArray = np.where(negative, -1.0, 1.0) * np.exp2(exponent)
    return result


def code_range(quant: Quantization) -> tuple[int, int]:
    """Return the lowest and the highest code; of logarithmic ones as unsigned integers."""
    bits = quant.args["bits"]
    signed, symmetric = quant.args.get("signed", False), quant.args.get("symmetric", False)
    lo = -(1 << (bits - 1)) + symmetric if signed else 0
    return lo, (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1


def _aligned(x: ArrayLike, quant: Quantization) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Return the tensor and the tensor arguments with as many dimensions each."""
    arrays = [np.asarray(quant.args[name], np.float64) for name in _TENSORS[quant.op]]
    arrays.insert(0, np.asarray(x, np.float64))
    rank = max(array.ndim for array in arrays)
    values, *parameters = (
        array.reshape(array.shape + (1,) * (rank - array.ndim)) for array in arrays
    )
    return values, dict(zip(_TENSORS[quant.op], parameters, strict=True))


def _codes(x: FloatArray, args: dict[str, FloatArray], quant: Quantization) -> FloatArray:
    lo, hi = code_range(quant)
    if quant.op == "zero_point_linear_quantize":
        steps = x / args["scale"]
        nearest = np.rint(steps) if quant.ties_to_even else np.floor(steps + 0.5)
        return np.clip(nearest + args["zero_point"], lo, hi)
    least, greatest = args["min"], args["max"]
    clamped = np.maximum(np.minimum(x, greatest), least)
    return np.floor((clamped - least) / (greatest - least) * (hi - lo) + 0.5) + lo


def _real(codes: FloatArray, args: dict[str, FloatArray], quant: Quantization) -> FloatArray:
    if quant.op == "zero_point_linear_quantize":
        return (codes - args["zero_point"]) * args["scale"]
    lo, hi = code_range(quant)
    return (codes - lo) / (hi - lo) * (args["max"] - args["min"]) + args["min"]


@operator(*_TENSORS, batch=always)
def _quantize(call: Evaluation) -> Array:
    """Quantize by a static or a dynamic range: it is a tensor like any other."""
    x, *tensors = call.args
    args = dict(zip(_TENSORS[call.node.op], tensors, strict=True))
    return fake_quantize(x, Quantization(call.node.op, {**call.node.attrs, **args}))
