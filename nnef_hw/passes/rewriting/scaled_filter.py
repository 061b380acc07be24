"""A quantized filter times a number for each output channel: the same codes in other steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Quantization, Tensor
from nnef_hw.reference.real.quantize import code_range, encode

__all__ = ["scaled_filter"]

_MOST_BITS = 8

_NEGLIGIBLE = 2.0**-30
"""A channel whose steps are such a share of the largest adds nothing that a bias could not."""

FloatArray = NDArray[np.float64]


def scaled_filter(tensor: Tensor, scale: FloatArray) -> tuple[FloatArray, Quantization] | None:
    """Return a filter [outC, ...] times ``scale`` [outC], and its quantization.

    The codes stay, with the other sign where a scale is negative; those of a channel without
    weight, or whose steps are negligible, are 0. The opposite of the lowest code takes a bit more.
    None if they would not be codes of a filter then: of over 8 bits, with zero points, or of
    logarithmic steps.
    """
    quant, data = tensor.quant, tensor.data
    assert quant is not None
    assert data is not None
    column = (-1, *[1] * (data.ndim - 1))
    factors, magnitude = scale.reshape(column), np.abs(scale).reshape(column)
    if quant.op == "linear_quantize" and quant.args["bits"] == 1 and scale.all():
        low, high = (_aligned(quant.args[key], data.ndim) for key in ("min", "max"))
        if not np.array_equal(low, -high):
            return None
        args = {**quant.args, "min": low * magnitude, "max": high * magnitude}
        return data * factors, Quantization(quant.op, args)
    if quant.op != "zero_point_linear_quantize" or np.any(quant.args["zero_point"]):
        return None
    codes = encode(data, quant) * np.sign(factors).astype(np.int64)
    lo, hi = code_range(quant)
    bits = quant.args["bits"]
    if codes.min(initial=0) < lo or codes.max(initial=0) > hi:
        if bits >= _MOST_BITS:
            return None
        bits += 1  # the lowest code has no opposite
    steps = _aligned(quant.args["scale"], data.ndim) * magnitude
    used = codes.reshape(len(codes), -1).any(axis=1).reshape(column)
    largest = float((steps * used).max(initial=0.0))
    kept = used & (steps > largest * _NEGLIGIBLE)
    steps = np.where(kept, steps, largest or 1.0)
    args = {**quant.args, "scale": steps, "zero_point": 0, "bits": bits}
    return np.where(kept, codes, 0) * steps, Quantization(quant.op, args)


def _aligned(value: object, rank: int) -> FloatArray:
    array = np.asarray(value, np.float64)
    return array.reshape(array.shape + (1,) * (rank - array.ndim))
