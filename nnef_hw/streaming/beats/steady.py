"""Steady state of a simulated accelerator: its interval in the long run, from a few frames.

The ends of frames alone do not tell it. They may be spaced evenly for a hundred frames and wider
ever after: when a branch that takes longer has overtaken one that began later, or when the buffers
before it are full and it holds up another.

But everything in an accelerator happens as soon as some earlier events allow, each a fixed time
after. So if no event of the last frames came more than some cycles after the same event of the
frame before, none ever will: what waits for it is late by no more (:class:`Advances`). This bound
holds though buffers are still filling. Where frames end as far apart as it allows, it is their
interval, unless they do so only because the first frame was late somewhere: a wave that passes
the layers in as many frames as are between, and behind which events follow each other sooner.
Frames are not final while there is one, unless they end as soon as the slowest layer can.

Stages of a Requantizer that stand still, which all do at a time, are the one exception: there an
earlier code may make the next one later. Tests compare long runs with the interval.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil
from operator import attrgetter
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Advances", "Steady", "cycles_per_frame", "find_steady"]

MOST_PERIOD = 8
"""Frames of the longest pattern of spacings that is looked for."""
SPANS = (*range(1, MOST_PERIOD + 1), 12, 16, 24, 48)
"""Frames over which events are compared; some have patterns longer than that of the ends."""
NEVER = 1 << 60


class Series(Protocol):
    """Cycles of one kind of event, the same number in each frame."""

    @property
    def times(self) -> Sequence[int]:
        """All so far, in order."""


class Steady(NamedTuple):
    """The steady state in which frames leave an accelerator in the long run.

    Attributes
    ----------
    cycles, period
        So many frames take so many cycles, for ever.
    settling
        Frames that leave before their ends are spaced like that; None if that many were not
        simulated.
    """

    cycles: int
    period: int
    settling: int | None

    @property
    def mean(self) -> Fraction:
        """Cycles per frame."""
        return Fraction(self.cycles, self.period)

    @property
    def interval(self) -> int:
        """Cycles per frame, rounded up."""
        return ceil(self.mean)


class _Rows:
    """A matrix of integers that grows by rows of ``columns``."""

    def __init__(self, columns: int) -> None:
        self._memory = np.empty((16, columns), np.int64)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, row: NDArray[np.int64]) -> None:
        """Add a row at the end."""
        if self._count == len(self._memory):
            self._memory = np.concatenate([self._memory, np.empty_like(self._memory)])
        self._memory[self._count] = row
        self._count += 1

    @property
    def matrix(self) -> NDArray[np.int64]:
        """All rows so far, not copied."""
        return self._memory[: self._count]


class Advances:
    """Follows by how much events come later from frame to frame.

    Parameters
    ----------
    groups
        The series of each block: of its operands, its inside and its result. No event waits for
        one of an earlier frame outside of its group.
    delay
        Most cycles from an event to one that waits for it, two or more frames later.
    """

    def __init__(self, groups: Sequence[Sequence[Series]], delay: int) -> None:
        unique = {id(series): series for group in groups for series in group}
        places = {key: place for place, key in enumerate(unique)}
        self.series = list(unique.values())
        # The series of all groups in a row, and where each group begins.
        self.members = np.array([places[id(series)] for group in groups for series in group])
        self.begins = np.cumsum([0, *map(len, groups[:-1])])
        self.delay = delay
        self.counts = [[0] * len(self.series)]
        # Of every frame: the events of all series in a row, and how many of each.
        self.events: list[NDArray[np.int64]] = []
        self.sizes: list[NDArray[np.int64]] = []
        self.firsts, self.lasts = _Rows(len(self.series)), _Rows(len(self.series))
        self.largest: dict[int, _Rows] = {}

    def add_frame(self) -> None:
        """Take note of the frame that has just passed."""
        self.counts.append([len(series.times) for series in self.series])

    def _read_frames(self) -> None:
        for before, after in pairwise(self.counts[len(self.events) :]):
            events = array("q")
            for series, begin, end in zip(self.series, before, after, strict=True):
                events.extend(series.times[begin:end])
            flat, sizes = np.array(events, np.int64), np.subtract(after, before)
            self.events.append(flat)
            self.sizes.append(sizes)
            some, ends = sizes > 0, sizes.cumsum()
            firsts, lasts = np.full(len(sizes), NEVER), np.full(len(sizes), -1)
            firsts[some], lasts[some] = flat[(ends - sizes)[some]], flat[ends[some] - 1]
            self.firsts.append(firsts)
            # Of a series without events in this frame, the last one so far.
            self.lasts.append(np.maximum(lasts, self.lasts.matrix[-1]) if self.lasts else lasts)

    def bound(self, period: int) -> int | None:
        """Return the most cycles by which any event will ever come after that of a period before.

        The least that can be proved from the frames so far; None if nothing can be proved yet.
        """
        self._read_frames()
        if len(self.events) < period + 2:
            return None
        largest = self._largest(period)
        # What a larger advance delays directly, or a first frame that was behind none, is past.
        first = np.minimum.reduceat(self.firsts.matrix[-period][self.members], self.begins)
        most_until_now = np.maximum.accumulate(largest.max(axis=1)[: period - 1 : -1])
        for most in np.unique(most_until_now).tolist():
            exceeding = largest > most
            exceeding[:period] = True
            # Last events of frames come one after the other: only the last of the frames counts.
            frame = len(largest) - 1 - exceeding[::-1].argmax(axis=0)
            latest = self.lasts.matrix[frame, np.arange(len(self.series))]
            latest_of_group = np.maximum.reduceat(latest[self.members], self.begins)
            if (first + most >= latest_of_group + self.delay).all():
                return int(most)
        return None

    def has_wave(self, period: int, cycles: int, frames: int) -> bool:
        """Whether any series has come to move by fewer cycles than these, in so many last frames.

        Where buffers fill, layers come to move by more cycles, not by fewer.
        """
        largest = self._largest(period)
        recent = largest[max(period, len(largest) - frames - 1) :]
        before, after = recent[:-1], recent[1:]
        return bool(((before >= cycles) & (after < cycles) & (after > 0)).any())

    def least(self) -> Steady | None:
        """Return the least interval that is proved to be enough; None if none is."""
        proved = []
        for period in SPANS:
            bound = self.bound(period)
            if bound is not None:
                proved.append(Steady(bound, period, None))
        return min(proved, key=attrgetter("mean"), default=None)

    def _largest(self, period: int) -> NDArray[np.int64]:
        """Return the largest advance per frame and series; 0 in frames without one before."""
        largest = self.largest.setdefault(period, _Rows(len(self.series)))
        for frame in range(len(largest), len(self.events)):
            if frame < period:
                largest.append(np.zeros(len(self.series), np.int64))
            else:
                largest.append(self._advances(frame, frame - period))
        return largest.matrix

    def _advances(self, frame: int, earlier: int) -> NDArray[np.int64]:
        """Return by how much an event of each series comes after that of an earlier frame at most.

        0 of a series without events. Padding is written ahead of a frame, in the first frame that
        of the second one too: last events are compared with last ones.
        """
        events, before = self.events[frame], self.events[earlier]
        sizes, sizes_before = self.sizes[frame], self.sizes[earlier]
        largest = np.zeros(len(sizes), np.int64)
        some, ends = sizes > 0, sizes.cumsum()
        if not some.any():
            return largest
        if (sizes != sizes_before).any():
            places = np.arange(len(events)) + np.repeat(sizes_before.cumsum() - ends, sizes)
            # Those before the first are of series with more events than earlier: see below.
            before = before[np.maximum(places, 0)]
        largest[some] = np.maximum.reduceat(events - before, (ends - sizes)[some])
        largest[sizes > sizes_before] = NEVER
        return largest


def find_steady(
    advances: Advances,
    ends: Sequence[int],
    latency: int,
    enough: Steady | None = None,
    *,
    slowest: int = 0,
) -> Steady | None:
    """Return how frames leave in the long run; None if more have to be simulated.

    Parameters
    ----------
    ends
        Cycles in which the frames so far ended.
    latency
        Cycles of the first frame.
    enough
        If frames are proved to leave like that, or sooner, their ends need not show it.
    slowest
        Cycles per frame of the slowest layer: no frames leave sooner for long.
    """
    cycles_of_ends = np.array(ends)
    for period in range(1, min(MOST_PERIOD, (len(ends) - 1) // 2) + 1):
        spacings = cycles_of_ends[period:] - cycles_of_ends[:-period]
        cycles = int(spacings[-1])
        unlike = np.flatnonzero(spacings != cycles)
        settling = int(unlike[-1]) + 1 if len(unlike) else 0
        inside = -(-latency * period // cycles)
        if len(spacings) - settling >= inside:
            for span in (span for span in SPANS if span % period == 0):
                wanted = cycles * (span // period)
                if advances.bound(span) == wanted and (
                    cycles <= slowest * period or not advances.has_wave(span, wanted, inside + 1)
                ):
                    return Steady(cycles, period, settling)
            break
    if enough is not None:
        proved = advances.bound(enough.period)
        if proved is not None and proved <= enough.cycles:
            return Steady(proved, enough.period, None)
    return None


def cycles_per_frame(ends: Sequence[int] | NDArray[np.int64], period: int) -> int | None:
    """Return cycles per frame, rounded up, of the last frames; None if there is only one.

    Parameters
    ----------
    ends
        Cycles in which frames ended.
    period
        Frames of which the mean is taken, if there are more.
    """
    frames = min(period, len(ends) - 1)
    return -(-int(ends[-1] - ends[-1 - frames]) // frames) if frames else None
