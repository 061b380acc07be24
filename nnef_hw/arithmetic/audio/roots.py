"""Square roots of integers."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray

__all__ = ["floor_root"]


def floor_root(numbers: IntArray) -> IntArray:
    """Return the greatest integers whose squares are not above numbers below ``2**62``."""
    # float64 is off by less than 1 there
    root = np.sqrt(numbers.astype(np.float64)).astype(np.int64)
    root -= root * root > numbers
    root += (root + 1) * (root + 1) <= numbers
    return np.asarray(root)
