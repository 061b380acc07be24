"""The program of a frame as a stream of beats: instructions with what they need, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nnef_hw.engine.design import Design
from nnef_hw.engine.store import Store
from nnef_hw.parts.engine import BEAT_BITS, CODE_BITS, COUNT_BITS, TABLES_FLAG
from nnef_hw.parts.reader import Reader

__all__ = ["ProgramImage", "image_beats", "image_bytes"]


@dataclass(frozen=True, eq=False)
class ProgramImage:
    """The program of a design in the memory that it comes from."""

    design: Design

    @property
    def memory(self) -> Store:
        """What the memory is."""
        assert self.design.store is not None
        return self.design.store

    @property
    def part(self) -> Reader:
        """What reads it."""
        assert self.design.reader is not None
        return self.design.reader

    @property
    def kind(self) -> str:
        """What a user calls the memory."""
        return self.memory.kind

    @property
    def address(self) -> int:
        """First byte of the image."""
        return self.memory.base

    @property
    def read(self) -> str:
        """Command that reads it."""
        return self.memory.command

    @property
    def words(self) -> int:
        """Words of 16 bits that are read."""
        return self.design.image_words

    @property
    def is_loaded(self) -> bool:
        """The host fills the memory over the link."""
        return self.memory.is_loaded

    @property
    def data(self) -> bytes:
        """The image."""
        return self.memory.padded(image_bytes(self.design))


def image_beats(design: Design) -> Iterator[int]:
    """Yield the beats of 16 bits that a streamed engine takes per frame.

    A packet per instruction: how many constants it needs, with the beats of a word of its weights,
    less one, above :data:`.COUNT_BITS`; how many such words, and in bit :data:`.TABLES_FLAG`
    whether all tables follow its rows; its rows, the constants, the words. Each of these is as many
    beats as it needs, the highest bits first. Of weights the upper rows of the array that need none
    are left out. A beat of a table is two entries, the lower one first;
    tables of what stands behind the engine follow, an entry in one beat or two.
    """
    engine, weights = design.engine, design.weights
    for instruction in design.instructions:
        beats = engine.weight_beats(instruction.weight_rows)
        yield len(instruction.constants) | max(0, beats - 1) << COUNT_BITS
        yield len(instruction.weights) | bool(instruction.table_beats) << TABLES_FLAG
        yield from _split(design.rows(instruction), len(engine.program_memories))
        if instruction.table_beats:
            entries = design.entries
            yield from (
                low | high << CODE_BITS
                for low, high in zip(entries[::2], entries[1::2], strict=True)
            )
            yield from design.tail_beats
        constants = [design.constants[n] for n in instruction.constants]
        yield from _split(constants, len(engine.constant_memories))
        yield from _split([weights[n] for n in instruction.weights], beats)


def image_bytes(design: Design) -> bytes:
    """Return the image of a memory: the beats, the lower byte of each first."""
    return b"".join(beat.to_bytes(BEAT_BITS // 8, "little") for beat in image_beats(design))


def _split(words: Sequence[int], beats: int) -> Iterator[int]:
    for word in words:
        for beat in reversed(range(beats)):
            yield word >> BEAT_BITS * beat & (1 << BEAT_BITS) - 1
