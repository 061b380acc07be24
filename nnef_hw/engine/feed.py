"""When the packets of a program that comes as a stream are there: the cycles of the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from nnef_hw.engine.design import Design
from nnef_hw.parts.reader import Reader

__all__ = ["Feed", "Source"]


class Source(ABC):
    """Where the beats come from."""

    @abstractmethod
    def take(self, beats: int, wanted: int) -> int:
        """Take so many as they come, none before a cycle; return the cycle of the last one."""

    @staticmethod
    def of(reader: Reader | None) -> Source:
        """Return the reader of a memory; without one, a stream that always has the next beat."""
        return _Always() if reader is None else _Memory(reader)


class _Always(Source):
    def __init__(self) -> None:
        self._last = -1

    def take(self, beats: int, wanted: int) -> int:
        self._last = max(self._last + 1, wanted) + beats - 1
        return self._last


class _Memory(Source):
    """A reader that begins again as soon as it can."""

    def __init__(self, reader: Reader) -> None:
        self._words = reader.words_from()

    def take(self, beats: int, wanted: int) -> int:
        last = -1
        while beats:
            if not self._words.left:
                self._words.begin(0)
            count = min(beats, self._words.left)
            last = self._words.take_all(count, wanted)
            beats -= count
        return last


_FREED = 2
"""Cycles after the one in which an instruction ends until its places can be taken."""


@dataclass
class _Ring:
    """A circular memory: what came, and when places were freed.

    Parameters
    ----------
    places
        How many there are.
    """

    places: int
    came: int = 0
    freed: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def free(self, count: int, end: int) -> None:
        """Free the oldest places of an instruction that ends."""
        self.freed.append((self.freed[-1][0] + count, end + _FREED))

    def fill(self, count: int, beats: int, source: Source) -> int:
        """Let so many words of some beats come; return the cycle of the last beat."""
        last = -1
        while count:
            while self.came >= self.freed[0][0] + self.places:
                self.freed.pop(0)
            freed, wanted = self.freed[0]
            fitting = min(count, freed + self.places - self.came)
            last = source.take(fitting * beats, wanted)
            self.came += fitting
            count -= fitting
        return last


class Feed:
    """The packets of a design's program, frame after frame, from the first cycle on.

    Parameters
    ----------
    design
        What runs; its program may also be in memory for ever.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._next = 0
        if not design.engine.streamed:
            return
        engine = design.engine
        self._source = Source.of(design.reader)
        self._slots = _Ring(engine.slots)
        self._constants = _Ring(engine.constants_ahead)
        self._weights = _Ring(engine.ring_words)

    def packet(self) -> tuple[int, int]:
        """Return the first cycles in which the next instruction's rows, and all of it, are there.

        All instructions before have ended.
        """
        engine = self._design.engine
        if not engine.streamed:
            return 0, 0
        instruction = self._design.instructions[self._next]
        self._source.take(2, 0)
        rows = self._slots.fill(
            1, engine.instruction_rows * len(engine.program_memories), self._source
        )
        last = max(
            self._source.take(instruction.table_beats, 0) if instruction.table_beats else rows,
            self._constants.fill(
                len(instruction.constants), len(engine.constant_memories), self._source
            ),
            self._weights.fill(
                len(instruction.weights), engine.weight_beats(instruction.weight_rows),
                self._source,
            ),
        )  # fmt: skip
        return rows + 1, last + 1

    def end(self, cycle: int) -> None:
        """End the instruction in this cycle."""
        instruction = self._design.instructions[self._next]
        self._next = (self._next + 1) % len(self._design.instructions)
        if self._design.engine.streamed:
            self._slots.free(1, cycle)
            self._constants.free(len(instruction.constants), cycle)
            self._weights.free(len(instruction.weights), cycle)
