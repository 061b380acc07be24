"""TensorFlow Lite's arithmetic of 8-bit networks, as its reference kernels compute it.

The second way to round (``rounding = "tflite"``), for networks that were trained or quantized with
TensorFlow Lite: the same codes in every activation. Sums are multiplied with 31-bit fractions and
rounded twice, with a shift for each channel. Numbers of its fixed-point library are 32-bit integers
with a fixed number of integer bits; Qn has n of them, and a sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.arithmetic.records import Fields, JsonObject

__all__ = [
    "TFLITE_SOFTMAX_QTYPE",
    "TfliteAddRequant",
    "TfliteAverage",
    "TfliteRequant",
    "fraction",
    "halves_away",
    "high_product",
    "reciprocal",
    "rounded_shift",
    "tflite_add_requant",
    "tflite_difference_scale",
    "tflite_exp_table",
    "tflite_limits",
    "tflite_mean_requant",
    "tflite_requant",
    "tflite_softmax_codes",
]

IntArray = NDArray[np.int64]

TFLITE_SOFTMAX_QTYPE = QType(bits=8, signed=True, scale=1 / 256, zero_point=-128)

_FRACTION_BITS = 31
_TOP = (1 << 31) - 1
_ADD_SHIFT = 20
_WIDE_ADD_SHIFT = 15
_DIFFERENCE_SHIFT = 7
_SHORT_BITS = 8
_DIFFERENCE_BITS = 5
"""Integer bits of differences that exp is taken of."""
_SUM_BITS = 12
"""Integer bits of the sum of exponentials."""


def high_product(a: ArrayLike, b: ArrayLike) -> IntArray:
    """Return ``a * b / 2**31`` rounded, halves up; saturated."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    product += 1 << (_FRACTION_BITS - 1)
    product >>= _FRACTION_BITS
    return np.asarray(np.minimum(product, _TOP))


def rounded_shift(x: ArrayLike, exponent: ArrayLike) -> IntArray:
    """Return ``x / 2**exponent`` rounded, halves away from 0."""
    values, shift = np.asarray(x, np.int64), np.asarray(exponent, np.int64)
    half = (np.int64(1) << shift) >> 1
    return np.asarray((values + half - ((values < 0) & (half > 0))) >> shift)


def _scaled(x: IntArray, mult: ArrayLike, shift: ArrayLike) -> IntArray:
    """Return ``x * mult / 2**31 * 2**shift``, rounded twice."""
    left, right = np.maximum(shift, 0), np.maximum(-np.asarray(shift), 0)
    return rounded_shift(high_product(x << left, mult), right)


def fraction(factor: float) -> tuple[int, int]:
    """Return mult in ``2**30..2**31 - 1`` and shift: a factor is ``mult * 2**(shift - 31)``."""
    mantissa, shift = math.frexp(factor)
    mult = math.floor(mantissa * (1 << _FRACTION_BITS) + 0.5)
    if mult == 1 << _FRACTION_BITS:
        mult, shift = mult >> 1, shift + 1
    return (mult, shift) if shift >= -_FRACTION_BITS else (0, 0)


@dataclass(frozen=True, slots=True)
class TfliteRequant:
    """Map accumulators onto codes: ``MultiplyByQuantizedMultiplier``, zero point, limits.

    Parameters
    ----------
    mult
        ``2**30..2**31 - 1``, one for all channels or one per channel.
    shift
        A shift for each ``mult``: to the left, if positive.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    rounds_once
        The product is rounded by one shift, halves up, as fully connected layers do it; else
        twice.
    """

    mult: tuple[int, ...]
    shift: tuple[int, ...]
    zero_point: int
    lo: int
    hi: int
    rounds_once: bool = False

    @property
    def factors(self) -> tuple[int, ...]:
        """Factors of accumulators, with shifts to the left, in front of the division by ``2**31``.

        The rest is a shift of :attr:`right_shifts`.
        """
        return tuple(m << max(s, 0) for m, s in zip(self.mult, self.shift, strict=True))

    @property
    def right_shifts(self) -> tuple[int, ...]:
        """Shifts to the right, for each ``mult``."""
        return tuple(max(-s, 0) for s in self.shift)

    @property
    def mult_bits(self) -> int:
        """Width of the greatest factor."""
        return max(*self.factors, 1).bit_length()

    def of_channels(self, channels: slice) -> TfliteRequant:
        """Return the requantization of some of the channels."""
        if len(self.mult) == 1:
            return self
        return replace(self, mult=self.mult[channels], shift=self.shift[channels])

    def apply(self, acc: ArrayLike, axis: int = 1) -> IntArray:
        """Requantize accumulators; ``axis`` is their channel axis."""
        values = np.asarray(acc, np.int64)
        shape = [1] * values.ndim
        shape[axis] = len(self.mult)
        mult, shift = (np.reshape(x, shape) for x in (self.mult, self.shift))
        if self.rounds_once:
            total = _FRACTION_BITS - shift
            scaled = (values * mult + (np.int64(1) << (total - 1))) >> total
        else:
            scaled = _scaled(values, mult, shift)
        return np.asarray((scaled + self.zero_point).clip(self.lo, self.hi))

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {**asdict(self), "mult": list(self.mult), "shift": list(self.shift)}

    @classmethod
    def from_json(cls, value: JsonObject) -> TfliteRequant:
        """Inverse of :meth:`to_json`."""
        return cls(**{**value, "mult": tuple(value["mult"]), "shift": tuple(value["shift"])})


@dataclass(frozen=True, slots=True)
class TfliteAddRequant:
    """Add two operands: both are scaled to half the larger step over ``2**20``, then the sum is.

    Parameters
    ----------
    mult, shift
        Factors and shifts of the first operand, of the second, and of the sum.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    signs
        1 or -1 for each operand: what is scaled is added or subtracted.
    left_shift
        Of operands: 20, or 15 if they have 16 bits; 7 of a difference that is squared.
    """

    mult: tuple[int, int, int]
    shift: tuple[int, int, int]
    zero_point: int
    lo: int
    hi: int
    signs: tuple[int, int] = (1, 1)
    left_shift: int = _ADD_SHIFT

    def scale_operand(self, position: int, difference: ArrayLike) -> IntArray:
        """Return the terms of the sum that an operand's differences ``code - zero_point`` give."""
        values = np.asarray(difference, np.int64) << self.left_shift
        scaled = _scaled(values, self.mult[position], self.shift[position])
        return self.signs[position] * scaled

    @property
    def of_sum(self) -> TfliteRequant:
        """The last step: from the sum of scaled operands to codes."""
        return TfliteRequant(self.mult[2:], self.shift[2:], self.zero_point, self.lo, self.hi)

    @property
    def swapped(self) -> TfliteAddRequant:
        """Sum with the operands in the other order."""
        (m0, m1, m2), (s0, s1, s2) = self.mult, self.shift
        return replace(self, mult=(m1, m0, m2), shift=(s1, s0, s2), signs=self.signs[::-1])

    def apply(self, a: ArrayLike, b: ArrayLike) -> IntArray:
        """Return the codes of the sum of two arrays of differences ``code - zero_point``."""
        total = self.scale_operand(0, a) + self.scale_operand(1, b)
        return self.of_sum.apply(total.reshape(-1, 1)).reshape(total.shape)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        values: dict[str, object] = asdict(self)
        return {key: list(x) if isinstance(x, tuple) else x for key, x in values.items()}

    @classmethod
    def from_json(cls, value: dict[str, object]) -> TfliteAddRequant:
        """Inverse of :meth:`to_json`."""
        items: Fields = {key: tuple(x) if isinstance(x, list) else x for key, x in value.items()}
        return cls(**items)


@dataclass(frozen=True, slots=True)
class TfliteAverage:
    """Divide a sum of codes by their number, halves away from 0; the format is kept.

    Parameters
    ----------
    taps
        How many codes are summed, unless fewer are where the window lies over a border.
    zero_point, lo, hi
        Zero point and limits of input and output codes.
    """

    taps: int
    zero_point: int
    lo: int
    hi: int

    def apply(self, acc: ArrayLike, taps: ArrayLike | None = None) -> IntArray:
        """Return the codes of means; ``acc`` are sums of differences ``code - zero_point``.

        ``taps`` tells how many each sum has, if not all have as many.
        """
        count = np.asarray(self.taps if taps is None else taps, np.int64)
        total = np.asarray(acc, np.int64) + count * self.zero_point
        magnitude = (np.abs(total) + count // 2) // count
        return np.asarray((np.sign(total) * magnitude).clip(self.lo, self.hi))

    def as_requant(self, counts: Sequence[int] = ()) -> Requant:
        """Return a requantization with equal results for sums of ``taps`` codes as they are.

        Its ``mult`` exceeds ``2**shift / taps`` by so little that only halves are moved, to the
        side that is away from 0. With ``counts`` it has one for sums of so many codes each.
        """
        greatest = self.taps * max(abs(self.lo), abs(self.hi), 1)
        shift = (2 * self.taps * greatest).bit_length()
        mult = tuple((1 << shift) // taps + 1 for taps in counts or (self.taps,))
        return Requant(mult, shift, 0, self.lo, self.hi, mult_bits=max(mult).bit_length())

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> TfliteAverage:
        """Inverse of :meth:`to_json`."""
        return cls(**value)


def tflite_requant(
    factors: ArrayLike,
    output: QType,
    *,
    lo: int | None = None,
    hi: int | None = None,
    rounds_once: bool = False,
    is_wide: bool = False,
) -> TfliteRequant:
    """Find mult and shift of real factors ``scale_in * scale_w[c] / scale_out``.

    ``is_wide`` is for sums of 64 bits, behind activations of 16: mult is rounded to 15 bits.
    """
    pairs = [fraction(float(factor)) for factor in np.atleast_1d(factors)]
    mult, shift = zip(*pairs, strict=True)
    if is_wide:
        mult = tuple(min((m + (1 << 15)) >> 16, (1 << 15) - 1) << 16 for m in mult)
    least, most = (output.lo if lo is None else lo), (output.hi if hi is None else hi)
    return TfliteRequant(mult, shift, output.zero_point, least, most, rounds_once)


def tflite_mean_requant(factor: float, count: int, output: QType) -> TfliteRequant:
    """Find mult and shift of the mean of ``count`` codes: those of the factor, divided.

    The quotient is rounded down; the shift keeps as many of its bits as there are.
    """
    mult, shift = fraction(factor)
    more = min(count.bit_length() - 1, 32, _FRACTION_BITS + shift)
    mult = (mult << more) // count
    return TfliteRequant((mult,), (shift - more,), output.zero_point, output.lo, output.hi)


def tflite_difference_scale(first: float, second: float) -> float:
    """Return the step of the difference of two 8-bit operands that is squared.

    Operands are scaled to half the larger step over ``2**7``, and their difference is taken as it
    is: with this step and 16 bits, :func:`tflite_add_requant` leaves it alone
    (``SquaredDifference``).
    """
    return 2 * max(first, second) / (1 << _DIFFERENCE_SHIFT)


def tflite_add_requant(
    scales: tuple[float, float],
    output: QType,
    *,
    lo: int | None = None,
    hi: int | None = None,
    signs: tuple[int, int] = (1, 1),
    operand_bits: int = _SHORT_BITS,
) -> TfliteAddRequant:
    """Find the multipliers of a sum or a difference of operands with these scales.

    Of operands of 8 bits, a result of more is one that is squared.
    """
    assert isinstance(output.scale, float), "activations have one scale"
    twice = 2 * max(scales)
    shift = _ADD_SHIFT
    if output.bits > _SHORT_BITS:
        shift = _WIDE_ADD_SHIFT if operand_bits > _SHORT_BITS else _DIFFERENCE_SHIFT
    factors = (*(scale / twice for scale in scales), twice / ((1 << shift) * output.scale))
    (m0, s0), (m1, s1), (m2, s2) = map(fraction, factors)
    least, most = (output.lo if lo is None else lo), (output.hi if hi is None else hi)
    return TfliteAddRequant(
        (m0, m1, m2), (s0, s1, s2), output.zero_point, least, most, signs, shift
    )


def tflite_limits(lo: float, hi: float, scale: float, zero_point: int) -> tuple[float, float]:
    """Return the codes of the limits of a fused activation; one may be infinite.

    They are the nearest ones in single precision, halves away from 0
    (``CalculateActivationRangeQuantized``).
    """
    quotients = np.array([lo, hi], np.float32) / np.float32(scale)
    low, high = (halves_away(quotients) + zero_point).tolist()
    return low, high


def halves_away(x: ArrayLike) -> NDArray[np.float64]:
    """Return real numbers rounded to whole ones, halves away from 0 (``TfLiteRound``)."""
    away: NDArray[np.float64] = np.floor(np.abs(x, dtype=np.float64) + 0.5)
    return np.copysign(away, x)


def tflite_exp_table(scale: float, entries: int = 256) -> IntArray:
    """Q0 ``exp(-scale * d)`` for d = 0..entries-1, as a polynomial and 7 factors give it.

    Differences that would not fit Q5 give 0.
    """
    mult, shift = fraction(min(scale * 2.0 ** (_FRACTION_BITS - _DIFFERENCE_BITS), float(_TOP)))
    largest = ((1 << _DIFFERENCE_BITS) - 1) << (_FRACTION_BITS - _DIFFERENCE_BITS)
    d = np.arange(entries)
    result = _exp(high_product(-d << shift, mult))
    return np.where(d <= largest >> shift, result, 0)


_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""Q0 ``exp(-2**n)`` for n = -2..4."""


def _exp(a: IntArray) -> IntArray:
    """Q0 exp of Q5 numbers, none of them positive."""
    fraction_bits = _FRACTION_BITS - _DIFFERENCE_BITS
    quarter = 1 << (fraction_bits - 2)
    rest = (a & (quarter - 1)) - quarter
    result = _exp_of_quarter(rest << _DIFFERENCE_BITS)
    whole = rest - a
    for exponent, factor in enumerate(_FACTORS, start=-2):
        is_set = (whole >> (fraction_bits + exponent)) & 1
        result = np.where(is_set == 1, high_product(result, factor), result)
    return np.where(a == 0, _TOP, result)


def _exp_of_quarter(a: IntArray) -> IntArray:
    """Q0 exp of Q0 numbers in -1/4..0: a Taylor series about -1/8."""
    at_center, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = high_product(x, x)
    x3, x4 = high_product(x2, x), high_product(x2, x2)
    series = high_product(rounded_shift(x4, 2) + x3, third) + x2
    return at_center + high_product(at_center, x + rounded_shift(series, 1))


def reciprocal(a: IntArray) -> IntArray:
    """Q0 ``1 / (1 + a)`` of Q0 numbers in 0..1: three steps of Newton-Raphson in Q2."""
    half = (a + _TOP + 1) >> 1
    x = 1515870810 + high_product(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - high_product(half, x)
        x = x + _saturated(high_product(x, error) << 2)
    return _saturated(x << 1)


def _saturated(x: IntArray) -> IntArray:
    return np.asarray(x.clip(-_TOP - 1, _TOP))


def tflite_softmax_codes(codes: ArrayLike, table: ArrayLike, axis: int = 1) -> IntArray:
    """Softmax on codes with a :func:`tflite_exp_table`; see :data:`TFLITE_SOFTMAX_QTYPE`."""
    q = np.asarray(codes, np.int64)
    e = np.asarray(table, np.int64)[q.max(axis=axis, keepdims=True) - q]
    total = rounded_shift(e, _SUM_BITS).sum(axis=axis, keepdims=True)
    # leading zeros of 32-bit numbers: float64 holds them exactly
    zeros = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    scale = reciprocal((total << zeros) - (1 << 31))
    shift = _SUM_BITS - zeros + 31 - 8
    result = rounded_shift(high_product(scale, e), shift) - 128
    return np.asarray(result.clip(-128, 127))
