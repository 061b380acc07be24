"""A network on an engine of some size: the engine, and what its memories hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nnef_hw.engine.layers.layer import Layer
from nnef_hw.engine.layers.nest import Nest
from nnef_hw.engine.program.instruction import Instruction
from nnef_hw.engine.program.program import Program
from nnef_hw.engine.program.sizing import size_engine
from nnef_hw.parts.arrays.fast_array import fast_offsets
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.engine.program import QUANTITIES, Kind
from nnef_hw.parts.engine.requantizer import SecondRounding
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.engine.tables import Tables
from nnef_hw.parts.readers.reader import Reader

__all__ = ["FILL_HEADER_BEATS", "HEADER_BEATS", "Design"]

HEADER_BEATS = 2
"""Beats in front of a packet."""
FILL_HEADER_BEATS = 3
"""Beats in front of words that are written to the memory of codes."""


@dataclass(frozen=True, eq=False)
class Design(Program):
    """A program, and the engine that runs it."""

    @cached_property
    def reader(self) -> Reader | None:
        """What brings the program, if it comes as a stream from a memory of the board."""
        if self.store is None:
            return None
        return self.store.reader(self.image_words, self.device, self.fill_words, self.queue_words)

    @property
    def beat_cycles(self) -> int:
        """Cycles from a beat that the memory gives to the next one."""
        return 1 if self.reader is None else self.reader.interval

    @cached_property
    def image_words(self) -> int:
        """Beats of the program as a stream (:mod:`.image`), with those that come once."""
        return self.fill_words + self.frame_words

    @cached_property
    def table_words(self) -> int:
        """Beats of the packet of all tables; 0 if none come with the program."""
        beats = self.engine.table_beats
        return HEADER_BEATS + beats if beats else 0

    @property
    def repeats_tables(self) -> bool:
        """Whether that packet comes in every frame: from a memory that is read from its begin."""
        return self.store is not None and not self.store.can_skip

    @cached_property
    def frame_words(self) -> int:
        """Beats that come in every frame, or batch of frames."""
        words = sum(map(self.stream_words, range(len(self.instructions))))
        return words + self.table_words if self.repeats_tables else words

    def fills(self, n: int) -> Iterator[tuple[range, int]]:
        """Yield pieces in which the packet of an instruction is written to the memory of codes.

        Words of it, no more than the ring has, and where the first of these goes.
        """
        place, words = self.resident_places[n], self.resident_words(self.instructions[n])
        for first in range(0, words, self.ring_words):
            yield range(first, min(first + self.ring_words, words)), place + first

    def staging_words(self, instruction: Instruction) -> int:
        """Return the beats of these pieces."""
        words = self.resident_words(instruction)
        pieces = -(-words // self.ring_words)
        return FILL_HEADER_BEATS * pieces + self.engine.code_beats * words

    def stream_words(self, n: int) -> int:
        """Return the beats of the packet of an instruction in every frame: none if it stays."""
        if n in self.resident:
            return 0
        is_staged = n in self.resident_places
        return (self.staging_words if is_staged else self.packet_words)(self.instructions[n])

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

    @cached_property
    def free_words(self) -> tuple[int, int]:
        """Words of each bank that no tensor ever takes: the last ones."""
        depth = self.bank_words
        ends = [0, depth]
        for stay in self.stays:
            end = self.places[stay.tensor] + stay.words
            bank = self.places[stay.tensor] // depth
            ends[bank] = max(ends[bank], end)
        return depth - ends[0], 2 * depth - ends[1]

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
        if not self.has_residents:
            return {}
        depth = self.bank_words
        left = list(self.free_words)
        found: dict[int, int] = {}
        for n in self.resident:
            bank = self.resident_bank(n, left)
            if bank is None:
                raise ValueError(f"there is no room for the packet of instruction {n}")
            found[n] = (bank + 1) * depth - left[bank]
            left[bank] -= self.resident_words(self.instructions[n])
        ends = list(self._staging_ends)
        for n, host in self.staged:
            bank = self.staging_bank(host)
            ends[bank] -= self.resident_words(self.instructions[n])
            found[n] = ends[bank]
        return found

    @property
    def _staging_ends(self) -> tuple[int, int]:
        """Ends of the places in each bank where tensors are, at other times than packets."""
        depth = self.bank_words
        low, high = self.free_words
        return depth - low, 2 * depth - high

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
        begin = self._staging_ends[bank] - taken - self.resident_words(self.instructions[n])
        return begin >= self._taken_until(bank, host, n)

    def staging_bank(self, host: int) -> int:
        """Return the bank in which packets are staged during an instruction: it reads the other."""
        return 1 - self.instructions[host].bank

    def _taken_until(self, bank: int, first: int, last: int) -> int:
        """Return the end of the tensors that a bank has from one instruction to another."""
        depth = self.bank_words
        begin, end = (self.steps[n] for n in (first, last))
        inside = [
            self.places[stay.tensor] + stay.words
            for stay in self.stays
            if stay.first <= end and begin <= stay.last
            and self.places[stay.tensor] // depth == bank
        ]  # fmt: skip
        return max(inside, default=bank * depth)

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
        if not self.ring_words:
            return {}
        found: Counter[str] = Counter()
        for n, (name, instruction) in enumerate(zip(self.names, self.instructions, strict=True)):
            if instruction.kind == Kind.RUN:
                found[name] += 2 * self.stream_words(n)
        return found

    @cached_property
    def constants(self) -> list[int]:
        """Contents of the constant memory: a bias in the low bits, a factor above, its shift.

        Those of results that leave together are a word, the first one lowest.
        """
        engine, found = self.engine, []
        bits, together = engine.array.acc_bits, engine.array.results
        rounding = engine.find(SecondRounding)
        for layer in self.layers:
            factors = self.factors(layer)
            farther = [0] * len(factors)
            if rounding is not None:
                farther = [shift - rounding.least_shift for shift in self.shifts(layer)]
            biases = layer.bias(self.shape) - self._offsets(layer)
            for bias, factor, shift in zip(biases, factors, farther, strict=True):
                above = factor | shift << engine.requantizer.factor_bits
                found.append(above << bits | int(bias) & ((1 << bits) - 1))
        groups = (found[n : n + together] for n in range(0, len(found), together))
        return [
            sum(one << n * engine.constant_bits for n, one in enumerate(group)) for group in groups
        ]

    def _offsets(self, layer: Layer) -> NDArray[np.int64]:
        """Return what sums of rows whose multipliers make two products have too much.

        One number for every constant of the layer.
        """
        passes, _ = layer.passes(self.shape)
        offsets = np.zeros((len(passes), self.shape.rows), np.int64)
        first = self.engine.array.plain_rows
        if layer.by_lane or first == self.shape.rows:
            return np.zeros(1, np.int64)
        ends = np.cumsum([one.words for one in passes])
        words = np.split(layer.weights(self.shape), ends[:-1])
        for own, weights in zip(offsets, words, strict=True):
            channels = weights[:, first:].transpose(1, 0, 2)
            own[first:] = fast_offsets(channels, x_bits=CODE_BITS, x_signed=False)
        return np.concatenate([
            own[: one.results] for own, one in zip(offsets, passes, strict=True)
        ])

    @cached_property
    def entries(self) -> list[int]:
        """Contents of the memory of tables, 256 entries each."""
        tables = self.engine.find(Tables)
        unused = [()] * (0 if tables is None else tables.count - len(self.tables))
        return [
            entry
            for table in (*self.tables, *unused)
            for entry in (*table, *[0] * ((1 << CODE_BITS) - len(table)))
        ]

    @cached_property
    def engine(self) -> Engine:
        """The engine: that of the bitstream, or with fields as wide as this program needs them."""
        return self.existing or size_engine(self)

    @cached_property
    def program(self) -> list[int]:
        """Contents of the program memory."""
        stride = self.engine.layout.stride
        found: list[int] = []
        for instruction in self.instructions:
            rows = self.rows(instruction)
            found += [*rows, *[0] * (stride - len(rows))]
        return found

    def rows(self, instruction: Instruction) -> list[int]:
        """Return the rows of an instruction."""
        layout = self.engine.layout
        rows = [0] * layout.rows
        values = dict(instruction.values)
        coarse = self.engine.coarse(values)
        if instruction.nest is not None:
            rows[: layout.levels] = self._loops(instruction.nest, coarse)
        for name, bits in coarse.items():
            values[name] = values.get(name, 0) << bits
        unknown = [name for name, x in values.items() if x and name not in self.engine.facts]
        assert not unknown, unknown
        for name, (row, bit) in layout.parameters.items():
            width = layout.widths[name]
            rows[layout.levels + row] |= (values.get(name, 0) & ((1 << width) - 1)) << bit
        return rows

    def _loops(self, nest: Nest, coarse: Mapping[str, int]) -> Iterator[int]:
        steps = {name: nest.steps(name) for name in QUANTITIES}
        for level in range(self.engine.layout.levels):
            word = bit = 0
            for name, width in self.engine.layout.loop_fields.items():
                if name == "count":
                    value = nest.counts[level] - 1
                else:
                    quantity = name.removesuffix("_step")
                    value = steps[quantity][level] << coarse.get(quantity, 0)
                word |= (value & ((1 << width) - 1)) << bit
                bit += width
            yield word
