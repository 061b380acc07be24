"""Filter banks: sums of the power of neighbouring bins, with integer weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray

__all__ = ["Filter", "FilterBank", "mel", "triangles"]


class Filter(NamedTuple):
    """Weights of the bins that a filter reads.

    Attributes
    ----------
    first
        The first bin.
    weights
        Weights from this bin on.
    """

    first: int
    weights: tuple[int, ...]


@dataclass(frozen=True)
class FilterBank:
    """Sums of a spectrum's power: ``sum[c] = sum over k of weight[c, k] * power[k]``, exact.

    Parameters
    ----------
    filters
        One for each channel.
    """

    filters: tuple[Filter, ...]

    @classmethod
    def of(cls, weights: IntArray) -> FilterBank:
        """Return the bank of weights [channels, bins]; a filter of zeros reads one bin.

        No filter begins before the one in front of it, or farther than behind that one's last bin:
        those that would are given weights of 0.
        """
        firsts, lasts = [0] * len(weights), [0] * len(weights)
        heard = np.flatnonzero(weights.any(axis=0))
        highest = int(heard[-1]) if heard.size else 1
        following = None
        for n in reversed(range(len(weights))):
            used = np.flatnonzero(weights[n])
            if used.size:
                firsts[n], lasts[n] = int(used[0]), int(used[-1])
            else:
                firsts[n] = lasts[n] = highest if following is None else following
            if following is not None:
                firsts[n] = min(firsts[n], following)
                lasts[n] = max(lasts[n], following - 1)
            following = firsts[n]
        return cls(
            tuple(
                Filter(first, tuple(map(int, row[first : last + 1])))
                for row, first, last in zip(weights, firsts, lasts, strict=True)
            )
        )

    @property
    def channels(self) -> int:
        """Number of sums."""
        return len(self.filters)

    @property
    def lengths(self) -> tuple[int, ...]:
        """Number of weights of each filter."""
        return tuple(len(each.weights) for each in self.filters)

    def apply(self, power: ArrayLike) -> IntArray:
        """Return the sums [..., channels] of the power of bins [..., bins]."""
        power = np.asarray(power, np.int64)
        return np.stack(
            [
                power[..., each.first : each.first + len(each.weights)]
                @ np.asarray(each.weights, np.int64)
                for each in self.filters
            ],
            axis=-1,
        )


def mel(frequencies: ArrayLike) -> FloatArray:
    """Return frequencies in Hz on the mel scale, ``1127 ln(1 + f / 700)``."""
    return np.asarray(1127.0 * np.log1p(np.asarray(frequencies, np.float64) / 700.0))


def triangles(rate: float, points: int, channels: int, low: float, high: float) -> FloatArray:
    """Return weights [channels, points / 2 + 1] of triangles of equal widths on the mel scale.

    A triangle reaches from the middle of the one before to that of the next one, where it is 0;
    its middle is 1. The bin of 0 Hz has no weight.
    """
    bins = mel(np.arange(points // 2 + 1) * (rate / points))
    edges = np.linspace(mel(low), mel(high), channels + 2)
    before, middle, after = (edges[n : n + channels, None] for n in range(3))
    weights = np.minimum((bins - before) / (middle - before), (after - bins) / (after - middle))
    weights[:, 0] = 0
    return np.asarray(weights.clip(0, None))
