"""Choice of the range of observed values that a format covers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.quantize.calibration.observe import Observation
from nnef_hw.quantize.calibration.scheme import Scheme, next_power_of_two

__all__ = ["choose_bytes", "choose_range"]

_RARE = 1e-9
"""Share of values that a bin has which steps leave empty."""

_BYTE = 8

_SHARES = np.linspace(0.2, 1.0, 81)


def choose_range(found: Observation, scheme: Scheme) -> tuple[float, float]:
    """Return the least and the greatest value that should not saturate."""
    if scheme.calibration == "minmax" or found.lo == found.hi:
        return found.lo, found.hi
    used = found.histogram.counts.nonzero()[0]
    inside = slice(int(used[0]), int(used[-1]) + 1)
    counts = found.histogram.counts[inside].astype(np.float64)
    centers = np.clip(found.histogram.centers[inside], found.lo, found.hi)
    if scheme.calibration == "percentile":
        lo, hi = _percentile(counts, centers, scheme.percentile / 100)
    elif scheme.calibration == "mse":
        lo, hi = _least_error(counts, centers, found, scheme.activation_bits)
    else:
        lo, hi = _least_divergence(counts, centers, found, scheme.activation_bits)
    return min(lo, 0.0), max(hi, 0.0)


def choose_bytes(found: Observation, scheme: Scheme, *, is_integer: bool = False) -> QType | None:
    """Return the format of an input whose codes are the bytes that the samples were made of.

    None if the samples are no whole steps, or they could as well be a few numbers of a format that
    has others between them: at least half of the codes have to be in use, unless the model says
    that its input ``is_integer``.
    """
    if scheme.activation_bits < _BYTE:
        return None
    signed = found.lo < 0
    most = (1 << _BYTE - signed) - 1
    for step in found.steps:
        least, greatest = -found.lo / step, found.hi / step
        fits = greatest <= most + 0.5 and least <= (most + 1 if signed else 0)
        is_used = max(least, greatest) > most / 2 or is_integer
        is_given = not scheme.power_of_two or next_power_of_two(step) == step
        if fits and is_used and is_given:
            return QType(scheme.activation_bits, signed=signed, scale=step)
    return None


def _percentile(
    counts: NDArray[np.float64], centers: NDArray[np.float64], share: float
) -> tuple[float, float]:
    """Cut off the same share of values at both ends."""
    below = np.cumsum(counts) / counts.sum()
    cut = (1 - share) / 2
    first = int(np.searchsorted(below, cut, side="right"))
    last = int(np.searchsorted(below, 1 - cut, side="left"))
    return float(centers[first]), float(centers[min(last, len(centers) - 1)])


def _least_error(
    counts: NDArray[np.float64], centers: NDArray[np.float64], found: Observation, bits: int
) -> tuple[float, float]:
    """Balance saturation against rounding noise; both ends move independently."""
    used = counts > 0

    def excess(ends: NDArray[np.float64], side: int) -> NDArray[np.float64]:
        beyond = used & (side * centers > (side * ends).min())
        distance = side * (centers[beyond] - ends)
        return np.asarray((np.maximum(distance, 0.0) ** 2) @ counts[beyond])

    lows, highs = found.lo * _SHARES[:, None], found.hi * _SHARES[:, None]
    outside = excess(lows, -1)[:, None] + excess(highs, 1)
    noise = ((highs.T - lows) / ((1 << bits) - 1)) ** 2 / 12
    uneven = counts.sum() - counts[_bin_of_zero(centers)]  # 0 has a code of its own
    s, t = np.unravel_index(np.argmin(outside + noise * uneven), outside.shape)
    return float(lows[s, 0]), float(highs[t, 0])


def _least_divergence(
    counts: NDArray[np.float64], centers: NDArray[np.float64], found: Observation, bits: int
) -> tuple[float, float]:
    """Compare the histogram with what is left of it in steps; both ends shrink together.

    Kullback-Leibler divergence of the histogram, its tails added to the last bins inside, from
    the mean of all bins of a step that are not empty.
    """
    codes = 1 << bits
    counts = counts.copy()
    zero = _bin_of_zero(centers)
    nearest = slice(max(zero - 1, 0), zero + 1)  # 0 has a code of its own, so have weights of 1e-9
    counts[nearest] = counts[max(zero - 2, 0) : zero + 2].min()
    best, limits = np.inf, (found.lo, found.hi)
    for share in _SHARES:
        lo, hi = found.lo * float(share), found.hi * float(share)
        first, last = np.searchsorted(centers, [lo, hi])
        kept = counts[first:last]
        if not kept.any():
            continue
        index = ((centers[first:last] - lo) / (hi - lo) * codes).astype(np.int64)
        filled = kept > 0
        width = np.bincount(index, filled, codes)[index]
        q = np.where(filled, np.bincount(index, kept, codes)[index] / np.maximum(width, 1), 0.0)
        p = kept.copy()
        p[0] += counts[:first].sum()
        p[-1] += counts[last:].sum()
        p, q = p / p.sum(), q / q.sum()
        both = p > 0
        divergence = float(np.sum(p[both] * np.log(p[both] / np.maximum(q[both], _RARE))))
        if divergence < best:
            best, limits = divergence, (lo, hi)
    return limits


def _bin_of_zero(centers: NDArray[np.float64]) -> int:
    """Return the bin of 0, the first one that has no negative numbers; the last one if all have."""
    return min(int(np.searchsorted(centers, 0.0)), len(centers) - 1)
