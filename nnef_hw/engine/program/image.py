"""The program of a frame as a stream of beats: instructions with what they need, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nnef_hw.engine.memory.store import Store
from nnef_hw.engine.program.design import Design
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.program import (
    BEAT_BITS,
    FILL_FLAG,
    LOADED_BITS,
    RESIDENT_FLAG,
    TABLES_FLAG,
)
from nnef_hw.parts.engine.sizes import CODE_BITS
from nnef_hw.parts.readers.reader import Reader

__all__ = ["ProgramImage", "fill_beats", "frame_beats", "image_bytes", "loaded_bytes"]


@dataclass(frozen=True, eq=False)
class ProgramImage:
    """The program of a design in the memory that it comes from."""

    design: Design

    @property
    def memory(self) -> Store:
        """Memory that holds the image."""
        assert self.design.store is not None
        return self.design.store

    @property
    def part(self) -> Reader:
        """Part that reads the memory."""
        assert self.design.packets.reader is not None
        return self.design.packets.reader

    @property
    def kind(self) -> str:
        """Name of the memory for users."""
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
        """Words of 16 bits, of which those come once that are kept on the chip."""
        return self.design.packets.image_words

    @property
    def is_loaded(self) -> bool:
        """The host fills the memory over the link."""
        return self.memory.is_loaded

    @property
    def data(self) -> bytes:
        """The image."""
        return self.memory.padded(image_bytes(self.design))


def fill_beats(design: Design) -> Iterator[int]:
    """Yield the beats that a streamed engine takes once.

    Tables, packets that stay, and those of instructions that run once.

    These go to the memory of codes in pieces of three beats, 0, how many words there are, with bit
    :data:`.FILL_FLAG`, and where the first one goes, and then the words, the lowest bits first.
    """
    if not design.packets.repeats_tables:
        yield from _tables(design)
    for n in design.resident:
        yield from _filling(design, n)
    for n in range(design.program.first):
        yield from _packet(design, n)


def frame_beats(design: Design) -> Iterator[int]:
    """Yield the beats that a streamed engine takes per frame: packets, but those that stay.

    Behind the packet of the instruction during which another one is staged, the pieces of that.
    """
    if design.packets.repeats_tables:
        yield from _tables(design)
    for n in range(design.program.first, len(design.instructions)):
        if n not in design.packets.resident_places:
            yield from _packet(design, n)
        for other in design.packets.staged_behind(n):
            yield from _filling(design, other)


def _filling(design: Design, n: int) -> Iterator[int]:
    """Yield the pieces that write the packet of an instruction to the memory of codes."""
    width = design.engine.code_beats
    packet = list(_packet(design, n))
    packet += [0] * (-len(packet) % width)
    for words, place in design.packets.fills(n):
        yield from (0, len(words) | 1 << FILL_FLAG, place)
        yield from packet[width * words.start : width * words.stop]


def _tables(design: Design) -> Iterator[int]:
    """Yield the packet of all tables, if there are any: 0, :data:`.TABLES_FLAG`, their beats.

    A beat is two entries, the lower one first; tables of units follow, and of what stands behind
    the engine, an entry in one beat or two.
    """
    if not design.packets.table_words:
        return
    yield from (0, 1 << TABLES_FLAG)
    yield from _table_beats(design)


def _table_beats(design: Design) -> Iterator[int]:
    """Yield the beats of all tables."""
    pairs = zip(design.entries[::2], design.entries[1::2], strict=True)
    yield from (low | high << CODE_BITS for low, high in pairs)
    yield from design.program.units.table_beats
    yield from design.program.tail_beats


def _packet(design: Design, n: int) -> Iterator[int]:
    """Yield the beats of 16 bits of an instruction.

    A packet per instruction: how many constants it needs, with the beats of a word of its weights,
    less one, above ``engine.count_bits``; how many such words; its rows, the constants, the words.
    Each of these is as many beats as it needs, the highest bits first. Of weights the upper rows of
    the array that need none are left out. Where packets may stay in the memory of codes, a last
    beat tells where the next one is: with bit :data:`.RESIDENT_FLAG` there, from the word on that
    the other bits are. A row of a table that stays in the memory of the board is none of these.
    """
    engine, weights, instruction = design.engine, design.program.weights, design.instructions[n]
    beats = engine.weight_beats(instruction.weight_rows)
    yield len(instruction.constants) | max(0, beats - 1) << engine.count_bits
    yield len(instruction.weights)
    yield from _split(design.rows(instruction), engine.layout.row_beats)
    constants = [design.constants[n] for n in instruction.constants]
    yield from _split(constants, engine.constant_beats)
    if instruction.addressed is None:
        yield from _split([weights[n] for n in instruction.weights], beats)
    if engine.has(Residents):
        place = design.packets.resident_places.get(design.packets.following(n))
        yield 0 if place is None else place | 1 << RESIDENT_FLAG


def image_bytes(design: Design) -> bytes:
    """Return the image of a memory: what comes once, then the beats of a frame.

    The lower byte of each is the first one.
    """
    beats = (*fill_beats(design), *frame_beats(design))
    segments = design.packets.segments
    if segments is not None:
        return segments.image(beats)
    return b"".join(beat.to_bytes(BEAT_BITS // 8, "little") for beat in beats)


def loaded_bytes(design: Design) -> bytes:
    """Return the program that a system writes to memories: all of it, the lowest bytes first.

    Rows of the program, constants, words of weights, each in whole beats, then the tables' beats,
    and zeros up to a whole word.
    """
    engine = design.engine
    supply = engine.supply
    found: list[int] = []
    for words, beats, tilings in (
        (design.row_words, engine.layout.row_beats, supply.program_memories(engine)),
        (design.constants, engine.constant_beats, supply.constant_memories(engine)),
        (design.program.weights, engine.weight_beats(engine.array.rows),
         supply.weight_memories(engine)),
    ):  # fmt: skip
        for word in (*words, *[0] * (tilings[0].depth - len(words))):
            found += [word >> BEAT_BITS * beat & (1 << BEAT_BITS) - 1 for beat in range(beats)]
    if engine.table_beats:
        found += _table_beats(design)
    image = b"".join(beat.to_bytes(BEAT_BITS // 8, "little") for beat in found)
    return image + bytes(-len(image) % (LOADED_BITS // 8))


def _split(words: Sequence[int], beats: int) -> Iterator[int]:
    for word in words:
        for beat in reversed(range(beats)):
            yield word >> BEAT_BITS * beat & (1 << BEAT_BITS) - 1
