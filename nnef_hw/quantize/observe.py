"""Observations of a network's activations on samples: ranges, means and histograms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph
from nnef_hw.reference import iterate_float

__all__ = ["Histogram", "Observation", "Progress", "observe"]

Progress = Callable[[str, int, int], None]
"""Takes what is being done, how many samples are done, and how many there are."""

_HALF = 4096
"""Bins on either side of 0."""

_TINY = 1e-300

_CHUNK_VALUES = 1 << 22
"""Activations that are held at a time."""


class Histogram:
    """Counts of values in bins of one width, a power of two that grows with the values.

    Bin n holds ``[(n - 4096) * width, (n - 4095) * width)``.
    """

    def __init__(self) -> None:
        self.width = 0.0
        self.counts = np.zeros(2 * _HALF, np.int64)

    def add(self, x: NDArray[Any], magnitude: float) -> None:
        """Count finite values, none of them larger than ``magnitude``."""
        least = 2.0 ** np.floor(np.log2(max(magnitude, _TINY)) + 1) / _HALF
        if not self.width:
            self.width = least
        while self.width < least:
            merged = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts[:] = 0
            self.counts[_HALF // 2 : -_HALF // 2] = merged
            self.width *= 2
        bins = np.floor(x.reshape(-1) / self.width).astype(np.int64) + _HALF
        self.counts += np.bincount(bins, minlength=2 * _HALF)

    @property
    def centers(self) -> NDArray[np.float64]:
        """Middle of every bin."""
        return np.asarray((np.arange(-_HALF, _HALF) + 0.5) * self.width)


@dataclass(slots=True, eq=False)
class Observation:
    """Least and greatest value of an activation, 0 included; mean [1, ...]; all values in bins."""

    lo: float
    hi: float
    mean: NDArray[np.float64]
    histogram: Histogram
    count: int = 0


def observe(
    graph: Graph, samples: Mapping[str, NDArray[Any]], progress: Progress | None = None
) -> dict[str, Observation]:
    """Return the observation of every activation on real samples.

    One pass over them, in batches: memory does not grow with their number. NaN and infinity,
    which tables map to their limits, count as 0.
    """
    found: dict[str, Observation] = {}
    total = len(next(iter(samples.values()))) if samples else 0
    volume = sum(tensor.volume for tensor in graph.tensors.values() if tensor.data is None)
    done = 0
    for values in iterate_float(graph, samples, chunk=max(1, min(64, _CHUNK_VALUES // volume))):
        first = next(iter(values))
        done += len(values[first]) // graph.steps(first)
        for name, activation in values.items():
            x = activation if np.isfinite(activation).all() else _finite(activation)
            mean = x.sum(axis=0, keepdims=True, dtype=np.float64)
            if name not in found:
                found[name] = Observation(0.0, 0.0, np.zeros(mean.shape), Histogram())
            old = found[name]
            old.lo, old.hi = min(old.lo, float(x.min())), max(old.hi, float(x.max()))
            old.mean += mean
            old.count += len(x)
            old.histogram.add(x, max(-old.lo, old.hi))
        if progress is not None:
            progress("calibrating", done, total)
    for observation in found.values():
        observation.mean /= observation.count
    return found


def _finite(x: NDArray[Any]) -> NDArray[Any]:
    return np.where(np.isfinite(x), x, 0.0)
