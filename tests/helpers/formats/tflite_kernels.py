"""TensorFlow Lite's reference kernels of codes, one number at a time, in Python's integers.

What its ``common.h`` and gemmlowp's ``fixedpoint.h`` say; NumPy has no part in the arithmetic.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["each", "multiplied", "multiplier", "single"]


def single(*factors, divisor=1.0):
    """Return a product over a number in single precision."""
    product = np.float32(1)
    for factor in factors:
        product = np.float32(product * np.float32(factor))
    return float(np.float32(product / np.float32(divisor)))


def multiplier(factor):
    """``QuantizeMultiplier``: 31 bits of mantissa, and an exponent."""
    if factor == 0:
        return 0, 0
    mantissa, exponent = math.frexp(factor)
    fixed = math.floor(mantissa * 2**31 + 0.5)
    if fixed == 2**31:
        fixed, exponent = fixed // 2, exponent + 1
    return (fixed, exponent) if exponent >= -31 else (0, 0)


def multiplied(x, fixed, exponent):
    """``MultiplyByQuantizedMultiplier``: a doubling high product, then a rounding shift."""
    x = int(x) << max(exponent, 0)
    product = x * fixed
    nudge = 2**30 if product >= 0 else 1 - 2**30
    quotient = abs(product + nudge) // 2**31  # C++ divides towards 0
    high = quotient if product + nudge >= 0 else -quotient
    shift = max(-exponent, 0)
    remainder, mask = high & ((1 << shift) - 1), (1 << shift) - 1
    return (high >> shift) + (remainder > (mask >> 1) + (high < 0))


def each(function, *arrays, zero=0, lo=-128, hi=127):
    """Return the limited codes of a function of integers, element by element."""
    arrays = np.broadcast_arrays(*arrays)
    found = [
        min(max(function(*map(int, items)) + zero, lo), hi)
        for items in zip(*(array.reshape(-1) for array in arrays), strict=True)
    ]
    return np.array(found).reshape(arrays[0].shape)
