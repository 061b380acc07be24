"""Segments of a program's stream in memory, whose order rows of tables interrupt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnef_hw.engine.memory.addressed_tables import AddressedRowLayer
from nnef_hw.engine.program.program import Program
from nnef_hw.parts.engine.engine import Engine
from nnef_hw.parts.readers.row_reader import Segment
from nnef_hw.parts.readers.sdram_reader import GRANULE

__all__ = ["Segments"]


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of an image whose program has rows of tables, and the tables behind them.

    Parameters
    ----------
    program, engine
        What it is of, and what takes it.
    once_words, table_words
        Beats that come only once, and those of tables in front of a frame's packets.
    packet_words
        Returns the beats of the packet of an instruction.
    """

    program: Program
    engine: Engine
    once_words: int
    table_words: int
    packet_words: Callable[[int], int]

    @cached_property
    def rows(self) -> Sequence[int]:
        """Instructions whose weights are a row."""
        every = enumerate(self.program.instructions)
        return [n for n, instruction in every if instruction.addressed is not None]

    @property
    def first(self) -> int:
        """Segments that come only once."""
        return int(self.once_words > 0)

    def layer(self, n: int) -> AddressedRowLayer:
        """Return the layer of an instruction whose weights are a row."""
        number = self.program.instructions[n].addressed
        assert number is not None
        layer = self.program.layers[number]
        assert isinstance(layer, AddressedRowLayer)
        return layer

    def word_beats(self, n: int) -> int:
        """Return the beats of a word of the weights of an instruction."""
        return self.engine.weight_beats(self.program.instructions[n].weight_rows)

    def row_words(self, n: int) -> int:
        """Return the beats of a row."""
        return len(self.program.instructions[n].weights) * self.word_beats(n)

    @cached_property
    def lengths(self) -> Sequence[tuple[int, int | None]]:
        """Beats of every segment, and the instruction whose row it is."""
        found: list[tuple[int, int | None]] = [(self.once_words, None)] * self.first
        words = self.table_words
        for n in range(self.program.first, len(self.program.instructions)):
            words += self.packet_words(n)
            if n in self.rows:
                row = self.row_words(n)
                found += [(words - row, None), (row, n)]
                words = 0
        return [*found, (words, None)]

    @cached_property
    def found(self) -> tuple[Segment, ...]:
        """The segments in their order."""
        place, plain = 0, []
        for words, n in self.lengths:
            plain.append(place)
            if n is None:
                place += _up(words, GRANULE)
        segments = []
        for first, (words, n) in zip(plain, self.lengths, strict=True):
            if n is None:
                segments.append(Segment(first, words))
                continue
            layer, pitch = self.layer(n), GRANULE
            while pitch < words:
                pitch *= 2
            own = Segment(_up(place, pitch), words, layer.place.port, len(layer.rows), pitch)
            place = own.end
            segments.append(own)
        return tuple(segments)

    @cached_property
    def words(self) -> int:
        """Words of the image."""
        return max(segment.end for segment in self.found)

    def image(self, beats: Sequence[int]) -> bytes:
        """Return the image of the beats of a frame and what comes before it, rows left out."""
        words, taken = np.zeros(self.words, "<u2"), 0
        stream = np.asarray(beats, "<u2")
        for segment, (count, n) in zip(self.found, self.lengths, strict=True):
            if n is None:
                words[segment.first : segment.first + count] = stream[taken : taken + count]
                taken += count
                continue
            rows = self.layer(n).row_beats(self.program.shape, self.word_beats(n))
            places = segment.first + segment.pitch * np.arange(len(rows))
            words[places[:, None] + np.arange(count)] = rows
        assert taken == len(stream), "segments are the stream"
        return words.tobytes()


def _up(place: int, step: int) -> int:
    """Return the next multiple of a step."""
    return -(-place // step) * step
