"""Float32 numbers as codes and as fixed-point numbers, in integers: what MLPerf's hardware does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType

__all__ = ["MANTISSA", "FloatReading"]

MANTISSA = 24
_BIAS = 127
_MAGNITUDE = 15
"""Bits of the magnitude of a fixed-point number."""


@dataclass(frozen=True)
class FloatReading:
    """Reading of float32 numbers: the code that a format has for each, and the number itself.

    Codes are exactly those of :meth:`.QType.quantize`. The number is rounded to
    ``2**-real_bits``, halves away from 0.

    Parameters
    ----------
    half
        Half a step of the codes, in units of ``2**-fraction``.
    fraction
        Bits behind the point of a number that is compared with steps.
    integer
        Bits in front of it: a number of ``2**integer`` or more is out of range.
    bits, lo, zero_point
        Of the format.
    """

    half: int
    fraction: int
    integer: int
    bits: int
    lo: int
    zero_point: int

    @classmethod
    def of(cls, form: QType) -> FloatReading:
        """Return the reading for a format: in range is twice what it holds, or more."""
        assert not isinstance(form.scale, tuple)
        half = Fraction(form.scale) / 2
        largest = max(abs(float(form.dequantize(code))) for code in (form.lo, form.hi))
        integer = max(1, int(np.ceil(np.log2(2 * largest))))
        fraction = max(
            half.denominator.bit_length() - 1, MANTISSA - integer, _MAGNITUDE - integer + 1
        )
        return cls(
            half=int(half * (1 << fraction)), fraction=fraction, integer=integer, bits=form.bits,
            lo=form.lo, zero_point=form.zero_point,
        )  # fmt: skip

    @property
    def real_bits(self) -> int:
        """Bits behind the point of the fixed-point number."""
        return _MAGNITUDE - self.integer

    @property
    def width(self) -> int:
        """Bits of the magnitude of a number that is compared with steps."""
        return self.integer + self.fraction

    @property
    def largest_exponent(self) -> int:
        """The greatest exponent, as float32 has it, that is in range."""
        return self.integer - 1 + _BIAS

    @property
    def least(self) -> int:
        """The least number whose code is not below the least one, in units."""
        return (self.lo - self.zero_point) * 2 * self.half - self.half

    def codes(self, data: bytes) -> NDArray[np.int64]:
        """Return the codes of float32 numbers in the order of their bytes."""
        return np.array([self._read(x)[0] for x in self._words(data)], np.int64)

    def reals(self, data: bytes) -> list[int] | None:
        """Return the fixed-point numbers; None if one is out of range."""
        found = [self._read(x)[1] for x in self._words(data)]
        return None if None in found else [x for x in found if x is not None]

    @staticmethod
    def _words(data: bytes) -> list[int]:
        return [int(x) for x in np.frombuffer(data, "<u4")]

    def _read(self, word: int) -> tuple[int, int | None]:
        """Return the code and the fixed-point number of a float32's bits."""
        exponent, is_negative = word >> 23 & 0xFF, word >> 31
        mantissa = (word & (1 << 23) - 1) | (exponent != 0) << 23
        count = self.largest_exponent - exponent
        top = mantissa << (self.width - MANTISSA)
        magnitude = top >> max(count, 0)
        is_inexact = count > 0 and top != magnitude << count
        number = -(magnitude + is_inexact) if is_negative else magnitude
        code = min(max((number - self.least) // (2 * self.half), 0), (1 << self.bits) - 1) + self.lo
        shift = self.fraction - self.real_bits
        real = (magnitude >> shift) + (magnitude >> shift - 1 & 1)
        if count < 0 or real >> _MAGNITUDE:
            return code, None
        return code, -real if is_negative else real
