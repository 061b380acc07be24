"""Ranges and means of a network's activations over calibration samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph
from nnef_hw.reference import iterate_float

__all__ = ["Range", "observe"]

_BINS = 2048
_SHARES = np.linspace(0.3, 1.0, 71)


@dataclass(frozen=True, slots=True, eq=False)
class Range:
    """Least and greatest value of an activation, 0 included, and its mean [1, ...] over samples."""

    lo: float
    hi: float
    mean: NDArray[np.float64]


def observe(
    graph: Graph, samples: Mapping[str, NDArray[Any]], bits: int, clipping: str = "minmax"
) -> dict[str, Range]:
    """Return the range of every activation over real samples.

    Parameters
    ----------
    bits
        Width of codes, which the best clipping depends on.
    clipping
        ``minmax``: the least and greatest finite value seen; ``mse``: the part of that range with
        the least mean squared error of quantized values, found on a histogram.
    """
    ranges: dict[str, Range] = {}
    count = 0
    for values in iterate_float(graph, samples):
        count += len(next(iter(values.values())))
        for name, activation in values.items():
            x = _finite(activation)
            total = x.sum(axis=0, keepdims=True, dtype=np.float64)
            old = ranges.get(name, Range(0.0, 0.0, np.zeros(total.shape)))
            lo, hi = min(old.lo, float(x.min())), max(old.hi, float(x.max()))
            ranges[name] = Range(lo, hi, old.mean + total)
    ranges = {name: replace(found, mean=found.mean / count) for name, found in ranges.items()}
    if clipping == "minmax":
        return ranges
    histograms = {name: np.zeros(_BINS, np.int64) for name in ranges}
    for values in iterate_float(graph, samples):
        for name, x in values.items():
            limits = (ranges[name].lo, ranges[name].hi)
            if limits[0] < limits[1]:
                histograms[name] += np.histogram(_finite(x), _BINS, limits)[0]
    return {name: _clip(ranges[name], histograms[name], bits) for name in ranges}


def _finite(x: NDArray[Any]) -> NDArray[Any]:
    """Put 0 for NaN and infinity, which tables map to their limits."""
    finite = np.isfinite(x)
    return x if finite.all() else np.where(finite, x, 0.0)


def _clip(full: Range, histogram: NDArray[np.int64], bits: int) -> Range:
    """Shrink both ends of a range, on a grid of shares, to the least squared error."""
    step = (full.hi - full.lo) / _BINS
    centers = full.lo + step * (np.arange(_BINS) + 0.5)

    def error(lo: float, hi: float) -> float:
        outside = np.maximum(np.maximum(lo - centers, centers - hi), 0.0)
        noise = ((hi - lo) / ((1 << bits) - 1)) ** 2 / 12
        return float(histogram @ np.where(outside > 0, outside**2, noise))

    if not histogram.any():
        return full
    candidates = [(error(full.lo * s, full.hi * t), s, t) for s in _SHARES for t in _SHARES]
    _, s, t = min(candidates, key=lambda c: (c[0], -c[1], -c[2]))
    return replace(full, lo=full.lo * float(s), hi=full.hi * float(t))
