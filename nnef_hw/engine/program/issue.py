"""When the words of a part are issued, where a pass ends only when results have left."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from nnef_hw.engine.layers.nest import LayerPart, paced
from nnef_hw.parts.engine.engine import Engine

__all__ = ["Issue", "Retired"]


class Retired(NamedTuple):
    """Words of weights that are read for the last time: how many, in a cycle each from one on."""

    words: int
    first: int


class Issue:
    """The words of a layer, part after part.

    Parameters
    ----------
    engine
        The engine.
    by_lane
        Whether every lane has a result.
    adds
        Whether another tensor is added to them.
    shares
        Whether what is added to results is in the memory, or bank, that is read: for every word of
        it there is a cycle in which none is issued.

    Attributes
    ----------
    retired
        When the words of weights of the last part were read for the last time, if that is not when
        it ended: of a convolution, in the passes of its last pixel.
    """

    def __init__(self, engine: Engine, *, by_lane: bool, adds: bool, shares: bool) -> None:
        self.retired: list[Retired] = []
        self._by_lane = by_lane
        self._pace = engine.pipeline.pace(adds=adds)
        self._word_results = engine.array.lanes // engine.array.results * self._pace
        self._other_stage = engine.pipeline.other_stage(by_lane=by_lane)
        self._shares = shares
        self._results = 0
        self._blocked: deque[int] = deque()

    def run(self, part: LayerPart, begin: int, end: int) -> int:
        """Return the cycle in which the last word is issued.

        Parameters
        ----------
        part
            The part.
        begin
            Cycle in which it begins.
        end
            Cycle of the last word before.
        """
        part = paced(part, self._pace)
        self.retired = []
        if not part.passes[-1].results:
            # Nothing of it waits; results of the part before may still leave then.
            final = begin + part.nest.words
            self._results = max(0, end + self._results - final)
            return final
        if not self._shares:
            # The results of the part before have to leave, too.
            kept = max(begin + part.passes[0].words, end + self._results)
            self._results = part.passes[-1].results
            final = kept + part.cycles - part.passes[0].words
            if not self._by_lane and part.weights:
                self._retire_last(part, begin, kept, final)
            return final
        last, cycle = end, begin
        for n in range(part.repeats):
            retires = n == part.repeats - 1 and not self._by_lane and len(part.weights) > 0
            for words, results in part.passes:
                cycle = self._issue(cycle, words - 1, retires=retires)
                # The last one waits for the results of the pass before, too.
                cycle = max(cycle, last + self._results - 1)
                last = cycle = self._issue(cycle, 1, retires=retires)
                self._results = results
                first = last + self._other_stage
                self._blocked.extend(range(first, first + results, self._word_results))
        return last

    def _retire_last(self, part: LayerPart, begin: int, kept: int, final: int) -> None:
        """Find the cycles of the last pixel's words, of a part whose last one is known."""
        gaps = [
            max(this.words, before.results)
            for before, this in zip((part.passes[-1], *part.passes), part.passes, strict=False)
        ]
        cycle = final - sum(gaps)
        if part.repeats == 1:
            cycle, gaps[0] = begin, kept - begin
        for (words, _), gap in zip(part.passes, gaps, strict=True):
            self._retire(words - 1, cycle + 1)
            cycle += gap
            self._retire(1, cycle)

    def _retire(self, count: int, first: int) -> None:
        """Note words that are read in a cycle each from one on."""
        if not count:
            return
        before = self.retired[-1] if self.retired else Retired(0, first)
        if before.first + before.words == first:
            self.retired[-1:] = [Retired(before.words + count, before.first)]
        else:
            self.retired.append(Retired(count, first))

    def _issue(self, cycle: int, words: int, *, retires: bool) -> int:
        """Issue so many words after a cycle; return that of the last one."""
        if retires:
            for _ in range(words):
                cycle = self._issue(cycle, 1, retires=False)
                self._retire(1, cycle)
            return cycle
        last = cycle + words
        while self._blocked and self._blocked[0] <= last:
            last += self._blocked.popleft() > cycle
        return last
