"""The shared engine: sizes, fields of its program, and how many cycles its pipeline takes.

docs/engine.md describes it. What depends on a network is chosen by :mod:`nnef_hw.engine`; the
components of ``rtl/`` read every number here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property

from nnef_hw.blockram import SPRAM_SHAPE, BlockRam, Tiling, tile_memory

__all__ = [
    "BEAT_BITS",
    "CODE_BITS",
    "FILL_FLAG",
    "LEVELS",
    "MOST_CONSTANTS",
    "PASS_LEVEL",
    "QUANTITIES",
    "RESIDENT_FLAG",
    "RESIDUAL_CYCLES",
    "SIGNED_FIELDS",
    "TABLES_FLAG",
    "TABLE_BEATS",
    "Engine",
    "Kind",
]

CODE_BITS = 8
"""Bits of an activation code and of a weight."""
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
LEVELS = 6
"""Loops of a layer; level 0 is the innermost."""
PASS_LEVEL = 3
"""Levels below this one are the words of a pass; their sums are kept when it ends."""
QUANTITIES = ("read", "y", "x", "weight", "constant", "write")
"""What every word has: addresses, and the pixel that it reads."""

RESIDUAL_CYCLES = (8, 4)
"""Cycles per code of sums of two tensors that are made bit by bit."""

_READ_STAGE = 1


class Kind(IntEnum):
    """What an instruction of the program does."""

    LOAD = 0
    """Take a tensor from the input."""
    RUN = 1
    """Compute a layer."""
    SEND = 2
    """Give a tensor to the output."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """An engine of ``rows`` x ``lanes`` multipliers.

    Parameters
    ----------
    rows, lanes
        Output channels, and codes of a word: a power of two, of which the rows are a multiple.
    results
        Results that leave per cycle: a power of two, at most ``lanes``; what goes with them, as
        constants and the counts of a pass, is in groups of so many.
    slide_rows
        Rows between which sums may move, at most ``rows``; 1 if no layer needs it.
    in_dsp
        How many of the multipliers, from those of the first row on, are in DSP blocks.
    acc_bits
        Width of sums, signed.
    factor_bits, shift
        Width of the factors that sums are multiplied with, and the shift behind.
    digit_bits
        Bits of the factor per stage of the requantizer.
    rounds_twice, least_shift, more_shift_bits
        Whether results are rounded behind ``shift``, as TensorFlow Lite does, and shifted again:
        all of them at least so far, each further by a number of so many bits.
    residual_bits, residual_shift
        Width of the signed factors of sums of two codes, and the shift behind; 0 if there are none.
    residual_cycles
        Cycles per result of such sums: 1; or 4 or 8, where they are made bit by bit.
    maximum
        Whether it has maxima.
    tables
        Functions by table, of codes of 8 bits.
    tail_beats
        Beats of the tables of what stands behind it, which come with those functions if the program
        comes as a stream.
    code_words, constant_words
        Depths of its memories of codes and of constants; the latter is the ring of those that
        pass, if the program comes as a stream.
    other_words
        Depth of the second memory of codes, of which those are read that are added to others; 0 if
        none are, or if codes are in single-port RAM.
    single_port
        Whether the codes are in two banks of single-port RAM, each of half the words.
    weight_words
        Words of weights of a frame.
    ring_words
        Words of the memory that weights pass, a power of two, if the program comes as a stream with
        its weights and constants; 0 if memories hold all of it for ever.
    instructions
        Length of the program.
    fields
        Width of every field of a program's row.
    residents
        Whether packets of the stream may stay in the memory of codes, which then is in banks.
    batches
        Whether layers run for several frames one after the other: they have a loop more.
    same_fields
        Fields of which all instructions that look at them have the same: width and contents.
    ram
        The device's block RAM.
    """

    rows: int
    lanes: int
    slide_rows: int
    in_dsp: int
    acc_bits: int
    factor_bits: int
    shift: int
    digit_bits: int
    residual_bits: int
    residual_shift: int
    maximum: bool
    code_words: int
    weight_words: int
    constant_words: int
    instructions: int
    fields: Mapping[str, int]
    ram: BlockRam
    ring_words: int = 0
    tables: int = 0
    tail_beats: int = 0
    single_port: bool = False
    residual_cycles: int = 1
    rounds_twice: bool = False
    least_shift: int = 0
    more_shift_bits: int = 0
    residents: bool = False
    batches: bool = False
    results: int = 1
    other_words: int = 0
    same_fields: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.lanes < 4 or self.lanes & (self.lanes - 1):
            raise ValueError(f"Engine lanes must be a power of two, at least 4, not {self.lanes}")
        if self.rows < 4 or self.rows % self.lanes:
            raise ValueError(f"Engine rows must be a multiple of the lanes, not {self.rows}")
        if self.results < 1 or self.results & (self.results - 1) or self.lanes % self.results:
            raise ValueError(
                f"Engine results must be a power of two, at most the lanes, not {self.results}"
            )
        if self.results > 1 and (self.single_port or self.residual_cycles > 1):
            raise ValueError("Engine results leave one by one to single-port RAM, and bit by bit")
        if self.ring_words & (self.ring_words - 1):
            raise ValueError(f"Engine ring_words must be a power of two, not {self.ring_words}")
        if self.residents and not (self.streamed and self.single_port):
            raise ValueError("Engine residents need a stream, and codes in single-port RAM")
        if self.residual_cycles not in {1, *RESIDUAL_CYCLES}:
            raise ValueError(f"Engine residual_cycles cannot be {self.residual_cycles}")
        if not 1 <= self.slide_rows <= self.rows:
            raise ValueError(f"Engine slide_rows must be in 1..{self.rows}, not {self.slide_rows}")

    def bits(self, name: str) -> int:
        """Return the width of a field, whether instructions have it or all of them the same."""
        return self.fields[name] if name in self.fields else self.same_fields[name][0]

    @property
    def streamed(self) -> bool:
        """Whether the program comes as a stream, with its weights and constants."""
        return self.ring_words > 0

    @property
    def levels(self) -> int:
        """Loops of an instruction: the last one, over frames, only if there are several."""
        return LEVELS + self.batches

    @property
    def resident_beats(self) -> int:
        """Beats of a word of the memory of codes."""
        return self.word_bits // BEAT_BITS

    @property
    def multipliers(self) -> int:
        """Multipliers of the array."""
        return self.rows * self.lanes

    @property
    def in_logic(self) -> int:
        """Those of them that are in LUTs."""
        return self.multipliers - self.in_dsp

    @property
    def word_bits(self) -> int:
        """Bits of a word of codes."""
        return self.lanes * CODE_BITS

    @property
    def tree_levels(self) -> int:
        """Adders in a row between the products of lanes and their sum."""
        return (self.lanes - 1).bit_length()

    @property
    def tree_stages(self) -> int:
        """Cycles that they take: two adders each."""
        return -(-self.tree_levels // 2)

    @property
    def stages(self) -> int:
        """Multipliers of the requantizer in a row."""
        return -(-self.factor_bits // self.digit_bits)

    @property
    def extra_bits(self) -> int:
        """Bits by which sums are scaled up, so that there is one to round at."""
        return max(0, self.stages * self.digit_bits + 1 - self.shift)

    @property
    def requantizer_delay(self) -> int:
        """Cycles from a sum to its code: bias, multipliers, (the first) rounding, limits."""
        return 1 + self.stages + 2 + (2 if self.rounds_twice else 0)

    @property
    def constant_bits(self) -> int:
        """Bits of a constant: bias, factor, shift."""
        return self.acc_bits + self.factor_bits + self.more_shift_bits

    @property
    def residual_begin(self) -> int:
        """Cycles from a code until its sum with another one is begun, where that is bit by bit.

        The address of the other word, waiting for the memory, the word, its register.
        """
        return 4

    @property
    def residual_bits_per_cycle(self) -> int:
        """Bits of a code that are multiplied per cycle then."""
        return CODE_BITS // self.residual_cycles

    @property
    def residual_delay(self) -> int:
        """Cycles from a code to its sum with another one.

        Memory, choice, products, sum, limits; or, bit by bit, the bits, offset, limits.
        """
        if self.residual_cycles > 1:
            return self.residual_begin + 1 + self.residual_cycles + 2
        return self.other_cycles + 4 if self.residual_bits else 0

    @property
    def table_delay(self) -> int:
        """Cycles from a code to its function."""
        return 1 if self.tables else 0

    @property
    def shares(self) -> bool:
        """Whether what is added may be in the bank that is read, for which no word is issued."""
        return "shares" in self.fields

    @property
    def gathers(self) -> bool:
        """Whether there are layers of which every word that is read gives one code."""
        return "gathers" in self.fields

    @property
    def multiplies(self) -> bool:
        """Whether there are products of two tensors: codes that become weights."""
        return "multiplies" in self.fields

    @property
    def inverts(self) -> bool:
        """Whether there are least codes: greatest ones of codes that are inverted."""
        return "inverts" in self.fields

    @property
    def packs(self) -> bool:
        """Whether such codes go to one word after the other, if the instruction tells so."""
        return "packs" in self.fields

    @property
    def lane_bits(self) -> int:
        """Lowest bits of what is read which tell a lane: where single codes are read."""
        return (self.lanes - 1).bit_length() if self.gathers else 0

    def other_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of a pass's last word to that in which none is, then.

        A word is read in the cycle after its issue, and what is added to the first result in that
        in which this comes from the requantizer, or in the next one if it is added bit by bit.
        """
        later = int(self.residual_cycles > 1)
        return self.keep_stage(by_lane=by_lane) + self.requantizer_delay + later

    @property
    def operand_stage(self) -> int:
        """Cycles from the issue of a word to its codes and weights at the multipliers."""
        return _READ_STAGE + (1 if self.direct else 1 + self.code_cycles)

    @property
    def code_cycles(self) -> int:
        """Cycles from the address of a word of codes to the word.

        Two where the block RAMs of which one is chosen have registers of their own.
        """
        return 2 if self.ram.has_register and not self.single_port else 1

    @property
    def other_cycles(self) -> int:
        """Cycles from the address of a word that is added to the word.

        Where block RAMs have registers, it has one more behind the choice; but there is no time for
        that bit by bit.
        """
        return 3 if self.code_cycles > 1 and self.residual_cycles == 1 else 1

    @property
    def direct(self) -> bool:
        """Whether codes and weights go from the memories to the multipliers without a register.

        The DSP blocks of an UP5K, which alone has single-port RAM, have registers of their own.
        """
        return self.single_port and self.in_dsp == self.multipliers

    @property
    def sum_stage(self) -> int:
        """Cycles from the issue of a word until its products are added."""
        return self.operand_stage + 2

    def keep_stage(self, *, by_lane: bool) -> int:
        """Return the cycles from the issue of the last word of a pass until its sums are kept."""
        return self.sum_stage + 1 + (0 if by_lane else self.tree_stages)

    def drain(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word was issued in which nothing else begins.

        The first word that an instruction reads two cycles later finds all codes written.

        Parameters
        ----------
        adds
            Whether the layer's codes are added to others.
        """
        slowly = self.residual_cycles > 1
        results = (self.rows // self.results - 1) * self.pace(adds=adds) + 1
        behind = self.requantizer_delay + self.table_delay
        behind += self.residual_delay if adds or not slowly else 0
        # a write to single-port RAM may wait for a cycle
        waits = int(self.single_port and self.residual_bits > 0 and not slowly)
        return self.keep_stage(by_lane=False) - 1 + results + behind + waits

    def pace(self, *, adds: bool) -> int:
        """Return the cycles from a result of a pass to the next one."""
        return self.residual_cycles if adds else 1

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

        What results on their way need comes last, and not before the third row, so that what
        tells whether to wait for them is there.
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
            row, bit = max(row + 1, 2), 0
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
    def setup(self) -> int:
        """Cycles in which an instruction is read: from the first row until its fields are there."""
        return self.instruction_rows + 1

    def settle(self, *, adds: bool) -> int:
        """Return the cycles after a layer's last word before the next one begins, at least."""
        return self.drain(adds=adds) + self.instruction_rows - self.late_row - self.late_ahead

    @property
    def late_ahead(self) -> int:
        """Cycles by which these rows are read before the last codes are written.

        What the requantizer and all before it need is in a single row; it comes when they are
        through. Codes that are collected to words in two ways are behind it.
        """
        behind = self.residual_bits or self.tables or (self.gathers and self.results > 1)
        return int(not behind and self.instruction_rows - self.late_row == 1)

    @property
    def before_load(self) -> int:
        """Cycles from the begin of a load to its first code, padding included."""
        return 1

    @property
    def border_delay(self) -> int:
        """Cycles from the last code that is loaded or sent until the instruction ends."""
        return 1

    @property
    def before_send(self) -> int:
        """Cycles from the begin of a send until its first code is offered."""
        return 2 + self.between_words

    @property
    def between_words(self) -> int:
        """Cycles from the last code of a word that is offered to the first one of the next."""
        return 2 if self.direct else 2 + self.code_cycles

    @cached_property
    def code_memory(self) -> Tiling:
        """Memory of activations."""
        return tile_memory(self.ram, self.code_words, self.word_bits)

    @cached_property
    def other_memory(self) -> Tiling:
        """Memory of those that are added to others, a second time."""
        return tile_memory(self.ram, self.other_words, self.word_bits)

    @property
    def slots(self) -> int:
        """Instructions that the memory of the program holds."""
        if not self.streamed:
            return self.instructions
        return max(2, _RING_ROWS // self.instruction_stride)

    @property
    def constants_ahead(self) -> int:
        """Constants that may come before those of instructions that run are freed.

        Results on their way still need those of the instruction that has ended last, and, if the
        next one ends before they have left, of the one before.
        """
        ended = 1
        for pace in {1, self.residual_cycles}:
            needed = self.keep_stage(by_lane=False) + self.rows // self.results * pace + 1
            # A pass that is added bit by bit has at least so many words.
            words = self.lanes * pace if pace > 1 else 2
            if self.setup + 1 + words < needed:
                ended = 2
        return self.constant_words - ended * max(MOST_CONSTANTS, self.rows // self.results)

    @cached_property
    def weight_memories(self) -> tuple[Tiling, ...]:
        """Memory of weights; if they come as a stream, one for each beat, or two, of a word."""
        depth = self.ring_words or self.weight_words
        return self._filled(depth, self.multipliers * CODE_BITS)

    @property
    def count_bits(self) -> int:
        """Bits of the first beat of a packet that count constants.

        Above are the beats of a word of its weights, less one.
        """
        return min(_COUNT_BITS, BEAT_BITS - (self.weight_beats(self.rows) - 1).bit_length())

    def weight_beats(self, rows: int) -> int:
        """Return the beats of a word of weights of so many rows."""
        return _beats(rows * self.word_bits)

    @property
    def constant_beats(self) -> int:
        """Beats of a constant of a program that is a stream."""
        return _beats(self.results * self.constant_bits)

    @property
    def row_beats(self) -> int:
        """Beats of a row of such a program."""
        return _beats(self.row_bits)

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
        pairs, rest = divmod(_beats(bits), 2)
        ways = (beat * _beats(bits), pair * pairs + beat * rest)
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
        return 2 * self.word_bits // SPRAM_SHAPE[1] if self.single_port else 0

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


def _beats(bits: int) -> int:
    """Return the beats that so many bits come in."""
    return -(-bits // BEAT_BITS)
