"""The program of a shared engine: where fields of its instructions are, and their beats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

from nnef_hw.parts.engine.fields import Fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = [
    "BEAT_BITS",
    "FILL_FLAG",
    "LOADED_BITS",
    "MOST_CONSTANTS",
    "PASS_LEVEL",
    "QUANTITIES",
    "RESIDENT_FLAG",
    "TABLES_FLAG",
    "TABLE_BEATS",
    "Kind",
    "Layout",
    "beats_of",
]

BEAT_BITS = 16
"""Bits of a beat of the program, where it comes as a stream."""
LOADED_BITS = 2 * BEAT_BITS
"""Bits in which a system writes a program: two beats, the lower one first."""
MOST_CONSTANTS = 64
"""Constants that an instruction has then, unless a single pass has more results."""
TABLE_BEATS = (1 << CODE_BITS) * CODE_BITS // BEAT_BITS
"""Beats of a function by table; all of them come in a packet of their own."""
TABLES_FLAG = BEAT_BITS - 1
"""Bit of the second beat of a packet that tells so."""
FILL_FLAG = BEAT_BITS - 2
"""Bit of the second beat: words of the memory of codes follow, not an instruction."""
RESIDENT_FLAG = BEAT_BITS - 1
"""Bit of the last beat of a packet: the next one is in the memory of codes, at the word below."""
PASS_LEVEL = 3
"""Levels below this one are the words of a pass; their sums are kept when it ends."""
QUANTITIES = ("read", "y", "x", "weight", "constant", "write")
"""What every word has: addresses, and the pixel that it reads."""


class Kind(IntEnum):
    """Kind of an instruction of the program."""

    LOAD = 0
    """Take a tensor from the input."""
    RUN = 1
    """Compute a layer."""
    SEND = 2
    """Give a tensor to the output."""
    STREAM = 3
    """Send a tensor through a unit, and load what comes back."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Layout:
    """Where the fields of an instruction are, in rows of the program.

    Parameters
    ----------
    widths
        Width of every field of a row, of loops first.
    constants
        Fields of which all instructions that look at them have the same: width and contents.
    facts
        What all of these are.
    implied
        Fields of which no instruction needs any value.
    levels
        Loops of an instruction.
    read_stage
        Cycles from a row's address to the row.
    unit_bits
        Bits of which a row has a whole number of times as many.
    """

    widths: Mapping[str, int]
    constants: Mapping[str, tuple[int, int]]
    facts: Mapping[str, Fact]
    implied: Iterable[str]
    levels: int
    read_stage: int
    unit_bits: int = 1

    def bits(self, name: str) -> int:
        """Return the width of a field, whether instructions have it or all of them the same."""
        return self.widths[name] if name in self.widths else self.constants[name][0]

    @cached_property
    def loop_fields(self) -> Mapping[str, int]:
        """Fields of a row that belongs to a loop, and their widths."""
        names = ("count", *(f"{name}_step" for name in QUANTITIES))
        return {name: self.widths[name] for name in names}

    @cached_property
    def row_bits(self) -> int:
        """Width of the program."""
        bits = max(sum(self.loop_fields.values()), *self.widths.values())
        return -(-bits // self.unit_bits) * self.unit_bits

    @cached_property
    def row_beats(self) -> int:
        """Beats of a row of a program that is a stream."""
        return beats_of(self.row_bits)

    def _is_late(self, name: str) -> bool:
        return self.facts[name].late

    @cached_property
    def parameters(self) -> Mapping[str, tuple[int, int]]:
        """Place of each other field: row behind those of the loops, and lowest bit.

        What results on their way need comes last, and so late that what is in the first row, and
        tells whether to wait for them, is there.
        """
        places: dict[str, tuple[int, int]] = {}
        row = bit = 0
        known = {*self.loop_fields, *self.implied}
        names = [name for name in self.widths if name not in known]
        early = [name for name in names if not self._is_late(name)]
        early.sort(key=lambda name: not self.facts[name].first)
        for group in (early, [name for name in names if self._is_late(name)]):
            for name in group:
                if bit + self.widths[name] > self.row_bits:
                    row, bit = row + 1, 0
                places[name] = row, bit
                bit += self.widths[name]
            row, bit = max(row + 1, 1 + self.read_stage), 0
        return places

    @cached_property
    def late_row(self) -> int:
        """First row of an instruction that is read only when the results before have left."""
        late = (row for name, (row, _) in self.parameters.items() if self._is_late(name))
        return self.levels + min(late, default=self.rows - self.levels)

    @cached_property
    def rows(self) -> int:
        """Rows of an instruction."""
        return self.levels + 1 + max(row for row, _ in self.parameters.values())

    @property
    def stride(self) -> int:
        """Rows from an instruction to the next one, a power of two."""
        return 1 << (self.rows - 1).bit_length()


def beats_of(bits: int) -> int:
    """Return the beats that so many bits come in."""
    return -(-bits // BEAT_BITS)
