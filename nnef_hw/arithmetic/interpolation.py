"""Bilinear interpolation of codes, as TensorFlow Lite's reference kernel computes it.

``ResizeBilinearInteger``: places on rows and columns are fixed-point numbers, their fractions weigh
four codes with 20 bits in all, and the sum is rounded once, halves away from 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.arrays import Array

__all__ = ["FRACTION_BITS", "WHOLE", "Places", "interpolate_codes", "interpolated"]

FRACTION_BITS = 10
"""Bits of a place below the point."""

_ONE = 1 << FRACTION_BITS
WHOLE = 1 << (2 * FRACTION_BITS)
"""What the weights of four codes add up to."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the results along an axis: the n-th at ``(start + n * step) / 2**10``.

    Parameters
    ----------
    extent
        Elements of the input along the axis.
    count
        Results.
    start, step
        In units of ``2**-10`` elements; the start may lie half an element before the first one.
    """

    extent: int
    count: int
    start: int
    step: int

    @classmethod
    def of(cls, extent: int, count: int, coordinates: str) -> Self:
        """Return the places of ``half_pixel``, ``asymmetric`` or ``align_corners``."""
        ends = (extent, count)
        if coordinates == "align_corners" and count > 1:
            ends = (extent - 1, count - 1)
        step = (_ONE * ends[0] + ends[1] // 2) // ends[1]
        start = step // 2 - _ONE // 2 if coordinates == "half_pixel" else 0
        return cls(extent, count, start, step)

    @property
    def positions(self) -> NDArray[np.int64]:
        """Fixed-point place of each result."""
        return self.start + self.step * np.arange(self.count, dtype=np.int64)

    @property
    def first(self) -> NDArray[np.int64]:
        """The element before each place, or on it."""
        return np.asarray(np.maximum(self.positions >> FRACTION_BITS, 0))

    @property
    def second(self) -> NDArray[np.int64]:
        """The element behind each place, or on it."""
        return np.asarray(np.clip(-(-self.positions >> FRACTION_BITS), 0, self.extent - 1))

    @property
    def fractions(self) -> NDArray[np.int64]:
        """Weight of the second element, of 1024; any will do where both are the same."""
        return self.positions & (_ONE - 1)

    @property
    def is_inside(self) -> bool:
        """Whether no place lies behind the last element, to which rounded steps may lead."""
        return bool(self.first[-1] < self.extent)


def interpolated(image: Array, rows: Places, columns: Places) -> Array:
    """Return ``WHOLE`` times the numbers [..., rows, columns] at places between those of an image.

    Those of integers are exact.
    """
    for axis, places in ((-2, rows), (-1, columns)):
        fractions = places.fractions.reshape((-1, 1) if axis == -2 else (-1,))
        first, second = (np.take(image, at, axis=axis) for at in (places.first, places.second))
        image = first * (_ONE - fractions) + second * fractions
    return image


def interpolate_codes(codes: ArrayLike, rows: Places, columns: Places) -> NDArray[np.int64]:
    """Return the codes at places between those of an image."""
    total = interpolated(np.asarray(codes, np.int64), rows, columns)
    return np.asarray((total + WHOLE // 2 - (total < 0)) >> (2 * FRACTION_BITS))
