"""Sums of two tensors that TensorFlow Lite rounds, with factors that give the same codes."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant

__all__ = ["SumFactors", "sum_factors"]

_LEAST_BITS, _MOST_BITS = 8, 26
_STRETCHED = (0.0, *(2.0**-bits for bits in range(22, 10, -2)))
"""By how much sums are larger than they should be: so halves go away from 0."""


class SumFactors(NamedTuple):
    """A sum is ``(a * mult[0] + b * mult[1] + offset) >> shift``, limited; zero point included."""

    mult: tuple[int, int]
    shift: int
    offset: int


@cache
def sum_factors(
    requant: TfliteAddRequant, first: tuple[int, int], second: tuple[int, int]
) -> SumFactors | None:
    """Find the narrowest factors that give the codes of all pairs of operands.

    TensorFlow Lite rounds four times, of which three are of so small parts of a step that hardly a
    code depends on them.

    Parameters
    ----------
    first, second
        Least and greatest difference ``code - zero_point`` of each operand.

    Returns
    -------
    None if there are none of 26 bits.
    """
    a, b = (np.arange(low, high + 1, dtype=np.int64) for low, high in (first, second))
    codes = requant.apply(*np.broadcast_arrays(a[:, None], b))
    real = [
        sign * mult * 2.0 ** (shift - 31)
        for sign, mult, shift in zip(requant.signs, requant.mult, requant.shift, strict=False)
    ]
    of_sum = requant.mult[2] * 2.0 ** (requant.shift[2] + requant.left_shift - 31)
    factors = [factor * of_sum for factor in real]
    largest = max(map(abs, factors))
    shift = max(1, int(np.floor(_LEAST_BITS - np.log2(largest))))
    while largest * 2.0**shift < 1 << _MOST_BITS:
        for stretch, up in product(_STRETCHED, product((0, 1), repeat=2)):
            first_mult, second_mult = (
                int(np.floor(factor * (1 + stretch) * 2.0**shift)) + more
                for factor, more in zip(factors, up, strict=True)
            )
            offset = _offset(requant, codes, a[:, None] * first_mult + b * second_mult, shift)
            if offset is not None:
                return SumFactors((first_mult, second_mult), shift, offset)
        shift += 1
    return None


def _offset(requant: TfliteAddRequant, codes: IntArray, sums: IntArray, shift: int) -> int | None:
    """Return the offset that has to be added to sums for these codes, if there is such a number."""
    least = (codes << shift) - sums
    low = int(least.max(where=codes > requant.lo, initial=-(1 << 60)))
    high = int(least.min(where=codes < requant.hi, initial=1 << 60)) + (1 << shift) - 1
    usual = (1 << (shift - 1)) + (requant.zero_point << shift)
    return min(max(usual, low), high) if low <= high else None
