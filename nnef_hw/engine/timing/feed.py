"""Times of the packets of a program that comes as a stream: the cycles of the hardware."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.engine.program.issue import Retired
from nnef_hw.engine.program.packets import FILL_HEADER_BEATS, HEADER_BEATS
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.readers.reader import Reader
from nnef_hw.parts.readers.row_reader import RowWords

__all__ = ["Feed", "BeatSource"]


class BeatSource(ABC):
    """Where the beats come from."""

    @abstractmethod
    def take(self, beats: int, wanted: int) -> int:
        """Take so many as they come, none before a cycle; return the cycle of the last one."""

    @staticmethod
    def of(reader: Reader | None) -> BeatSource:
        """Return the reader of a memory; without one, a stream that always has the next beat."""
        return _Always() if reader is None else _Memory(reader)


class _Always(BeatSource):
    def __init__(self) -> None:
        self._last = -1

    def take(self, beats: int, wanted: int) -> int:
        self._last = max(self._last + 1, wanted) + beats - 1
        return self._last


class _Memory(BeatSource):
    """A reader that begins again as soon as it can."""

    def __init__(self, reader: Reader) -> None:
        self._words = reader.words_from()

    def give(self, port: int, cycle: int) -> None:
        """Give the integer of an input in a cycle: it may choose a row."""
        if isinstance(self._words, RowWords):
            self._words.give(port, cycle)

    def take(self, beats: int, wanted: int) -> int:
        last = -1
        while beats:
            if not self._words.left:
                self._words.begin(0)
            count = min(beats, self._words.left)
            last = self._words.take_all(count, wanted)
            beats -= count
        return last


class _Busy(NamedTuple):
    """Cycles in which no packet's word begins to be read: of one bank, or of both (None)."""

    bank: int | None
    begin: int
    end: int


class _Resident(BeatSource):
    """A packet in the memory of codes: a word every two cycles, while its bank is free.

    A word takes two cycles from ``begin`` on, since in one of them the bank may be written, and is
    there in the next one. The word behind it begins when its first beat is taken.

    Parameters
    ----------
    begin
        First cycle in which a word can be read.
    busy
        When the bank is not free.
    """

    def __init__(self, begin: int, busy: Sequence[_Busy]) -> None:
        self._begin = begin
        self._busy = busy
        self._last = begin - 1
        self._is_second = False

    def take(self, beats: int, wanted: int) -> int:
        while beats:
            if self._is_second:
                self._last = max(self._last + 1, wanted)
                self._is_second, beats = False, beats - 1
                continue
            begin, until = self._free(self._begin)
            first = max(begin + 2, self._last + 1, wanted)
            if first == begin + 2 and beats > 1:
                # As many words as can begin, one behind the other.
                words = beats // 2 if until is None else min(beats // 2, (until - begin + 1) // 2)
                self._begin, self._last = begin + 2 * words, begin + 2 * words + 1
                beats -= 2 * words
            else:
                self._begin = self._last = first
                self._is_second, beats = True, beats - 1
        return self._last

    def _free(self, cycle: int) -> tuple[int, int | None]:
        """Return the first free cycle from one on, and the one in which that ends."""
        for busy in self._busy:
            if busy.begin <= cycle <= busy.end:
                cycle = busy.end + 1
            elif busy.begin > cycle:
                return cycle, busy.begin
        return cycle, None


@dataclass
class _Ring:
    """A circular memory: what came, and when places were freed.

    Parameters
    ----------
    places
        How many there are.
    freed_cycles
        Cycles after the one in which an instruction ends until its places can be taken.
    """

    places: int
    freed_cycles: int
    came: int = 0
    freed: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def free(self, count: int, end: int) -> None:
        """Free the oldest places, of an instruction that ends; or in a cycle each from one on.

        That is all the same, as no word comes in less than a cycle.
        """
        self.freed.append((self.freed[-1][0] + count, end + self.freed_cycles))

    def fill(self, count: int, beats: int, source: BeatSource) -> int:
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
        # Of the last two instructions.
        self._ends = -1, -1
        engine = design.engine
        if engine.ring is None:
            return
        self._source = BeatSource.of(design.packets.reader)
        self._last = -1
        self._begin = 0
        self._busy: list[_Busy] = []
        if design.packets.fill_words:
            self._last = self._source.take(design.packets.fill_words, 0)
        freed_cycles = engine.pipeline.freed_cycles
        self._slots = _Ring(engine.slots, freed_cycles)
        self._constants = _Ring(engine.pipeline.constants_ahead, freed_cycles)
        self._weights = _Ring(engine.ring.words, freed_cycles)

    def packet(self) -> tuple[int, int]:
        """Return the first cycles in which the next instruction's rows, and all of it, are there.

        All instructions before have ended.
        """
        design = self._design
        engine = design.engine
        if engine.ring is None:
            return 0, 0
        instruction = design.instructions[self._next]
        source = self._origin()
        is_first = self._next == design.program.first
        if design.packets.repeats_tables and is_first and design.packets.table_words:
            self._last = source.take(design.packets.table_words, self._last + 1)
        for staged in design.packets.staged_behind(self._next - 1):
            for words, _ in design.packets.fills(staged):
                self._last = source.take(FILL_HEADER_BEATS, self._last + 1)
                # All instructions before the one during which it is written have ended.
                beats = engine.code_beats * len(words)
                self._last = source.take(beats, max(self._last, self._ends[0]) + 1)
        source.take(HEADER_BEATS, self._last + 1)
        rows = self._slots.fill(1, engine.layout.rows * engine.layout.row_beats, source)
        last = max(
            rows,
            self._constants.fill(
                len(instruction.constants), engine.constant_beats, source
            ),
            self._weights.fill(
                len(instruction.weights), engine.weight_beats(instruction.weight_rows), source
            ),
        )  # fmt: skip
        self._last = source.take(1, 0) if engine.has(Residents) else last
        return rows + 1, last + 1

    def _origin(self) -> BeatSource:
        """Return where the next packet comes from."""
        place = self._design.packets.resident_places.get(self._next)
        if place is None:
            return self._source
        bank = self._design.placement.bank(place)
        self._busy = [busy for busy in self._busy if busy.end > self._last]
        return _Resident(self._last + 1, [x for x in self._busy if x.bank in {bank, None}])

    def give(self, port: int, cycle: int) -> None:
        """Give the integer of an input in a cycle: it may choose a row of a table in memory."""
        if self._design.engine.ring is not None and isinstance(self._source, _Memory):
            self._source.give(port, cycle)

    def begin(self, cycle: int) -> None:
        """Begin the instruction in this cycle."""
        self._begin = cycle

    def _occupied(self, instruction: Instruction, end: int) -> _Busy:
        """Return when an instruction leaves no time to read packets."""
        if instruction.kind == Kind.RUN and instruction.adds:
            return _Busy(None, self._begin + 1, end + self._design.engine.pipeline.drain(adds=True))
        if instruction.kind == Kind.STREAM:
            return _Busy(None, self._begin + 1, end + 1)
        return _Busy(instruction.bank, self._begin + 1, end + 1)

    def end(self, cycle: int, retired: Sequence[Retired] = ()) -> None:
        """End the instruction in this cycle; its words of weights may have been freed before."""
        self._ends = self._ends[1], cycle
        instruction = self._design.instructions[self._next]
        self._next = self._design.packets.following(self._next)
        if self._design.engine.has(Residents):
            self._busy.append(self._occupied(instruction, cycle))
        if self._design.engine.ring is not None:
            self._slots.free(1, cycle)
            self._constants.free(len(instruction.constants), cycle)
            freed = self._design.engine.retired(instruction.records, retired)
            for count, first in freed or ((len(instruction.weights), cycle),):
                self._weights.free(count, first)
