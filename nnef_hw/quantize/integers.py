"""Requantization of integer networks, exact where factors are fractions of whole numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import MAX_SHIFT, Requant

__all__ = ["bits_of_fractions", "divisor", "with_rest"]

_MOST_MULT_BITS = 24
"""Width of a mult that an integer network may need to be exact."""


def divisor(factors: list[float]) -> int:
    """Return the number that all sums are divided by; 0 if there is none, or a shift divides."""
    count = round(1 / factors[0])
    return count if set(factors) == {1 / max(count, 1)} and count & (count - 1) else 0


def bits_of_fractions(factors: list[float]) -> int:
    """Return the width of numerators of factors over a power of two; 0 if some have none."""
    found = [float(factor).as_integer_ratio() for factor in factors]
    most = max(denominator for _, denominator in found)
    bits = max(numerator * (most // denominator) for numerator, denominator in found).bit_length()
    return bits if bits <= _MOST_MULT_BITS and most.bit_length() <= MAX_SHIFT else 0


def with_rest(
    requant: Requant, factors: list[float], rest: NDArray[np.float64]
) -> tuple[NDArray[np.int64], Requant]:
    """Return changes of biases, and offsets of products, that make up for a rest of each bias.

    Nothing changes unless products are exact multiples of what they stand for.
    """
    steps = np.floor(rest).astype(np.int64)
    mult = np.asarray(requant.mult, np.int64)
    exact = (mult == np.asarray(factors) * 2.0**requant.shift).all()
    offset = np.floor((rest - steps) * mult).astype(np.int64)
    if not exact or not (steps.any() or offset.any()):
        return np.zeros_like(steps), requant
    same = (offset == offset[0]).all()
    return steps, replace(requant, offset=tuple((offset[:1] if same else offset).tolist()))
