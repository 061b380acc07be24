"""When the words of a part are issued, where a pass ends only when results have left."""

from __future__ import annotations

from collections import deque

from nnef_hw.engine.nest import Part, paced
from nnef_hw.parts.engine import Engine

__all__ = ["Issue"]


class Issue:
    """The words of a layer, part after part.

    Parameters
    ----------
    engine
        The engine.
    by_lane
        Whether every lane has a result.
    by_lane
        Whether every lane has a result.
    adds
        Whether another tensor is added to them.
    shares
        Whether what is added to results is in the bank that is read: for every word of it there is
        a cycle in which none is issued.
    """

    def __init__(self, engine: Engine, *, by_lane: bool, adds: bool, shares: bool) -> None:
        self._pace = engine.pace(adds=adds)
        self._word_results = engine.lanes * self._pace
        self._other_stage = engine.other_stage(by_lane=by_lane)
        self._shares = shares
        self._results = 0
        self._blocked: deque[int] = deque()

    def run(self, part: Part, begin: int, end: int) -> int:
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
        if not self._shares:
            # The results of the part before have to leave, too.
            kept = max(begin + part.passes[0].words, end + self._results)
            self._results = part.passes[-1].results
            return kept + part.cycles - part.passes[0].words
        last, cycle = end, begin
        for _ in range(part.repeats):
            for words, results in part.passes:
                cycle = self._issue(cycle, words - 1)
                # The last one waits for the results of the pass before, too.
                cycle = max(cycle, last + self._results - 1)
                last = cycle = self._issue(cycle, 1)
                self._results = results
                first = last + self._other_stage
                self._blocked.extend(range(first, first + results, self._word_results))
        return last

    def _issue(self, cycle: int, words: int) -> int:
        """Issue so many words after a cycle; return that of the last one."""
        last = cycle + words
        while self._blocked and self._blocked[0] <= last:
            last += self._blocked.popleft() > cycle
        return last
