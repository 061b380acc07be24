"""A network on an engine of some size: the engine, and what its memories hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from nnef_hw.engine.nest import Nest
from nnef_hw.engine.program import Instruction, Program
from nnef_hw.engine.sizing import size_engine
from nnef_hw.parts.engine import CODE_BITS, LEVELS, QUANTITIES, Engine
from nnef_hw.parts.reader import Reader

__all__ = ["Design"]


@dataclass(frozen=True, eq=False)
class Design(Program):
    """A program, and the engine that runs it."""

    @cached_property
    def reader(self) -> Reader | None:
        """What brings the program, if it comes as a stream from a memory of the board."""
        return None if self.store is None else self.store.reader(self.image_words, self.device)

    @cached_property
    def image_words(self) -> int:
        """Beats of the program as a stream (:mod:`nnef_hw.engine.image`)."""
        return sum(map(self.packet_words, self.instructions))

    def packet_words(self, instruction: Instruction) -> int:
        """Return the beats of an instruction and of what it needs."""
        engine = self.engine
        return (
            2
            + engine.instruction_rows * len(engine.program_memories)
            + instruction.table_beats
            + len(instruction.constants) * len(engine.constant_memories)
            + len(instruction.weights) * engine.weight_beats(instruction.weight_rows)
        )

    @property
    def memory_bytes(self) -> Mapping[str, int]:
        """Bytes of the stream per frame by the name of the layer; nothing if there is none."""
        if not self.ring_words:
            return {}
        instructions = iter(self.instructions[len(self.network.sources) :])
        return {
            layer.name: 2 * sum(self.packet_words(next(instructions)) for _ in parts)
            for layer, parts in zip(self.layers, self.parts, strict=True)
        }

    @cached_property
    def constants(self) -> list[int]:
        """Contents of the constant memory: a bias in the low bits, a factor above, its shift."""
        engine = self.engine
        bits, found = engine.acc_bits, []
        for layer in self.layers:
            factors = self.factors(layer)
            shifts = [engine.least_shift] * len(factors)
            if engine.rounds_twice:
                shifts = self.shifts(layer)
            for bias, factor, shift in zip(layer.bias(self.shape), factors, shifts, strict=True):
                above = factor | (shift - engine.least_shift) << engine.factor_bits
                found.append(above << bits | int(bias) & ((1 << bits) - 1))
        return found

    @cached_property
    def entries(self) -> list[int]:
        """Contents of the memory of tables, 256 entries each."""
        unused = [()] * (self.engine.tables - len(self.tables))
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
        stride = self.engine.instruction_stride
        found: list[int] = []
        for instruction in self.instructions:
            rows = self.rows(instruction)
            found += [*rows, *[0] * (stride - len(rows))]
        return found

    def rows(self, instruction: Instruction) -> list[int]:
        """Return the rows of an instruction."""
        engine = self.engine
        rows = [0] * engine.instruction_rows
        if instruction.nest is not None:
            rows[:LEVELS] = self._loops(instruction.nest)
        fields = {"kind": int(instruction.kind), **instruction.fields}
        if engine.gathers and not (instruction.nest and instruction.nest.in_codes):
            fields["read"] = fields.get("read", 0) * engine.lanes
        if "packs" not in engine.fields:
            fields.pop("packs", None)
        known = engine.fields.keys() | engine.same_fields.keys()
        assert fields.keys() <= known | {"adds"}, fields.keys()
        for name, (row, bit) in engine.parameters.items():
            width = engine.fields[name]
            rows[LEVELS + row] |= (fields.get(name, 0) & ((1 << width) - 1)) << bit
        return rows

    def _loops(self, nest: Nest) -> Iterator[int]:
        steps = {name: nest.steps(name) for name in QUANTITIES}
        for level in range(LEVELS):
            word = bit = 0
            for name, width in self.engine.loop_fields.items():
                if name == "count":
                    value = nest.counts[level] - 1
                else:
                    value = steps[name.removesuffix("_step")][level]
                    if name == "read_step" and self.engine.gathers and not nest.in_codes:
                        value *= self.engine.lanes
                word |= (value & ((1 << width) - 1)) << bit
                bit += width
            yield word
