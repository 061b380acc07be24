"""Logarithms of the power in bands of a spectrum, of frames of samples, in real numbers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.audio.spectrum import RealFft
from nnef_hw.arithmetic.numerics import FloatArray, IntArray
from nnef_hw.arithmetic.records import JsonObject

__all__ = ["EMPHASIS_BITS", "FACTOR_BITS", "NUMBER_BITS", "UNLIMITED", "LogSpectrum", "mirror"]

ScalarArray = TypeVar("ScalarArray", FloatArray, IntArray)

NUMBER_BITS = 26
"""Bits of every number of the transform."""

FACTOR_BITS = 16
"""Bits of values of the window, of cosines and of a mult: none has a sign."""

EMPHASIS_BITS = 9
"""Most bits of an emphasis below 1: samples of 16 bits fill the numbers of the transform then."""

UNLIMITED = 1e30
"""A limit that no logarithm reaches."""

LEAST_POWER = 1e-30
"""The least power that has a logarithm."""


def mirror(samples: ScalarArray, counts: tuple[int, int]) -> ScalarArray:
    """Return samples [..., T] with some more, mirrored at the first one and at the last one."""
    around = [(0, 0)] * (samples.ndim - 1) + [counts]
    return np.pad(samples, around, mode="reflect") if any(counts) else samples


@dataclass(frozen=True, kw_only=True)
class LogSpectrum(ABC):
    """Features of frames of audio, in real numbers.

    ``y[n] = x[n] - emphasis * x[n - 1]``, what is before the first sample being 0; of each frame
    the power of its windowed transform divided by ``points``, or its root, summed up with the
    weights of each band; then ``log10(max(sum + floor, 1e-30)) * gain + offset``, cut to
    ``lowest .. highest``.

    Parameters
    ----------
    hop
        Samples from a frame to the next one.
    points
        Points of the transform: a power of two, not less than ``window``; zeros fill it up.
    emphasis
        How much of a sample is taken from the next one.
    floor
        Power that is added to that of a band.
    gain, offset
        What the logarithm to the base of 10 is multiplied by, and what is added.
    lowest, highest
        Limits of a feature.
    power
        2 for the power of bins, 1 for magnitudes.
    """

    name: ClassVar[str]
    """Name of its operator."""

    hop: int
    points: int
    emphasis: float = 0.0
    floor: float = 0.0
    gain: float = 1.0
    offset: float = 0.0
    lowest: float = -UNLIMITED
    highest: float = UNLIMITED
    power: int = 2

    @property
    @abstractmethod
    def window(self) -> int:
        """Samples of a frame."""

    @property
    @abstractmethod
    def values(self) -> FloatArray:
        """The window: ``window`` numbers between 0 and 1."""

    @property
    @abstractmethod
    def weights(self) -> FloatArray:
        """Weights [bands, points / 2 + 1] of the power of bins, between 0 and 1."""

    def check(self) -> None:
        """Refuse what the integers cannot compute.

        Raises
        ------
        ValueError
            With the number that is wrong.
        """
        RealFft(self.points, NUMBER_BITS, FACTOR_BITS)
        if not 2 <= self.window <= self.points:
            raise ValueError(f"{self.window} samples of a window, and {self.points} points")
        if not 1 <= self.hop <= self.window:
            raise ValueError(
                f"frames begin 1 to {self.window} samples after each other, the length of a "
                f"window, not {self.hop}"
            )
        if not 0 <= self.emphasis < 1:
            raise ValueError(f"an emphasis is at least 0 and below 1, not {self.emphasis:g}")
        if self.power not in {1, 2}:
            raise ValueError(f"a power is 1, of magnitudes, or 2, not {self.power!r}")
        if not self.floor >= 0:
            raise ValueError(f"a power that is added is not negative: {self.floor:g}")
        if not self.gain > 0:
            raise ValueError(f"the gain of a logarithm is positive, not {self.gain:g}")
        if not self.lowest < self.highest:
            raise ValueError(f"features between {self.lowest:g} and {self.highest:g}: none")

    @property
    def emphasis_steps(self) -> int:
        """Emphasis in steps of ``2**-9``, rounded to the nearest one below 1."""
        steps = 1 << EMPHASIS_BITS
        return min(round(self.emphasis * steps), steps - 1)

    @property
    def reach(self) -> int:
        """Samples that a frame is computed of, the one before its first among them."""
        return self.window + (self.emphasis > 0)

    def frames(self, samples: int) -> int:
        """Return how many frames there are in so many samples."""
        return max(0, (samples - self.window) // self.hop + 1)

    def places(self, samples: int) -> IntArray:
        """Return which samples each frame reads, [frames, window]."""
        return np.arange(self.frames(samples))[:, None] * self.hop + np.arange(self.window)

    def sums(self, samples: ArrayLike, before: ArrayLike = 0.0) -> FloatArray:
        """Return the power, or magnitudes, in bands [..., frames, bands] of samples [..., samples].

        Parameters
        ----------
        before
            The sample before them, [..., 1].
        """
        x = np.asarray(samples, np.float64)
        earlier = np.broadcast_to(np.asarray(before, np.float64), (*x.shape[:-1], 1))
        y = x - self.emphasis * np.concatenate([earlier, x[..., :-1]], axis=-1)
        frames = y[..., self.places(x.shape[-1])] * self.values
        magnitude = np.abs(np.fft.rfft(frames, self.points)) / math.sqrt(self.points)
        return np.asarray(magnitude**self.power @ self.weights.T)

    def apply(self, samples: ArrayLike, before: ArrayLike = 0.0) -> FloatArray:
        """Return the features [..., frames, bands] of samples [..., samples] between -1 and 1.

        Parameters
        ----------
        before
            The sample before them, [..., 1].
        """
        sums = self.sums(samples, before) + self.floor
        logarithm = np.log10(np.maximum(sums, LEAST_POWER))
        return np.asarray((logarithm * self.gain + self.offset).clip(self.lowest, self.highest))

    def to_json(self) -> JsonObject:
        """Plain JSON values."""
        return {"name": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, value: JsonObject) -> Self:
        """Inverse of :meth:`to_json`, without the name; lists are tuples."""
        fields: JsonObject = {
            key: tuple(x) if isinstance(x, list) else x for key, x in value.items()
        }
        return cls(**fields)
