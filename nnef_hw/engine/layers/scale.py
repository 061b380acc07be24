"""Scales, by which sums become codes: factors and shifts, of both ways to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import IntArray, Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant

__all__ = ["POOL_SHIFT", "Factors", "Scale", "channel_sums", "settled"]

POOL_SHIFT = 6
"""A weight of one is 2**6, so that factors are small."""
_FRACTION_BITS = 31
"""Of TensorFlow Lite's factors."""
_USUAL_SHIFT = 15
"""Greatest shift of a channel, if it may as well have a smaller one: its codes hardly change."""
_NARROW_SHIFT = 22
"""Greatest shift for which numbers of 64 bits hold thresholds of sums."""


class Factors(NamedTuple):
    """Factors and shifts of an engine that rounds twice: in units of ``2**-fraction_bits``.

    Attributes
    ----------
    mult, shifts
        One each for all channels, or per channel.
    """

    mult: tuple[int, ...]
    shifts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """Parameters of requantization: a factor per channel or one, shifts, zero point and limits.

    Without ``shifts``, ``code = ((acc * mult + 2**(shift - 1)) >> shift) + zero_point``. With them
    ``acc * mult / 2**shift`` is shifted further, and where it rounds ``twice`` also before, as
    :class:`.TfliteRequant` does.
    """

    mult: tuple[int, ...]
    shift: int
    zero_point: int
    low: int
    high: int
    shifts: tuple[int, ...] = ()
    twice: bool = False

    @classmethod
    def of(
        cls, requant: Requant | TfliteRequant, offset: int, sums: Sequence[tuple[int, int]] = ()
    ) -> Scale:
        """Return the scale of a fixed node, whose codes are less ``offset`` in the engine.

        Parameters
        ----------
        sums
            Least and greatest sum of every channel, or of all; only TensorFlow Lite's rounding
            looks at them.
        """
        codes = requant.zero_point - offset, requant.lo - offset, requant.hi - offset
        if isinstance(requant, Requant):
            return cls(requant.mult, requant.shift, *codes)
        mult, shifts = _narrowed(requant, sums)
        return cls(mult, _FRACTION_BITS, *codes, shifts, not requant.rounds_once)

    @classmethod
    def identity(cls, high: int) -> Scale:
        """Return the scale of codes with a weight of ``2**POOL_SHIFT``."""
        return cls((1,), POOL_SHIFT, 0, 0, high)

    def weighted(self, bits: int) -> Scale:
        """Return the same of sums that are ``2**bits`` times as large."""
        assert not self.shifts
        return replace(self, shift=self.shift + bits)

    @property
    def fraction_bits(self) -> int:
        """Bits of a fraction that its factors need, where every channel has a shift of its own."""
        common = int(np.bitwise_or.reduce(np.array(self.mult, np.int64)))
        twos = (common & -common).bit_length() - 1 if common else _FRACTION_BITS
        return max(1, (self.shift if self.shifts else common.bit_length()) - twos)

    def factors(self, fraction_bits: int) -> Factors:
        """Return factors of so many bits, and the shifts behind.

        What has one shift for all channels gets factors as large as those of others.
        """
        if self.shifts:
            narrower = self.shift - fraction_bits
            return Factors(tuple(_shifted(mult, -narrower) for mult in self.mult), self.shifts)
        bits = max(self.mult).bit_length()
        up = fraction_bits - min(bits, self.shift)
        mult = tuple(_shifted(mult, up) for mult in self.mult)
        return Factors(mult, (max(self.shift - bits, 0),) * len(mult))


def _shifted(mult: int, left: int) -> int:
    return mult << left if left >= 0 else mult >> -left


def _narrowed(
    requant: TfliteRequant, sums: Sequence[tuple[int, int]]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return factors with as many zeros as possible at their end, for the same codes; and shifts.

    A code changes at certain sums. A factor may be any for which it does so at the same ones, of
    those that are within reach.
    """
    ranges = list(sums)
    factors, rights = requant.factors, requant.right_shifts
    if len(factors) == 1:
        least, greatest = zip(*ranges, strict=True)
        ranges = [(min(least), max(greatest))]
    found = []
    for mult, right, reach in zip(factors, rights, ranges, strict=True):
        thresholds = _thresholds(requant, mult, right)
        shift = min(right, _USUAL_SHIFT)
        low, high = _allowed(requant, thresholds, shift, reach)
        if low > high:
            shift = right
            low, high = _allowed(requant, thresholds, shift, reach)
        assert low <= mult <= high or shift < right, (mult, low, high)
        found.append((_roundest(low, high), shift))
    mults, shifts = zip(*found, strict=True)
    return mults, shifts


def _steps(requant: TfliteRequant, shift: int) -> Array:
    """Return the results but for the zero point that a sum is compared with."""
    steps = np.arange(requant.lo + 1, requant.hi + 1, dtype=np.int64) - requant.zero_point
    return steps if shift <= _NARROW_SHIFT else steps.astype(object)


def _offsets(requant: TfliteRequant, shift: int) -> tuple[int, int]:
    """Return the number that is added to ``acc * mult`` before the shift by 31 + ``shift``.

    Of sums below 0, and others: two roundings are one. With r = floor((p + 2**30) / 2**31) and a
    further shift s, the result is floor((r + 2**(s - 1) - (r < 0)) / 2**s), and the inner floor may
    be left out; for s > 0 it is 0 for p in -2**30..-1 either way, so r < 0 may be p < 0.
    """
    half = 1 << (_FRACTION_BITS - 1)
    if requant.rounds_once:
        return half << shift, half << shift
    return ((half << shift) - half, (half << shift) + half) if shift else (half, half)


def _thresholds(requant: TfliteRequant, mult: int, shift: int) -> Array:
    """Return the least sum of every result but the lowest; a sum of 0 has one of at least 0."""
    steps = _steps(requant, shift)
    if mult == 0:
        never = 1 << 40
        return np.where(steps > 0, never, -never)
    below, above = _offsets(requant, shift)
    products = (steps << (_FRACTION_BITS + shift)) - np.where(steps > 0, above, below)
    return np.asarray(-(-products // mult))


def _allowed(
    requant: TfliteRequant, thresholds: Array, shift: int, reach: tuple[int, int]
) -> tuple[int, int]:
    """Return the least and the greatest factor for which results change at the same sums."""
    below, above = _offsets(requant, shift)
    steps = _steps(requant, shift)
    lowest, highest = reach
    low, high = 0, (1 << 32) - 1
    # At a threshold the product has to be at least so much, at the sum before it less.
    reached = np.maximum(thresholds, lowest), thresholds <= highest
    missed = np.minimum(thresholds - 1, highest), thresholds > lowest
    for (sums, within), reaches in ((reached, True), (missed, False)):
        bounds = (steps << (_FRACTION_BITS + shift)) - np.where(sums < 0, below, above)
        bounds = bounds if reaches else bounds - 1
        for sign in (1, -1):
            chosen = within & (sums * sign > 0)
            if not chosen.any():
                continue
            limits, divisors = bounds[chosen] * sign, sums[chosen] * sign
            if (sign > 0) == reaches:
                low = max(low, int((-(-limits // divisors)).max()))
            else:
                high = min(high, int((limits // divisors).min()))
    return low, high


def _roundest(low: int, high: int) -> int:
    """Return the number within limits that has the most zeros at its end."""
    if low <= 0:
        return 0
    zeros = ((low - 1) ^ high).bit_length() - 1
    return high >> zeros << zeros


def channel_sums(filters: IntArray, biases: IntArray, high: int) -> list[tuple[int, int]]:
    """Return the least and greatest sum of each channel, of codes in ``0..high``.

    ``filters`` has shape [channels, ...], ``biases`` [channels].
    """
    weights = filters.reshape(len(filters), -1)
    low, top = (
        part.sum(axis=1) * high for part in (np.minimum(weights, 0), np.maximum(weights, 0))
    )
    return list(zip((biases + low).tolist(), (biases + top).tolist(), strict=True))


def settled(
    filters: IntArray, biases: IntArray, requant: Requant, high: int
) -> tuple[IntArray, IntArray, Requant]:
    """Return weights, biases and factors for the same codes, with small sums where one is constant.

    A channel that training has left without any effect has weights that are small beside its bias,
    and a factor that is small, too; a sum of it may need more bits than all others. Where every sum
    within reach gives the same code, weights of 0 and the layer's largest factor do as well.

    Parameters
    ----------
    filters, biases
        Of shape [channels, ...] and [channels], for codes in ``0..high``.
    """
    reach = np.array(channel_sums(filters, biases, high))
    mult = np.broadcast_to(np.array(requant.mult, np.int64), len(biases))
    codes = _codes(requant, reach, mult[:, None])
    largest = int(mult.max())
    wanted = (codes[:, 0] - requant.zero_point) << requant.shift
    bias = (wanted + largest // 2) // largest
    same = _codes(requant, bias, np.array(largest)) == codes[:, 0]
    constant = (codes[:, 0] == codes[:, 1]) & same & (abs(bias) <= abs(reach).max(axis=1))
    if not constant.any():
        return filters, biases, requant
    filters, biases = filters.copy(), np.where(constant, bias, biases)
    filters[constant] = 0
    if len(requant.mult) > 1:
        mult = np.where(constant, largest, mult)
        requant = replace(requant, mult=tuple(mult.tolist()))
    return filters, biases, requant


def _codes(requant: Requant, sums: IntArray, mult: IntArray) -> IntArray:
    """Return the codes of sums."""
    found = (sums * mult + (1 << (requant.shift - 1)) >> requant.shift) + requant.zero_point
    return np.asarray(found.clip(requant.lo, requant.hi))
