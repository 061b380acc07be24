"""Logarithms of the power in bands of the mel scale, of frames of audio, in integers.

What speech networks are trained on: pre-emphasis, a window, a transform, power, triangles on the
mel scale, decibels. :class:`LogMel` says what is computed of real numbers; :class:`LogMelRequant`
maps it onto codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.audio.filter_bank import FilterBank, triangles
from nnef_hw.arithmetic.audio.log_bands import LogBands
from nnef_hw.arithmetic.audio.log_spectrum import (
    EMPHASIS_BITS,
    FACTOR_BITS,
    NUMBER_BITS,
    LogSpectrum,
)
from nnef_hw.arithmetic.audio.logarithm import LOG_BITS, log2
from nnef_hw.arithmetic.audio.roots import floor_root
from nnef_hw.arithmetic.audio.spectrum import RealFft, wrap
from nnef_hw.arithmetic.numerics import FloatArray, IntArray, QType
from nnef_hw.arithmetic.records import JsonObject

__all__ = ["WINDOWS", "LogMel", "LogMelRequant", "choose_log_mel"]

SAMPLE_BITS = 16

FILTER_BITS = 14
"""Bits of a weight below 1."""

POWER_SHIFT = 8
"""Bits of a power that are cut: it has 42 then."""

SUM_BITS = 57
"""Bits of the power in a band, which weights below 1 leave."""

FLOOR_STEP_BITS = 9
"""Bits of a floor that are 0."""


def _hamming(n: FloatArray, period: int) -> FloatArray:
    return np.asarray(0.54 - 0.46 * np.cos(2 * np.pi * n / period))


def _hann(n: FloatArray, period: int) -> FloatArray:
    return np.asarray(0.5 - 0.5 * np.cos(2 * np.pi * n / period))


def _ones(n: FloatArray, period: int) -> FloatArray:
    return np.ones_like(n)


WINDOWS: Mapping[str, Callable[[FloatArray, int], FloatArray]] = {
    "hamming": _hamming, "hann": _hann, "ones": _ones,
}  # fmt: skip
"""Windows by name: values at places ``n`` of a period."""


@dataclass(frozen=True, kw_only=True)
class LogMel(LogSpectrum):
    """Features of frames of audio, in real numbers, in bands that are triangles of a mel scale.

    Parameters
    ----------
    rate
        Samples per second.
    window
        Samples of a frame.
    hop
        Samples from a frame to the next one.
    points
        Points of the transform: a power of two, not less than ``window``; zeros fill it up.
    shape
        The window's: ``hamming``, ``hann`` or ``ones``.
    periodic
        Whether its period is ``window`` samples, not ``window - 1``.
    emphasis
        How much of a sample is taken from the next one.
    bands
        Features of a frame.
    low, high
        Frequencies in Hz between which the triangles are.
    floor
        Power that is added to that of a band.
    gain, offset
        What the logarithm to the base of 10 is multiplied by, and what is added.
    lowest, highest
        Limits of a feature.
    """

    name = "log_mel"

    rate: int = 16_000
    window: int = 1_024
    hop: int = 512
    points: int = 1_024
    shape: str = "hamming"
    periodic: bool = False
    emphasis: float = 0.96875
    bands: int = 40
    low: float = 0.0
    high: float = 8_000.0
    gain: float = 10 / 64
    offset: float = 52 / 64
    lowest: float = 0.0
    highest: float = 1.0

    def __post_init__(self) -> None:
        self.check()
        if self.shape not in WINDOWS:
            raise ValueError(f"a window is {', '.join(WINDOWS)}, not {self.shape!r}")
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise ValueError(
                f"bands lie between 0 and {self.rate / 2:g} Hz, half of {self.rate} samples per "
                f"second, not between {self.low:g} and {self.high:g}"
            )
        empty = [n for n, row in enumerate(self.weights) if not row.any()]
        if empty:
            raise ValueError(
                f"{len(empty)} of {self.bands} bands have no bin of {self.rate / self.points:g} "
                f"Hz, the first of them band {empty[0]}: take more points, or fewer bands"
            )

    @cached_property
    def values(self) -> FloatArray:
        """The window."""
        period = self.window if self.periodic else self.window - 1
        return WINDOWS[self.shape](np.arange(self.window, dtype=np.float64), period)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights [bands, points / 2 + 1] of the power of bins."""
        return triangles(self.rate, self.points, self.bands, self.low, self.high)


_FRONTS: Mapping[str, type[LogSpectrum]] = {kind.name: kind for kind in (LogMel, LogBands)}


@dataclass(frozen=True)
class LogMelRequant:
    """Features of frames of samples of 16 bits as codes: one integer for each real number above.

    ``y = 2**e * x[n] - p * x[n - 1]``, ``u = round(y * w[n] / 2**a)``, ``w`` being the window in
    steps of ``2**-16``; the transform has 26 bits; ``P = floor((re**2 + im**2) / 2**8)``, or
    ``floor(sqrt(re**2 + im**2))`` for magnitudes, which has 25 bits; ``S`` is
    the sum of ``P`` times weights in steps of ``2**-14``, below ``2**57``, and of ``floor``; ``L``
    is :func:`log2` of it, where it is at least 1, else 0;
    ``q = clip(floor((L * mult + bias) / 2**shift) + zero_point)``.

    Parameters
    ----------
    front
        What is computed.
    mult, bias, shift
        The last step. ``bias`` has the half that rounds.
    zero_point, lo, hi
        Zero point and limits of the codes.
    floor
        What is added to the power in a band: a multiple of ``2**9`` below ``2**57``.
    """

    front: LogSpectrum
    mult: int
    bias: int
    shift: int
    zero_point: int
    lo: int
    hi: int
    floor: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.mult < 1 << FACTOR_BITS:
            raise ValueError(f"mult of log_mel has {FACTOR_BITS} bits, not {self.mult}")
        if not 0 <= self.floor < 1 << SUM_BITS or self.floor % (1 << FLOOR_STEP_BITS):
            raise ValueError(
                f"a floor is a multiple of {1 << FLOOR_STEP_BITS} below 2**{SUM_BITS}, not "
                f"{self.floor}"
            )

    @property
    def emphasis(self) -> tuple[int, int]:
        """Return ``(p, e)``: the emphasis is ``p / 2**e``."""
        p, e = self.front.emphasis_steps, EMPHASIS_BITS
        while e and p % 2 == 0:
            p, e = p // 2, e - 1
        return p, e

    @property
    def input_shift(self) -> int:
        """Return how many bits of a windowed sample are cut: it fills the transform's numbers."""
        _, e = self.emphasis
        is_emphasized = self.front.emphasis > 0
        return SAMPLE_BITS + is_emphasized + e + FACTOR_BITS - NUMBER_BITS

    @cached_property
    def window(self) -> IntArray:
        """The window in steps of ``2**-16``; the greatest value is a step below 1."""
        steps = np.floor(self.front.values * (1 << FACTOR_BITS) + 0.5)
        return steps.clip(0, (1 << FACTOR_BITS) - 1).astype(np.int64)

    @cached_property
    def fft(self) -> RealFft:
        """The transform."""
        return RealFft(self.front.points, NUMBER_BITS, FACTOR_BITS)

    @cached_property
    def bank(self) -> FilterBank:
        """The weights in steps of ``2**-14``; the greatest weight is a step below 1."""
        steps = np.floor(self.front.weights * (1 << FILTER_BITS) + 0.5)
        limit = (1 << FILTER_BITS) - 1
        return FilterBank.of(steps.clip(0, limit).astype(np.int64))

    def windowed(self, samples: IntArray, before: IntArray | int = 0) -> IntArray:
        """Return the numbers that go into the transform, [..., frames, window].

        Parameters
        ----------
        samples
            Samples [..., samples].
        before
            The one before them.
        """
        p, e = self.emphasis
        earlier = np.concatenate([np.broadcast_to(before, (*samples.shape[:-1], 1)),
                                  samples[..., :-1]], axis=-1)  # fmt: skip
        emphasized = (samples << e) - p * earlier
        frames = emphasized[..., self.front.places(samples.shape[-1])] * self.window
        shift = self.input_shift
        return wrap((frames + (1 << shift - 1)) >> shift, NUMBER_BITS)

    def sums(self, windowed: IntArray) -> IntArray:
        """Return the sums of what is in each band and of the floor, [..., bands]."""
        padded = np.zeros((*windowed.shape[:-1], self.front.points), np.int64)
        padded[..., : self.front.window] = windowed
        real, imag = self.fft.apply(padded)
        energy = real * real + imag * imag
        bins = energy >> POWER_SHIFT if self.front.power == 2 else floor_root(energy)
        return self.bank.apply(bins) + self.floor

    def codes(self, sums: IntArray) -> IntArray:
        """Return the codes of sums."""
        logarithm = log2(np.maximum(sums, 1))
        scaled = (logarithm * self.mult + self.bias) >> self.shift
        return np.asarray((scaled + self.zero_point).clip(self.lo, self.hi))

    def apply(self, samples: ArrayLike, before: IntArray | int = 0) -> IntArray:
        """Return the codes [..., frames, bands] of samples of 16 bits [..., samples]."""
        return self.codes(self.sums(self.windowed(np.asarray(samples, np.int64), before)))

    def to_json(self) -> JsonObject:
        """Plain JSON values."""
        numbers = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**numbers, "front": self.front.to_json()}

    @classmethod
    def from_json(cls, value: JsonObject) -> LogMelRequant:
        """Inverse of :meth:`to_json`."""
        front = dict(value["front"])
        kind = _FRONTS[front.pop("name")]
        return cls(**{**value, "front": kind.from_json(front)})


def choose_log_mel(
    front: LogSpectrum, target: QType, step: float = 1 / (1 << SAMPLE_BITS - 1)
) -> LogMelRequant:
    """Find the integers that map features onto codes of a format.

    The shift is the greatest for which mult has 16 bits.

    Parameters
    ----------
    step
        What a step of a sample stands for.

    Raises
    ------
    ValueError
        If a step of the logarithm is more than a code, or the floor more than any power.
    """
    assert isinstance(target.scale, float), "activations have one scale"
    # a code per step of 2**-16 of the logarithm to the base of 2
    factor = front.gain * math.log10(2) * 2.0**-LOG_BITS / target.scale
    shift = FACTOR_BITS - math.ceil(math.log2(factor))
    mult = math.floor(factor * 2.0**shift + 0.5)
    if mult == 1 << FACTOR_BITS:
        shift, mult = shift - 1, mult >> 1
    if shift < 1:
        raise ValueError(f"its step of {target.scale:g} is too small: a logarithm has 16 bits")
    draft = LogMelRequant(front, mult, 0, shift, target.zero_point, target.lo, target.hi)
    # A power, or magnitude, of 1 of the real transform, in the steps of the integers' sums.
    _, e = draft.emphasis
    unit = 2.0 ** (FACTOR_BITS + e - draft.input_shift) / step
    unit *= draft.fft.gain / front.points
    one = (unit**2 * front.points) ** (front.power / 2) * 2.0**FILTER_BITS
    one *= 2.0**-POWER_SHIFT if front.power == 2 else 1.0
    zero = -math.log2(one) * (1 << LOG_BITS) * mult
    bias = zero + front.offset / target.scale * 2.0**shift + 2.0 ** (shift - 1)
    lo, hi = target.quantize([front.lowest, front.highest]).tolist()
    floor = round(front.floor * one / (1 << FLOOR_STEP_BITS)) << FLOOR_STEP_BITS
    return replace(draft, bias=math.floor(bias + 0.5), lo=lo, hi=hi, floor=floor)
