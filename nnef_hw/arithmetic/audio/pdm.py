"""Samples of a microphone that gives one bit at a time (PDM): filters, and what makes such bits.

A bit of 1 stands for the highest pressure, one of 0 for the lowest: their density is the sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.numerics import FloatArray, IntArray, signed_bits

__all__ = ["PdmFilter", "modulated"]

ORDER = 4
"""Running sums, and differences of them."""
HALVING = 2
"""Numbers of the first filter for each sample: the second one takes every second result."""
TAPS = 64
"""Factors of the second filter."""
FACTOR_BITS = 16
"""Bits of a factor, its sign among them."""
SAMPLE_BITS = 16
"""Bits of what the first filter gives, and of a sample."""
CUTOFF = 7.4 / 16
"""Where the second filter lets half of an amplitude pass, as a part of the rate of samples."""
_WINDOW = 5.0
"""The parameter of its Kaiser window: 53 dB."""
_GRID = 4_096

LOUDEST = 0.85
"""Greatest amplitude of bits whose mean follows a sound: a microphone is overloaded beyond it."""
_FINER = 4
"""Samples between two of a sound, before they are held."""


@dataclass(frozen=True)
class PdmFilter:
    """Samples of 16 bits of a stream of bits, in integers.

    Every bit is ``x = 1`` or ``-1``. Four running sums follow one another, each of the sum before
    it as it was a bit earlier, in two's complement of :attr:`sum_bits` bits. Of every
    ``bits / 2``-th of the last one four differences follow one another (a CIC filter); the result
    is ``v``, at most ``(bits / 2)**4``. ``w = clip(floor((v + 2**(s - 1)) / 2**s))`` has 16 bits.
    A sample is ``clip(floor((sum of factor[k] * w[k] + 2**15) / 2**16))`` of the last 64 of these
    numbers, for every second one; before the first bit all are 0.

    Parameters
    ----------
    bits
        Bits of a sample: a power of two, 32 to 128.

    Raises
    ------
    ValueError
        If they are not that.
    """

    bits: int

    def __post_init__(self) -> None:
        if self.bits not in (32, 64, 128):
            raise ValueError(f"a sample of PDM has 32, 64 or 128 bits, not {self.bits}")

    @property
    def ratio(self) -> int:
        """Bits for each number that the first filter gives."""
        return self.bits // HALVING

    @property
    def gain_bits(self) -> int:
        """Bits that the sums add to those of a bit."""
        return ORDER * (self.ratio.bit_length() - 1)

    @property
    def sum_bits(self) -> int:
        """Bits of the running sums and of their differences."""
        return self.gain_bits + 2

    @property
    def cut_bits(self) -> int:
        """Bits of the differences that are rounded away."""
        return self.gain_bits - (SAMPLE_BITS - 1)

    @cached_property
    def factors(self) -> IntArray:
        """The second filter: symmetric, 1 in the middle of the sound, without the first's droop.

        Its ideal response is the inverse of the first filter's up to the cutoff, times a window.
        """
        # in cycles per number; the middle of each piece of the band
        cutoff = CUTOFF / HALVING
        frequencies = (np.arange(_GRID) + 0.5) / _GRID * cutoff
        droop = np.sin(np.pi * frequencies) / (
            self.ratio * np.sin(np.pi * frequencies / self.ratio)
        )
        places = np.arange(TAPS) - (TAPS - 1) / 2
        waves = np.cos(2 * np.pi * places[:, None] * frequencies)
        ideal = 2 * cutoff / _GRID * (waves / droop**ORDER).sum(axis=1)
        response = ideal * np.kaiser(TAPS, _WINDOW)
        response /= response.sum()
        return np.asarray(np.rint(response * (1 << FACTOR_BITS)), np.int64)

    @cached_property
    def total_bits(self) -> int:
        """Bits of a sum of products: for the loudest sound that there can be."""
        most = int(np.abs(self.factors).sum()) << SAMPLE_BITS - 1
        return signed_bits(-most, most)

    def numbers(self, bits: ArrayLike) -> IntArray:
        """Return the results of the first filter, a number for each ``ratio`` bits."""
        sums: IntArray = 2 * np.asarray(bits, np.int64) - 1
        for n in range(ORDER):
            sums = np.cumsum(sums if n == 0 else np.concatenate([[0], sums[:-1]]))
        values = sums[self.ratio - 1 :: self.ratio]
        for _ in range(ORDER):
            values = np.diff(values, prepend=0)
        half = 1 << (self.sum_bits - 1)
        values = ((values + half) & ((1 << self.sum_bits) - 1)) - half
        return _limited(np.asarray((values + (1 << self.cut_bits >> 1)) >> self.cut_bits, np.int64))

    def apply(self, bits: ArrayLike) -> IntArray:
        """Return the samples of bits, from power-on: one for each :attr:`bits` of them."""
        numbers = self.numbers(bits)
        numbers = numbers[: len(numbers) // HALVING * HALVING]
        if not len(numbers):
            return numbers
        sums = np.convolve(numbers, self.factors)[HALVING - 1 : len(numbers) : HALVING]
        return _limited((sums + (1 << FACTOR_BITS - 1)) >> FACTOR_BITS)


def _limited(values: IntArray) -> IntArray:
    """Return values within 16 bits."""
    highest = (1 << (SAMPLE_BITS - 1)) - 1
    return values.clip(-highest - 1, highest)


def modulated(samples: Sequence[int] | IntArray, bits: int) -> NDArray[np.uint8]:
    """Return the bits of a microphone that hears samples of 16 bits: so many for each of them.

    Between samples the sound is what has no frequency above half of their rate; it is limited to
    :data:`LOUDEST`. A modulator of second order makes bits of it, whose noise is above the sound.
    """
    sound = _resampled(np.asarray(samples, np.float64), _FINER)
    limit = LOUDEST * (1 << (SAMPLE_BITS - 1))
    levels: list[int] = np.rint(sound.clip(-limit, limit)).astype(np.int64).tolist()
    full = 1 << (SAMPLE_BITS - 1)
    first = second = 0
    found = bytearray()
    for level in levels:
        for _ in range(bits // _FINER):
            if second >= 0:
                found.append(1)
                first += level - full
                second += first - full
            else:
                found.append(0)
                first += level + full
                second += first + full
    return np.frombuffer(bytes(found), np.uint8)


def _resampled(samples: FloatArray, times: int) -> FloatArray:
    """Return so many samples for each one, of the same sound."""
    spectrum = np.fft.rfft(samples)
    return np.asarray(np.fft.irfft(spectrum, len(samples) * times) * times)
