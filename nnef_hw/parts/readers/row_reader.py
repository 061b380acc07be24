"""Reader of SDRAM that leaves the order of the image for rows of tables, which integers choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.readers.sdram_reader import GRANULE, SdramReader, SdramWords

__all__ = ["RowReader", "RowWords", "Segment"]

KNOWN_CYCLES = 2
"""Cycles from an integer that is given to the first one in which its row can be read."""


class Segment(NamedTuple):
    """Words of an image that come one behind the other.

    Attributes
    ----------
    first, words
        The first one, at a multiple of 16; how many.
    port
        Input whose integer chooses a row of a table, of which this is the first; None for words
        that come in every frame.
    rows, pitch
        Rows of the table; words from a row to the next one, a power of two.
    """

    first: int
    words: int
    port: int | None = None
    rows: int = 1
    pitch: int = GRANULE

    @property
    def end(self) -> int:
        """Multiple of 16 words behind it, and behind its table."""
        last = self.first if self.port is None else self.first + (self.rows - 1) * self.pitch
        return last + GRANULE * -(-self.words // GRANULE)


@dataclass(frozen=True, kw_only=True)
class RowReader(SdramReader):
    """Gives the segments of an image in turn; of tables it gives the row that an integer chooses.

    A row waits until its integer was given in this frame.

    Parameters
    ----------
    segments
        Those of a frame, in their order; before them what comes only once.
    first
        How many of them come only once: none or one.
    place_bits
        Widths of the integers, by input.

    Raises
    ------
    ValueError
        If a segment does not begin where a burst may, or rows are no whole bursts or parts of one.
    """

    component = "nnef_hw.rtl.readers.row_reader:RowReader"
    label = "row_reader"

    segments: tuple[Segment, ...]
    first: int
    place_bits: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        for segment in self.segments:
            pitch = segment.pitch
            is_row = segment.port is not None
            if segment.first % (pitch if is_row else GRANULE) or pitch % GRANULE:
                raise ValueError(f"RowReader: a segment begins at word {segment.first}")
            if is_row and (pitch & (pitch - 1) or segment.words > pitch):
                raise ValueError(f"RowReader: rows of {segment.words} words, {pitch} apart")
        if not self.first < len(self.segments) or self.first > 1:
            raise ValueError(f"RowReader: {self.first} of {len(self.segments)} segments come once")

    def following(self, n: int) -> int:
        """Return the segment behind one: behind the last one the first of a frame."""
        return n + 1 if n + 1 < len(self.segments) else self.first

    @property
    def frame_words(self) -> int:
        """Words of a frame."""
        return sum(segment.words for segment in self.segments[self.first :])

    def words_from(self) -> RowWords:
        return RowWords(self)

    def compute(self, image: IntArray) -> IntArray:
        """Return the words of the first read, with the first row of each table."""
        return image[[n for x in self.segments for n in range(x.first, x.first + x.words)]]

    @property
    def features(self) -> Mapping[str, float]:
        # constants of each segment, chosen by its number, and what is put together to addresses
        chosen = 2 * counter_bits(self.words) + sum(bits for _, bits in self.place_bits)
        found = super().features
        return {**found, "word bits": found["word bits"] + chosen}

    def flip_flops(self, device: Device) -> int:
        places = sum(2 * bits + 1 for _, bits in self.place_bits)
        chosen = 2 * counter_bits(self.words) + 6 + counter_bits(len(self.segments))
        return super().flip_flops(device) + places + chosen


class RowWords(SdramWords):
    """When the words of a :class:`RowReader` come, segment by segment.

    As :class:`.SdramWords`; a segment is a read. The one of a row begins at the earliest
    :data:`KNOWN_CYCLES` behind the cycle in which its integer was given.
    """

    def __init__(self, reader: RowReader) -> None:
        super().__init__(reader)
        self._rows = reader
        self._segment = 0
        self._known: dict[int, int] = {}

    def give(self, port: int, cycle: int) -> None:
        """Give the integer of an input in a cycle."""
        self._known[port] = cycle

    def begin(self, wanted: int) -> int:
        port = self._rows.segments[self._segment].port
        if port is not None:
            wanted = max(wanted, self._known[port] + KNOWN_CYCLES)
        return super().begin(wanted)

    def _first(self) -> tuple[int, int]:
        segment = self._rows.segments[self._segment]
        self._segment = self._rows.following(self._segment)
        return segment.first, segment.words
