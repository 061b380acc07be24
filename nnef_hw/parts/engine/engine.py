"""The shared engine: its sizes, program and pipeline, and the memories that it takes.

docs/engine.md describes it. What depends on a network is chosen by :mod:`nnef_hw.engine`; the
components of ``rtl/`` read every number here.
"""

from __future__ import annotations

from functools import cached_property

from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.engine.pipeline import EnginePipeline
from nnef_hw.parts.engine.program import BEAT_BITS, TABLE_BEATS, beats_of
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["Engine"]


class Engine(EnginePipeline):
    """An engine, as :class:`.EngineSizes` says."""

    @cached_property
    def code_memory(self) -> Tiling:
        """Memory of activations."""
        return tile_memory(self.ram, self.code_words, self.word_bits)

    @cached_property
    def other_memory(self) -> Tiling:
        """Memory of those that are added to others, a second time."""
        return tile_memory(self.ram, self.other_words, self.word_bits)

    @cached_property
    def weight_memories(self) -> tuple[Tiling, ...]:
        """Memory of weights; if they come as a stream, one for each beat, or two, of a word."""
        depth = self.ring_words or self.weight_words
        return self._filled(depth, self.products * CODE_BITS)

    @cached_property
    def constant_memories(self) -> tuple[Tiling, ...]:
        """Memory of biases, factors and shifts, those of a cycle's results together."""
        return self._filled(self.constant_words, self.results * self.constant_bits)

    @cached_property
    def program_memories(self) -> tuple[Tiling, ...]:
        """Memory of the program, in the same way."""
        return self._filled(self.slots * self.instruction_stride, self.row_bits)

    def _filled(self, depth: int, bits: int) -> tuple[Tiling, ...]:
        if not self.streamed:
            return (tile_memory(self.ram, depth, bits),)
        beat = (tile_memory(self.ram, depth, BEAT_BITS),)
        pair = (tile_memory(self.ram, depth, 2 * BEAT_BITS),)
        pairs, rest = divmod(beats_of(bits), 2)
        ways = (beat * beats_of(bits), pair * pairs + beat * rest)
        return min(ways, key=lambda way: sum(tiling.count for tiling in way))

    @cached_property
    def delay_memory(self) -> Tiling:
        """Where addresses to write wait for the requantizer."""
        return self._delay(self.requantizer_delay)

    @cached_property
    def residual_memory(self) -> Tiling:
        """Where they wait for what is added."""
        return self._delay(self.residual_delay)

    def _delay(self, cycles: int) -> Tiling:
        return tile_memory(self.ram, 1 << cycles.bit_length(), self.fields["write"])

    @property
    def table_beats(self) -> int:
        """Beats of all tables that come with a program that is a stream."""
        return self.tables * TABLE_BEATS + self.tail_beats if self.streamed else 0

    @cached_property
    def table_memory(self) -> Tiling:
        """Memory of all tables: entry by entry, or beat by beat if they come as a stream."""
        if self.streamed:
            return tile_memory(self.ram, self.tables * TABLE_BEATS, BEAT_BITS)
        return tile_memory(self.ram, self.tables << CODE_BITS, CODE_BITS)

    @property
    def spram(self) -> int:
        """Single-port RAMs."""
        return 2 * self.word_bits // self.single_port.width if self.single_port else 0

    @property
    def memories(self) -> tuple[Tiling, ...]:
        """All memories of block RAM: of codes another one if sums of two tensors read them, too."""
        codes = [] if self.single_port else [self.code_memory]
        codes += [self.other_memory] if self.other_words else []
        filled = (*self.weight_memories, *self.constant_memories, *self.program_memories,
                  self.delay_memory)  # fmt: skip
        delays = self.residual_bits > 0 and self.residual_cycles == 1
        residual = (self.residual_memory,) if delays else ()
        tables = (self.table_memory,) * self.results if self.tables else ()
        return (*codes, *filled, *residual, *tables)
