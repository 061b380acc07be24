"""Times at which the words of a reader of SPI flash come."""

from __future__ import annotations

from collections import deque
from collections.abc import Sized
from itertools import pairwise
from typing import Protocol

import numpy as np

from nnef_hw.parts.readers.reader import check_left

__all__ = ["FlashTiming", "FlashWords", "QueuedFlashWords"]

FEW = 8
"""Words that are faster taken one by one than by array."""


class FlashTiming(Protocol):
    """Timing of a reader of SPI flash: numbers that its cycles follow from."""

    @property
    def words(self) -> int:
        """Words of the image."""

    @property
    def once(self) -> int:
        """Number of words, the first ones, that only the first read brings."""

    @property
    def word_cycles(self) -> int:
        """Cycles that a word takes."""

    @property
    def depth(self) -> int:
        """Words of the queue."""

    @property
    def offer_cycles(self) -> int:
        """Cycles from the last pulse of a word to its offer."""

    @property
    def startup(self) -> Sized:
        """Cycles after a reset."""

    @property
    def command(self) -> Sized:
        """Cycles from the beginning of a read to the first pulse that brings data."""

    @property
    def ending(self) -> Sized:
        """Cycles from the end of a read until the next one may begin."""


class FlashWords:
    """Words of a :class:`FlashReader` in time: a consumer's cycles in, the reader's out.

    Word k's pulses begin in ``s[k] = max(s[k-1] + word_cycles, x[k-depth] + 1)``, where x are the
    cycles in which words were taken; it is offered in ``max(s[k] + word_cycles + 4, x[k-1] + 1)``.
    Cycles count from the first one after a reset.

    Attributes
    ----------
    idle : int
        First cycle in which ``start`` is heeded.
    offered : int
        Cycle in which the next word's ``valid`` rises.
    left : int
        Words of the read that have not been taken.
    """

    def __init__(self, reader: FlashTiming) -> None:
        self._reader = reader
        self._taken: deque[int] = deque([-1] * reader.depth, maxlen=reader.depth)
        self._pulses = 0
        self._once = reader.once
        self.left = 0
        self.idle = len(reader.startup)
        self.offered = -1

    def begin(self, wanted: int) -> int:
        """Give ``start`` in this cycle, or in the first later one in which it is heeded.

        Raises
        ------
        ValueError
            If words of the last read have not been taken.
        """
        if self.left:
            raise ValueError(f"{self.left} words of the last read were not taken yet")
        cycle = max(wanted, self.idle)
        self.left = self._reader.words - self._reader.once + self._once
        self._once = 0
        self._pulses = cycle + 1 + len(self._reader.command) - self._reader.word_cycles
        self._next()
        return cycle

    def take(self, wanted: int) -> int:
        """Take the next word in this cycle, or when it comes; return the cycle.

        Raises
        ------
        ValueError
            If all words have been taken.
        """
        check_left(1, self.left)
        cycle = max(wanted, self.offered)
        self._taken.append(cycle)
        self.left -= 1
        if self.left:
            self._next()
        else:
            self.idle = self._pulses + self._reader.word_cycles + len(self._reader.ending) + 1
        return cycle

    def take_all(self, count: int, wanted: int) -> int:
        """Take so many words as they come, none before a cycle; return the cycle of the last one.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        period, last = self._reader.word_cycles, -1
        while count:
            taken = [*self._taken, self.offered]
            spacings = {after - before for before, after in pairwise(taken)}
            # Once a queue's words have come evenly, all others do, but for the end of the read.
            steady = min(count, self.left - 1)
            if self.offered >= wanted and spacings == {period} and steady > 0:
                passed = steady * period
                self._taken = deque([x + passed for x in self._taken], self._taken.maxlen)
                self._pulses += passed
                self.offered += passed
                self.left -= steady
                last, count = self._taken[-1], count - steady
            else:
                last, count = self.take(wanted), count - 1
        return last

    def _next(self) -> None:
        """Go on with the next word."""
        word = self._reader.word_cycles
        self._pulses = max(self._pulses + word, self._taken[0] + 1)
        self.offered = max(self._pulses + word - 1 + self._reader.offer_cycles, self._taken[-1] + 1)


class QueuedFlashWords(FlashWords):
    """Words of a reader with a long queue, of which a consumer takes many at a time."""

    def take_all(self, count: int, wanted: int) -> int:
        """Take so many words as they come, none before a cycle; return the cycle of the last one.

        Raises
        ------
        ValueError
            If there are not so many.
        """
        last = -1
        while count > FEW and self.left:
            # Until the first of these words is taken, all that the others wait for is known.
            some = min(count, self.left, self._reader.depth)
            last = self._take_some(some, wanted)
            count -= some
        for _ in range(count):
            last = self.take(wanted)
        return last

    def _take_some(self, count: int, wanted: int) -> int:
        reader = self._reader
        word, places = reader.word_cycles, np.arange(count)
        room = np.array(self._taken)[:count] + 1
        room[0] = self._pulses
        pulses = np.maximum.accumulate(room - word * places) + word * places
        offered = pulses + word - 1 + reader.offer_cycles
        offered[0] = max(self.offered, wanted)
        taken = np.maximum.accumulate(offered - places) + places
        self._taken.extend(taken.tolist())
        self._pulses = int(pulses[-1])
        self.left -= count
        if self.left:
            self._next()
        else:
            self.idle = self._pulses + word + len(reader.ending) + 1
        return int(taken[-1])
