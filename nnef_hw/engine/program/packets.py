"""Packets of a program that comes as a stream: their sizes, and those that stay on the chip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from nnef_hw.engine.memory.store import Store
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.engine.program.program import Program
from nnef_hw.engine.program.segments import Segments
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.readers.reader import Reader

__all__ = ["FILL_HEADER_BEATS", "HEADER_BEATS", "Packets"]

HEADER_BEATS = 2
"""Beats in front of a packet."""
FILL_HEADER_BEATS = 3
"""Beats in front of words that are written to the memory of codes."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Packets:
    """The packets of a program, one for each instruction.

    Parameters
    ----------
    program, engine
        What they are of, and what takes them.
    store
        Where they come from; None if from anywhere, whenever they are wanted.
    resident
        Instructions whose packets stay in the banks of codes, beside these.
    staged
        Others whose packets are written there in every frame, where codes are no more; with the
        instruction during which each is.
    queue_words
        Words of the stream that may wait behind the memory that it comes from, in block RAM; 0: a
        few in registers.
    """

    program: Program
    engine: Engine
    store: Store | None
    resident: tuple[int, ...]
    staged: tuple[tuple[int, int], ...]
    queue_words: int

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """Instructions that the packets are for."""
        return self.program.instructions

    @cached_property
    def reader(self) -> Reader | None:
        """Reader that brings the program, if it comes as a stream from a memory of the board."""
        if self.store is None:
            return None
        device = self.program.placement.device
        if self.segments is not None:
            assert self.store.rows is not None, "tables are addressed where rows are found"
            sources = self.program.placement.network.sources
            ports = sorted({x.port for x in self.segments.found if x.port is not None})
            return self.store.rows.reader(
                self.segments.found, self.segments.first, device,
                tuple((port, sources[port].port.bits) for port in ports),
            )  # fmt: skip
        return self.store.reader(self.image_words, device, self.once_words, self.queue_words)

    @cached_property
    def segments(self) -> Segments | None:
        """Where the stream is in memory, if rows of tables interrupt it."""
        if all(instruction.addressed is None for instruction in self.instructions):
            return None
        tables = self.table_words if self.repeats_tables else 0
        return Segments(self.program, self.engine, self.once_words, tables, self.stream_words)

    @property
    def beat_cycles(self) -> int:
        """Cycles from a beat that the memory gives to the next one."""
        return 1 if self.reader is None else self.reader.interval

    @cached_property
    def image_words(self) -> int:
        """Beats of the program in memory (:mod:`.image`), with those that come once."""
        if self.segments is not None:
            return self.segments.words
        return self.once_words + self.frame_words

    @cached_property
    def once_words(self) -> int:
        """Beats that come before those of the first frame, and never again."""
        return self.fill_words + sum(map(self.stream_words, range(self.program.first)))

    @cached_property
    def table_words(self) -> int:
        """Beats of the packet of all tables; 0 if none come with the program."""
        beats = self.engine.table_beats
        return HEADER_BEATS + beats if beats else 0

    @property
    def repeats_tables(self) -> bool:
        """Whether that packet comes in every frame."""
        return self.store is not None and self.store.repeats_tables and not self.program.first

    @cached_property
    def frame_words(self) -> int:
        """Beats that come in every frame, or batch of frames."""
        words = sum(map(self.stream_words, range(self.program.first, len(self.instructions))))
        return words + self.table_words if self.repeats_tables else words

    def following(self, n: int) -> int:
        """Return the instruction that follows one: behind the last one the first of a frame."""
        return n + 1 if n + 1 < len(self.instructions) else self.program.first

    def fills(self, n: int) -> Iterator[tuple[range, int]]:
        """Yield pieces in which the packet of an instruction is written to the memory of codes.

        Words of it, no more than the ring has, and where the first of these goes.
        """
        place, words = self.resident_places[n], self.resident_words(self.instructions[n])
        for first in range(0, words, self.program.ring_words):
            yield range(first, min(first + self.program.ring_words, words)), place + first

    def staging_words(self, instruction: Instruction) -> int:
        """Return the beats of these pieces."""
        words = self.resident_words(instruction)
        pieces = -(-words // self.program.ring_words)
        return FILL_HEADER_BEATS * pieces + self.engine.code_beats * words

    def stream_words(self, n: int) -> int:
        """Return the beats of the packet of an instruction in every frame: none if it stays."""
        if n in self.resident:
            return 0
        is_staged = n in self.resident_places
        words = self.staging_words if is_staged else self.packet_words
        return words(self.instructions[n])

    def staged_behind(self, n: int) -> list[int]:
        """Return the instructions whose packets are staged during an instruction."""
        return [staged for staged, host in self.staged if host == n]

    @cached_property
    def fill_words(self) -> int:
        """Beats of what is written before the first frame, and of tables that come only once."""
        fills = sum(self.staging_words(self.instructions[n]) for n in self.resident)
        return fills if self.repeats_tables else fills + self.table_words

    def resident_words(self, instruction: Instruction) -> int:
        """Return the words of codes that its packet takes."""
        return -(-self.packet_words(instruction) // self.engine.code_beats)

    def is_better(self, n: int, bank: int) -> bool:
        """Whether the instruction before does not read a bank: while it runs, a packet comes."""
        return bank != self.instructions[n - 1].bank

    def resident_bank(self, n: int, left: Sequence[int]) -> int | None:
        """Return the bank in which the packet of an instruction may stay; None if none has room.

        The better one, if it has room: of the other one a packet comes only when the instruction
        before has ended.

        Parameters
        ----------
        left
            Words that are left in each.
        """
        words = self.resident_words(self.instructions[n])
        banks = sorted((0, 1), key=lambda bank: not self.is_better(n, bank))
        return next((bank for bank in banks if words <= left[bank]), None)

    @cached_property
    def resident_places(self) -> Mapping[int, int]:
        """First words of the packets that stay in the memory of codes, by instruction."""
        if not self.program.has_residents:
            return {}
        lasting = self.program.placement.lasting
        left = list(map(len, lasting))
        found: dict[int, int] = {}
        for n in self.resident:
            bank = self.resident_bank(n, left)
            if bank is None:
                raise ValueError(f"there is no room for the packet of instruction {n}")
            found[n] = lasting[bank].stop - left[bank]
            left[bank] -= self.resident_words(self.instructions[n])
        ends = [words.start for words in lasting]
        for n, host in self.staged:
            bank = self.staging_bank(host)
            ends[bank] -= self.resident_words(self.instructions[n])
            found[n] = ends[bank]
        return found

    def can_stage(self, n: int, host: int) -> bool:
        """Whether the packet of an instruction has room, and a way, to come during another one.

        That and the one before add no tensors, so that the bank that it does not read is written
        at most, by results; behind its packet, that of the next one comes from the memory.
        """
        near = self.instructions[max(0, host - 1) : host + 1]
        if any(x.kind != Kind.RUN or x.adds for x in near) or n < host + 2:
            return False
        if n in self.resident_places or host + 1 in self.resident_places:
            return False
        if any(n == other + 1 for _, other in self.staged):
            return False
        bank = self.staging_bank(host)
        taken = sum(
            self.resident_words(self.instructions[other])
            for other, its_host in self.staged if self.staging_bank(its_host) == bank
        )  # fmt: skip
        placement, steps = self.program.placement, self.program.steps
        words = taken + self.resident_words(self.instructions[n])
        begin = placement.lasting[bank].start - words
        return begin >= placement.unused(bank, steps[host], steps[n]).start

    def staging_bank(self, host: int) -> int:
        """Return the bank in which packets are staged during an instruction: it reads the other."""
        return 1 - self.instructions[host].bank

    def packet_words(self, instruction: Instruction) -> int:
        """Return the beats of an instruction and of what it needs."""
        engine = self.engine
        return (
            HEADER_BEATS
            + engine.layout.rows * engine.layout.row_beats
            + len(instruction.constants) * engine.constant_beats
            + len(instruction.weights) * engine.weight_beats(instruction.weight_rows)
            + engine.has(Residents)
        )

    @property
    def memory_bytes(self) -> Mapping[str, int]:
        """Bytes of the stream per batch by the name of the layer; nothing if there is none."""
        if not self.program.ring_words:
            return {}
        found: Counter[str] = Counter()
        every = zip(self.program.names, self.instructions, strict=True)
        for n, (name, instruction) in enumerate(every):
            if instruction.kind in {Kind.RUN, Kind.STREAM}:
                found[name] += 2 * self.stream_words(n)
        return found
