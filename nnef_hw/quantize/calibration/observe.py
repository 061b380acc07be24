"""Observations of a network's activations on samples: ranges, means and histograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph
from nnef_hw.reference import iterate_float
from nnef_hw.reference.visible import EVERYTHING, Interval, visible_intervals

__all__ = ["Histogram", "Observation", "Progress", "narrowed", "observe", "steps_of"]

Progress = Callable[[str, int, int], None]
"""Takes what is being done, how many samples are done, and how many there are."""

_HALF = 4096
"""Bins on either side of 0."""

_TINY = 1e-300

STEPS = (1.0, 1 / 255, 1 / 256)
"""Steps of the bytes of cameras, as they are or as numbers up to 1."""

_OFF_STEP = 1e-4
"""By so much of a step may a number of single precision miss one."""

_CHUNK_VALUES = 1 << 22
"""Activations that are held at a time."""

_WORTH = 2.0
"""How much narrower a range must become for values that no reader can tell apart to be one.

Half as wide is one bit. Where less is gained, the calibration method alone decides.
"""


class Histogram:
    """Counts of values in bins of one width, a power of two that grows with the values.

    Bin n holds ``[(n - 4096) * width, (n - 4095) * width)``.
    """

    def __init__(self) -> None:
        self.width = 0.0
        self.counts = np.zeros(2 * _HALF, np.int64)

    def add(self, x: Array, magnitude: float) -> None:
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
    """Values of an activation, of which those that no reader can tell apart count as one.

    Parameters
    ----------
    lo, hi
        Least and greatest value, 0 included.
    mean
        [1, ...], of the values as they are.
    cut_below, cut_above
        Whether values below ``lo``, or above ``hi``, were left out: a format must have codes for
        all that is left.
    steps
        Those of :data:`STEPS` that all values of an input of the graph are multiples of.
    """

    lo: float
    hi: float
    mean: NDArray[np.float64]
    histogram: Histogram
    count: int = 0
    cut_below: bool = False
    cut_above: bool = False
    steps: tuple[float, ...] = ()

    @property
    def seen(self) -> Interval:
        """The interval beyond which readers told nothing apart; infinite where none had more."""
        return Interval(
            self.lo if self.cut_below else -math.inf, self.hi if self.cut_above else math.inf
        )

    def add(self, x: Array, visible: Interval) -> None:
        """Take values, with the interval beyond which readers tell nothing apart.

        NaN and infinity, which tables map to their limits, count as 0 where readers see them.
        """
        visible = visible.with_all(Interval(0.0, 0.0))
        below, above = (
            bool(math.isfinite(end) and (x == infinity).any())
            for end, infinity in ((visible.lo, -math.inf), (visible.hi, math.inf))
        )
        if below or above:
            x = x.clip(visible.lo if below else -math.inf, visible.hi if above else math.inf)
        if not np.isfinite(x).all():
            x = np.where(np.isfinite(x), x, 0.0)
        self.mean += x.sum(axis=0, keepdims=True, dtype=np.float64)
        self.count += len(x)
        seen = min(float(x.min()), 0.0), max(float(x.max()), 0.0)
        lo, hi = kept = narrowed(seen, visible)
        if lo < hi and kept != seen:
            x = x.clip(lo, hi)
            below, above = below or lo > seen[0], above or hi < seen[1]
            seen = kept
        self.lo, self.hi = min(self.lo, seen[0]), max(self.hi, seen[1])
        self.cut_below, self.cut_above = self.cut_below or below, self.cut_above or above
        self.histogram.add(x, max(-self.lo, self.hi))


def narrowed(span: tuple[float, float], visible: Interval) -> tuple[float, float]:
    """Return the part of a range that readers see, or all of it where that gains too little.

    0 belongs to every range, and to what is seen.
    """
    lo, hi = min(span[0], 0.0), max(span[1], 0.0)
    kept = Interval(lo, hi).within(visible.with_all(Interval(0.0, 0.0)))
    is_worth = not math.isfinite(hi - lo) or hi - lo >= _WORTH * (kept.hi - kept.lo)
    return (kept.lo, kept.hi) if is_worth else span


def observe(
    graph: Graph, samples: Mapping[str, Array], progress: Progress | None = None
) -> dict[str, Observation]:
    """Return the observation of every activation on real samples.

    One pass over them, in batches: memory does not grow with their number.
    """
    found: dict[str, Observation] = {}
    total = len(next(iter(samples.values()))) if samples else 0
    volume = sum(tensor.volume for tensor in graph.tensors.values() if tensor.data is None)
    done = 0
    for values in iterate_float(graph, samples, chunk=max(1, min(64, _CHUNK_VALUES // volume))):
        first = next(iter(values))
        done += len(values[first]) // graph.steps(first)
        visible = visible_intervals(graph, values)
        for name, x in values.items():
            if name not in found:
                steps = STEPS if name in graph.inputs else ()
                found[name] = Observation(
                    0.0, 0.0, np.zeros((1, *x.shape[1:])), Histogram(), steps=steps
                )
            old = found[name]
            old.steps = steps_of(x, old.steps)
            old.add(x, visible.get(name, EVERYTHING))
        if progress is not None:
            progress("calibrating", done, total)
    for observation in found.values():
        observation.mean /= observation.count
    return found


def steps_of(x: Array, steps: Iterable[float] = STEPS) -> tuple[float, ...]:
    """Return the steps that all values are whole multiples of."""
    if not np.isfinite(x).all():
        return ()
    found = []
    for step in steps:
        multiples = x / step
        if (np.abs(multiples - np.round(multiples)) <= _OFF_STEP).all():
            found.append(step)
    return tuple(found)
