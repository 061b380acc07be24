"""Logarithms of the power in bands that a network brings along: its own window and weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nnef_hw.arithmetic.audio.log_spectrum import UNLIMITED, LogSpectrum
from nnef_hw.arithmetic.numerics import FloatArray

__all__ = ["LogBands"]


@dataclass(frozen=True, kw_only=True)
class LogBands(LogSpectrum):
    """Features of frames of audio, in real numbers, with a window and weights as numbers.

    Parameters
    ----------
    shape
        The window: numbers between 0 and 1.
    first, lengths
        The first bin of each band, and how many bins it has.
    factors
        Weights between 0 and 1 of all bands' bins, band by band.
    """

    name = "log_bands"

    shape: tuple[float, ...]
    first: tuple[int, ...]
    lengths: tuple[int, ...]
    factors: tuple[float, ...]

    def __post_init__(self) -> None:
        self.check()
        inside = [0 <= x <= 1 for x in (*self.shape, *self.factors)]
        if not all(inside):
            raise ValueError("the values of a window and of weights lie between 0 and 1")
        if len(self.lengths) != len(self.first) or sum(self.lengths) != len(self.factors):
            raise ValueError(
                f"{len(self.first)} bands begin, of {len(self.lengths)} lengths; "
                f"{len(self.factors)} weights are not the {sum(self.lengths)} of these"
            )
        ends = zip(self.first, self.lengths, strict=True)
        if any(first < 1 or first + length > self.points // 2 for first, length in ends):
            raise ValueError(
                f"bands lie between bin 1 and bin {self.points // 2 - 1}: the transform gives no "
                f"power of bin 0 and of bin {self.points // 2}"
            )

    @classmethod
    def of(
        cls, *, hop: int, points: int, window: FloatArray, weights: FloatArray, floor: float,
        gain: float, offset: float, lowest: float | None = None, power: int = 2,
    ) -> Self:  # fmt: skip
        """Return ``log10(sum + floor) * gain + offset``, of a spectrum that nothing divides.

        Parameters
        ----------
        window
            Values of the window, of any size.
        weights
            Weights [bands, points / 2 + 1] of bins, of any size.
        lowest
            The least feature; None if there is no limit.
        power
            2 for the power of bins, 1 for magnitudes.

        Raises
        ------
        ValueError
            If the integers cannot compute it: the number that is wrong.
        """
        loudest, heaviest = float(np.abs(window).max()), float(weights.max())
        unit = (loudest**2 * points) ** (power / 2) * heaviest
        spans = [np.flatnonzero(row)[[0, -1]] if row.any() else (1, 0) for row in weights]
        return cls(
            hop=hop, points=points, shape=tuple(map(float, window / loudest)),
            first=tuple(int(begin) for begin, _ in spans),
            lengths=tuple(int(end - begin + 1) for begin, end in spans),
            factors=tuple(
                float(x) / heaviest
                for row, (begin, end) in zip(weights, spans, strict=True)
                for x in row[begin : end + 1]
            ),
            floor=floor / unit, gain=gain, offset=offset + gain * float(np.log10(unit)),
            lowest=-UNLIMITED if lowest is None else lowest, power=power,
        )  # fmt: skip

    @property
    def window(self) -> int:
        """Samples of a frame."""
        return len(self.shape)

    @cached_property
    def values(self) -> FloatArray:
        """The window."""
        return np.asarray(self.shape, np.float64)

    @cached_property
    def weights(self) -> FloatArray:
        """Weights [bands, points / 2 + 1] of the power of bins."""
        weights, used = np.zeros((len(self.first), self.points // 2 + 1)), 0
        for row, first, length in zip(weights, self.first, self.lengths, strict=True):
            row[first : first + length] = self.factors[used : used + length]
            used += length
        return weights
