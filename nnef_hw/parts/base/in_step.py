"""Pipelines that move in step: all stages in the cycles in which the queue behind them has room."""

from __future__ import annotations

from collections import deque

__all__ = ["InStep"]


class InStep:
    """Time that passes only while a queue of two items, which ends a pipeline, is not full.

    Attributes
    ----------
    stalls
        First and last cycles in which the queue is full. While there are none, so many steps take
        as many cycles.
    """

    __slots__ = ("_sent", "stalls")

    def __init__(self) -> None:
        self.stalls: deque[tuple[int, int]] = deque()
        self._sent = -1

    def later(self, time: int, steps: int) -> int:
        """Return the cycle so many steps behind one; of 0 steps, the first that is none or later.

        Steps are cycles in which the pipeline moves.
        """
        end = time + steps
        for first, last in self.stalls:
            if first <= end and time <= last:
                end += last - max(first, time) + 1
        return end

    def forget(self, time: int) -> None:
        """Take note that nothing before a cycle will be asked for."""
        while self.stalls and self.stalls[0][1] < time:
            self.stalls.popleft()

    def enter(self, time: int) -> int:
        """Put an item into the queue; return the cycle in which it can leave."""
        if self._sent > time:
            self.stalls.append((time + 1, self._sent))
            time = self._sent
        return time + 1

    def leave(self, time: int) -> None:
        """Take note that the newest item has left the queue."""
        self._sent = time
