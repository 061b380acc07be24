"""TensorFlow Lite Micro's audio front end, integer for integer.

Frames of 30 ms, a transform of 16 bits, 40 filters, noise reduction, gain control, a logarithm:
what micro_speech and microWakeWord are trained on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.audio.filter_bank import FilterBank, mel
from nnef_hw.arithmetic.audio.logarithm import LOG_BITS, integer_bits, log2
from nnef_hw.arithmetic.audio.roots import floor_root
from nnef_hw.arithmetic.audio.spectrum import RealFft, wrap
from nnef_hw.arithmetic.numerics import IntArray

__all__ = ["MicroFrontend", "gain_table", "rounded_root", "wide_gain"]

RATE = 16_000
LOW, HIGH = 125.0, 7_500.0
"""Frequencies in Hz that the filters cover."""
SAMPLE_BITS = 16
WINDOW_BITS = 12
FILTER_BITS = 12
NOISE_BITS = 14
SMOOTHING_BITS = 10
SMOOTHING = (0.025, 0.06)
"""How fast the estimated noise of even and of odd channels follows."""
REMAINS = 0.05
"""What is left of a signal at least."""
GAIN_BITS = 21
GAIN_STRENGTH, GAIN_OFFSET = 0.95, 80.0
SNR_BITS = 12
SHRUNK_BITS = 6
FRACTION_BITS = 11
NEPER = 45_426
"""The natural logarithm of 2 in steps of ``2**-16``."""
SCALE_BITS = 6
WORD = (1 << 32) - 1
_HALF = np.float32(0.5)


@cache
def gain_table(bits: int) -> tuple[tuple[int, int, int], ...]:
    """Return the parabolas of the gain control's curve, one for each number of bits of the noise.

    Between ``2**(n - 1)`` and ``2**n`` the gain is ``y + a * t + b * t * t``. Where the noise is 0
    or 1, it is ``y``.

    Parameters
    ----------
    bits
        Bits of the noise below 1.
    """

    def curve(noise: int) -> int:
        place = np.float32(np.float32(noise) / np.float32(1 << bits))
        base = np.float32(place + np.float32(GAIN_OFFSET))
        power = np.float32(np.float64(base) ** -np.float64(np.float32(GAIN_STRENGTH)))
        gain = np.float32(1 << GAIN_BITS) * power
        return 32_767 if gain > 32_767 else int(gain + np.float32(0.5))

    table = [(curve(0), 0, 0), (curve(1), 0, 0)]
    for n in range(2, 33):
        low = 1 << (n - 1)
        high = 2 * low if n < 32 else 2 * low - 1
        y, middle, end = curve(low), curve(low + low // 2), curve(high)
        slope = 4 * (middle - y) - (end - y)
        table.append((y, slope, end - y - slope))
    return tuple(table)


def wide_gain(noise: IntArray, table: tuple[tuple[int, int, int], ...]) -> IntArray:
    """Return the gain of every estimate of noise: integers of 32 bits without a sign."""
    y, slope, bend = np.asarray(table, np.int64).T
    n = integer_bits(noise)
    place = np.where(
        n < FRACTION_BITS,
        noise << np.maximum(FRACTION_BITS - n, 0),
        noise >> np.maximum(n - FRACTION_BITS, 0),
    )
    place = place & ((1 << FRACTION_BITS - 1) - 1)
    # a noise of 2 looks its gain up as 0 and 1 do: the first parabola begins with it
    curve = (((bend[n] * place) >> 5) + (slope[n] << 5)) * place
    gain = y[n] + ((curve + (1 << 14)) >> 15)
    return np.asarray(np.where(noise < 2, y[np.minimum(noise, 1)], gain))


@dataclass(frozen=True)
class MicroFrontend:
    """Features of frames of 30 ms: 16 bits without a sign for each of 40 channels.

    The noise that it reduces is estimated from frame to frame.

    Parameters
    ----------
    hop
        Samples from a frame to the next: 160 or 320, for 10 or 20 ms.
    """

    hop: int = 160

    window = 480
    points = 512
    channels = 40
    highest = 666
    """Features of loud sounds reach this value; a network reads it as the top of its 8 bits."""

    def __post_init__(self) -> None:
        if self.hop not in (160, 320):
            raise ValueError(f"frames begin 160 or 320 samples after each other, not {self.hop}")

    @property
    def correction(self) -> int:
        """Bits by which sums of filters are smaller than the transform's scale would have them."""
        return self.points.bit_length() - 1 - FILTER_BITS // 2

    @cached_property
    def coefficients(self) -> IntArray:
        """The window, a raised cosine, in steps of ``2**-12``."""
        places = np.float32(2 * np.pi / self.window) * (np.arange(self.window) + _HALF)
        # cosines in single precision: no library's own rounding
        cosines = np.cos(places.astype(np.float32).astype(np.float64)).astype(np.float32)
        scaled = (_HALF - _HALF * cosines) * np.float32(1 << WINDOW_BITS)
        steps: IntArray = np.floor(scaled + _HALF).astype(np.int64)
        return steps

    @cached_property
    def fft(self) -> RealFft:
        """The transform."""
        return RealFft(self.points)

    @cached_property
    def bank(self) -> FilterBank:
        """The filters: triangles, each bin shared by two neighbours, in steps of ``2**-12``.

        A share is rounded up from 31 / 64 on: that is where those of single precision are, which
        the original computes with.
        """
        bins = mel(np.arange(self.points // 2 + 1) * (RATE / self.points))
        edges = np.linspace(mel(LOW), mel(HIGH), self.channels + 2)
        after = np.searchsorted(edges, bins).clip(1, self.channels + 1)
        share = (edges[after] - bins) / (edges[after] - edges[after - 1])
        falling = np.floor(share * (1 << FILTER_BITS) + 33 / 64).astype(np.int64)
        weights = np.zeros((self.channels + 2, bins.size), np.int64)
        for k in np.flatnonzero((bins > edges[0]) & (bins <= edges[-1])):
            weights[after[k] - 1, k] = falling[k]
            weights[after[k], k] = (1 << FILTER_BITS) - falling[k]
        return FilterBank.of(weights[1:-1])

    def frames(self, samples: int) -> int:
        """Return how many frames there are in so many samples."""
        return max(0, (samples - self.window) // self.hop + 1)

    def spectra(self, samples: ArrayLike) -> IntArray:
        """Return results of the filters by frame [..., frames, channels], before any state."""
        samples = np.asarray(samples, np.int64)
        places = np.arange(self.frames(samples.shape[-1]))[:, None] * self.hop
        frames = samples[..., places + np.arange(self.window)]
        windowed = wrap((frames * self.coefficients) >> WINDOW_BITS, SAMPLE_BITS)
        sizes = wrap(np.abs(windowed), SAMPLE_BITS).max(axis=-1, keepdims=True).clip(0)
        shift = 15 - integer_bits(sizes)
        padded = np.zeros((*windowed.shape[:-1], self.points), np.int64)
        padded[..., : self.window] = wrap(windowed << shift, SAMPLE_BITS)
        real, imag = self.fft.apply(padded)
        return rounded_root(self.bank.apply(real * real + imag * imag)) >> shift

    def reduce(self, signals: IntArray, noise: IntArray) -> tuple[IntArray, IntArray]:
        """Return the features of one frame's filters, and the noise estimated after it.

        Parameters
        ----------
        signals
            What the filters give, [..., channels].
        noise
            What was estimated after the frame before: zeros in the beginning.
        """
        scale = 1 << NOISE_BITS
        follow = [int(np.float32(share) * scale) for share in SMOOTHING]
        smoothing = np.resize(np.asarray(follow, np.int64), self.channels)
        scaled = (signals << SMOOTHING_BITS) & WORD
        # 32 bits times 14 bits: the sum of both products has no more than 47
        noise = ((scaled * smoothing + noise * (scale - smoothing)) >> NOISE_BITS) & WORD
        left = (scaled - np.minimum(noise, scaled)) >> SMOOTHING_BITS
        least = (signals * int(np.float32(REMAINS) * scale)) >> NOISE_BITS
        signals = np.maximum(left, least)
        gain = wide_gain(noise, gain_table(SMOOTHING_BITS - self.correction)) & WORD
        snr = ((signals * gain) >> GAIN_BITS - self.correction - SNR_BITS) & WORD
        return self._logarithm(_shrunk(snr)), noise

    def _logarithm(self, signals: IntArray) -> IntArray:
        values = (signals << self.correction) & WORD
        half = 1 << (LOG_BITS - 1)
        natural = (NEPER * log2(np.maximum(values, 1), LOG_BITS) + half) >> LOG_BITS
        scaled = ((natural << SCALE_BITS) + half) >> LOG_BITS
        return np.where(values > 1, np.minimum(scaled, (1 << 16) - 1), 0)

    def apply(self, samples: ArrayLike) -> IntArray:
        """Return the features [..., frames, channels] of samples of 16 bits [..., samples]."""
        silence = np.zeros((*np.shape(samples)[:-1], self.channels), np.int64)
        return self.go_on(samples, silence)[0]

    def go_on(self, samples: ArrayLike, noise: IntArray) -> tuple[IntArray, IntArray]:
        """Return the features of samples, and the noise estimated after them.

        Parameters
        ----------
        samples
            Of 16 bits, [..., samples].
        noise
            What was estimated before them, [..., channels].
        """
        signals = self.spectra(samples)
        features = np.zeros_like(signals)
        for n in range(signals.shape[-2]):
            features[..., n, :], noise = self.reduce(signals[..., n, :], noise)
        return features, noise


def rounded_root(numbers: IntArray) -> IntArray:
    """Return square roots, rounded; those of 16 bits are not rounded beyond ``2**16 - 1``."""
    root = floor_root(numbers)
    is_short = (numbers <= WORD) & (root == (1 << 16) - 1)
    is_up = (numbers - root * root > root) & ~is_short
    return np.asarray(root + is_up)


def _shrunk(snr: IntArray) -> IntArray:
    """Return the square of a small ratio of signal to noise, and a line for greater ones."""
    small = ((snr * snr) & WORD) >> (2 + 2 * SNR_BITS - SHRUNK_BITS)
    large = (snr >> SNR_BITS - SHRUNK_BITS) - (1 << SHRUNK_BITS)
    return np.where(snr < 2 << SNR_BITS, small, large)
