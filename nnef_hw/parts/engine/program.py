"""The program of a shared engine: fields of its instructions, and the beats that they come in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cached_property

from nnef_hw.parts.engine.sizes import CODE_BITS, EngineSizes

__all__ = [
    "BEAT_BITS",
    "FILL_FLAG",
    "MOST_CONSTANTS",
    "PASS_LEVEL",
    "QUANTITIES",
    "RESIDENT_FLAG",
    "SIGNED_FIELDS",
    "TABLES_FLAG",
    "TABLE_BEATS",
    "EngineProgram",
    "Kind",
    "beats_of",
]

BEAT_BITS = 16
"""Bits of a beat of the program, where it comes as a stream."""
MOST_CONSTANTS = 64
"""Constants that an instruction has then, unless a single pass has more results."""
_COUNT_BITS = 9
TABLE_BEATS = (1 << CODE_BITS) * CODE_BITS // BEAT_BITS
"""Beats of a function by table; all of them come in a packet of their own."""
TABLES_FLAG = BEAT_BITS - 1
"""Bit of the second beat of a packet that tells so."""
FILL_FLAG = BEAT_BITS - 2
"""Bit of the second beat: words of the memory of codes follow, not an instruction."""
RESIDENT_FLAG = BEAT_BITS - 1
"""Bit of the last beat of a packet: the next one is in the memory of codes, at the word below."""
SIGNED_FIELDS = ("own_factor", "other_factor", "offset")
_RING_ROWS = 256
_LATE = frozenset({
    "by_lane", "maximum", "inverts", "gathers", "packs", "adds", "shares", "rounds_once",
    "zero_point", "low", "high", "other", "sum_low", "sum_high", "own_factor", "other_factor",
    "offset", "looks_up", "table",
})  # fmt: skip
PASS_LEVEL = 3
"""Levels below this one are the words of a pass; their sums are kept when it ends."""
QUANTITIES = ("read", "y", "x", "weight", "constant", "write")
"""What every word has: addresses, and the pixel that it reads."""


class Kind(IntEnum):
    """What an instruction of the program does."""

    LOAD = 0
    """Take a tensor from the input."""
    RUN = 1
    """Compute a layer."""
    SEND = 2
    """Give a tensor to the output."""


class EngineProgram(EngineSizes):
    """Where the fields of an instruction are, and how it comes as a stream."""

    @property
    def resident_beats(self) -> int:
        """Beats of a word of the memory of codes."""
        return self.word_bits // BEAT_BITS

    @property
    def count_bits(self) -> int:
        """Bits of the first beat of a packet that count constants.

        Above are the beats of a word of its weights, less one.
        """
        return min(_COUNT_BITS, BEAT_BITS - (self.weight_beats(self.rows) - 1).bit_length())

    def weight_beats(self, rows: int) -> int:
        """Return the beats of a word of weights of so many rows."""
        return beats_of(rows * self.word_bits)

    @property
    def constant_beats(self) -> int:
        """Beats of a constant of a program that is a stream."""
        return beats_of(self.results * self.constant_bits)

    @property
    def row_beats(self) -> int:
        """Beats of a row of such a program."""
        return beats_of(self.row_bits)

    @cached_property
    def loop_fields(self) -> Mapping[str, int]:
        """Fields of a row that belongs to a loop, and their widths."""
        names = ("count", *(f"{name}_step" for name in QUANTITIES))
        return {name: self.fields[name] for name in names}

    @cached_property
    def row_bits(self) -> int:
        """Width of the program."""
        return max(sum(self.loop_fields.values()), *self.fields.values())

    @cached_property
    def parameters(self) -> Mapping[str, tuple[int, int]]:
        """Where the other fields are: row behind those of the loops, and lowest bit.

        What results on their way need comes last, and so late that what is in the first row, and
        tells whether to wait for them, is there.
        """
        places: dict[str, tuple[int, int]] = {}
        row = bit = 0
        # Where the program comes as a stream, weights and constants begin where they came to.
        known = {*self.loop_fields, *(("weight", "constant") if self.streamed else ())}
        names = [name for name in self.fields if name not in known]
        early = [name for name in names if name not in _LATE]
        early.sort(key=lambda name: name != "follows")
        for group in (early, [name for name in names if name in _LATE]):
            for name in group:
                if bit + self.fields[name] > self.row_bits:
                    row, bit = row + 1, 0
                places[name] = row, bit
                bit += self.fields[name]
            row, bit = max(row + 1, 1 + self.read_stage), 0
        return places

    @cached_property
    def late_row(self) -> int:
        """First row of an instruction that is read only when the results before have left."""
        late = (self.parameters[name][0] for name in _LATE & self.parameters.keys())
        return self.levels + min(late, default=self.instruction_rows - self.levels)

    @cached_property
    def instruction_rows(self) -> int:
        """Rows of an instruction."""
        return self.levels + 1 + max(row for row, _ in self.parameters.values())

    @property
    def instruction_stride(self) -> int:
        """Rows from an instruction to the next one, a power of two."""
        return 1 << (self.instruction_rows - 1).bit_length()

    @property
    def slots(self) -> int:
        """Instructions that the memory of the program holds."""
        if not self.streamed:
            return self.instructions
        return max(2, _RING_ROWS // self.instruction_stride)


def beats_of(bits: int) -> int:
    """Return the beats that so many bits come in."""
    return -(-bits // BEAT_BITS)
