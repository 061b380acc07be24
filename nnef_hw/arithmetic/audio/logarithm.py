"""The logarithm to the base of 2 of an integer, in steps of ``2**-16``."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import IntArray

__all__ = ["LOG_BITS", "SEGMENT_BITS", "SLOPE_BITS", "integer_bits", "log2", "log2_table"]

LOG_BITS = 16
"""Bits of a logarithm below 1."""

SEGMENT_BITS = 7
"""A mantissa's bits that choose a segment of the table."""

SLOPE_BITS = LOG_BITS - SEGMENT_BITS
"""Bits of a mantissa within a segment."""


@cache
def log2_table() -> IntArray:
    """Return the excess of the logarithm of ``1 + i / 128`` over ``i / 128``, ``i = 0 .. 128``."""
    mantissas = np.arange((1 << SEGMENT_BITS) + 1) / (1 << SEGMENT_BITS)
    excess = (np.log2(1 + mantissas) - mantissas) * (1 << LOG_BITS)
    return np.floor(excess + 0.5).astype(np.int64)


def integer_bits(values: ArrayLike) -> IntArray:
    """Return how many bits integers of at most 62 bits have; 0 has none."""
    values = np.asarray(values, np.int64)
    bits = np.zeros(values.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        is_above = (values >> bits + step - 1) > 0
        bits += step * is_above
    return bits


def log2(values: ArrayLike, slope_bits: int = SLOPE_BITS) -> IntArray:
    """Return logarithms of integers of at least 1 in steps of ``2**-16``.

    ``n`` is the place of the highest bit, ``f`` the 16 bits below it, ``i = f >> 9``, ``r = f &
    511``; the result is ``n * 2**16 + f + t[i] + (((t[i + 1] - t[i]) * r) >> slope_bits)``, ``t``
    being :func:`log2_table`.

    Parameters
    ----------
    slope_bits
        9 for the line from ``t[i]`` to ``t[i + 1]``; another number for a slope of another one's.
    """
    values = np.asarray(values, np.int64)
    assert values.size == 0 or values.min() >= 1, "only what is at least 1 has a logarithm here"
    places = integer_bits(values) - 1
    rest = values - (np.int64(1) << places)
    fraction = np.where(
        places < LOG_BITS,
        rest << np.maximum(LOG_BITS - places, 0),
        rest >> np.maximum(places - LOG_BITS, 0),
    )
    table = log2_table()
    segment = fraction >> SLOPE_BITS
    slope = table[segment + 1] - table[segment]
    between = (slope * (fraction - (segment << SLOPE_BITS))) >> slope_bits
    return np.asarray((places << LOG_BITS) + fraction + table[segment] + between)
