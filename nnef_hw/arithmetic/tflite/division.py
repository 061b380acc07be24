"""Quotients of two codes, as TensorFlow Lite's reference kernel computes them (``DivElementwise``).

The divisor's reciprocal has 31 bits, and so has the dividend once its leading bits are shifted out.
Their product is rounded, multiplied with the ratio of the scales, rounded, shifted and rounded
again. All of it depends on the bits of both codes; ties are decided by the first two roundings.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.arithmetic.tflite.numerics import fraction, high_product, reciprocal, rounded_shift

__all__ = [
    "DIFFERENCE_BITS",
    "FRACTION_BITS",
    "SHIFT_BITS",
    "TfliteQuotient",
    "tflite_quotient",
]

IntArray = NDArray[np.int64]

FRACTION_BITS = 31
"""Of reciprocals, of dividends without leading bits, and of the ratio of scales."""
DIFFERENCE_BITS = 8
"""Magnitudes of ``code - zero_point`` have at most as many bits."""
SHIFT_BITS = 5
"""Of the number of places of a shift, as processors of 32-bit registers take it."""
_NOTHING_LEFT = 40
"""A shift by so many bits leaves 0 of every product."""
_NO_SHIFT = FRACTION_BITS - DIFFERENCE_BITS
_LARGEST_SHIFT = FRACTION_BITS + DIFFERENCE_BITS - 1


@dataclass(frozen=True, slots=True)
class TfliteQuotient:
    """Divide one difference ``code - zero_point`` by another one.

    A divisor of 0, for which the kernel stops, counts as 1. Quotients far below a step are shifted
    by 32 bits or more, which C leaves undefined: x86-64 and AArch64 take the low five bits of that
    number. What comes is seldom the code of 0: a positive quotient becomes the highest code, a
    negative one the lowest, 0 becomes one step.

    Parameters
    ----------
    mult, shift
        Ratio of the scales: ``mult * 2**(shift - 31)``, with ``mult`` in ``2**30..2**31 - 1``.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    wraps
        Whether shifts by 32 bits or more are as these processors have them; else nothing is left.
    """

    mult: int
    shift: int
    zero_point: int
    lo: int
    hi: int
    wraps: bool

    @property
    def least_shift(self) -> int:
        """The least that the last product is shifted by: that of a long dividend by 1."""
        return _NO_SHIFT - self.shift

    @staticmethod
    def reciprocals(divisors: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return ``r`` and ``n`` of positive divisors: ``1 / b = r * 2**-(31 + n)``."""
        values = np.asarray(divisors, np.int64)
        # float64 holds these integers exactly
        length = np.frexp(values.astype(np.float64))[1].astype(np.int64)
        leading = (values << (FRACTION_BITS + 1 - length)) - (1 << FRACTION_BITS)
        return reciprocal(leading), length - 1

    def apply(self, a: ArrayLike, b: ArrayLike) -> IntArray:
        """Return the codes of ``a / b`` for arrays of differences of at most 8 bits and a sign."""
        first, second = np.asarray(a, np.int64), np.asarray(b, np.int64)
        dividend = np.where(second < 0, -first, first)
        factor, moved = self.reciprocals(np.maximum(np.abs(second), 1))
        magnitude = np.where(dividend < 0, ~dividend, dividend)
        leading = FRACTION_BITS - np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
        quotient = high_product(dividend << leading, factor)
        product, shift = high_product(quotient, self.mult), moved + leading - self.shift
        if self.wraps:
            places = shift & ((1 << SHIFT_BITS) - 1)
            wrapped = (product >> places) + (product >= 0)
            result = np.where(shift == places, rounded_shift(product, places), wrapped)
        else:
            result = rounded_shift(product, np.minimum(shift, _NOTHING_LEFT))
        return np.asarray((result + self.zero_point).clip(self.lo, self.hi))

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> TfliteQuotient:
        """Inverse of :meth:`to_json`."""
        return cls(**value)


def tflite_quotient(
    scales: tuple[float, float],
    output: QType,
    *,
    lo: int | None = None,
    hi: int | None = None,
    wraps: bool = True,
) -> TfliteQuotient:
    """Find the ratio of the scales of dividend, divisor and output, in single precision.

    Raises
    ------
    ValueError
        If a step by a step is so many steps of the output, or so few, that the kernel has no shift.
    """
    first, second = (np.float32(scale) for scale in scales)
    assert isinstance(output.scale, float), "activations have one scale"
    mult, shift = fraction(float(first / (second * np.float32(output.scale))))
    fewest = _LARGEST_SHIFT - (2 << SHIFT_BITS) + 1
    if not fewest <= shift <= _NO_SHIFT:
        raise ValueError(
            f"a step of the dividend by one of the divisor is 2^{shift} steps of the result, and "
            f"only 2^{fewest} to 2^{_NO_SHIFT} can be computed"
        )
    least, most = (output.lo if lo is None else lo), (output.hi if hi is None else hi)
    return TfliteQuotient(mult, shift, output.zero_point, least, most, wraps)
