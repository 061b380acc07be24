"""What a shared engine has: the sizes of its array, requantizer and memories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nnef_hw.hardware.geometry.blockram import BlockRam, SinglePortRam

__all__ = ["CODE_BITS", "LEVELS", "RESIDUAL_CYCLES", "EngineSizes"]

CODE_BITS = 8
"""Bits of an activation code and of a weight."""
LEVELS = 6
"""Loops of a layer; level 0 is the innermost."""
RESIDUAL_CYCLES = (8, 4)
"""Cycles per code of sums of two tensors that are made bit by bit."""


@dataclass(frozen=True, kw_only=True)
class EngineSizes:
    """An engine that multiplies ``lanes`` codes by weights of ``rows`` channels per cycle.

    Parameters
    ----------
    rows, lanes
        Output channels, and codes of a word: a power of two, of which the rows are a multiple.
    results
        Results that leave per cycle: a power of two, at most ``lanes``; what goes with them, as
        constants and the counts of a pass, is in groups of so many.
    slide_rows
        Rows between which sums may move, at most ``rows``; 1 if no layer needs it.
    fast
        Whether a multiplier makes two products of a row that never slides.
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
        The single-port RAM of two banks of codes, each of half the words; None if these are in
        block RAM.
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
    single_port: SinglePortRam | None = None
    residual_cycles: int = 1
    rounds_twice: bool = False
    least_shift: int = 0
    more_shift_bits: int = 0
    residents: bool = False
    batches: bool = False
    results: int = 1
    other_words: int = 0
    fast: bool = False
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
    def products(self) -> int:
        """Products per cycle, each with a weight."""
        return self.rows * self.lanes

    @property
    def plain_rows(self) -> int:
        """Rows with a multiplier for every product, which is also used alone; the first ones."""
        return self.slide_rows if self.fast else self.rows

    @property
    def runs(self) -> tuple[int, int, int]:
        """Multipliers of single products, of two products each, and of pairs of codes."""
        half = self.lanes // 2
        fast_rows = self.rows - self.plain_rows
        return self.plain_rows * self.lanes, fast_rows * half, half * self.fast

    @property
    def runs_in_dsp(self) -> tuple[int, int, int]:
        """How many of each are in DSP blocks."""
        plain, double, _ = self.runs
        in_dsp = self.in_dsp
        return (
            min(in_dsp, plain),
            min(max(0, in_dsp - plain), double),
            max(0, in_dsp - plain - double),
        )

    @property
    def multipliers(self) -> int:
        """Multipliers of the array."""
        return sum(self.runs)

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
    def tree_cycles(self) -> int:
        """Cycles from the products of lanes to their sum: sums of factors take one more."""
        return self.tree_stages + self.fast

    @property
    def stages(self) -> int:
        """Multipliers of the requantizer in a row."""
        return -(-self.factor_bits // self.digit_bits)

    @property
    def extra_bits(self) -> int:
        """Bits by which sums are scaled up, so that there is one to round at."""
        return max(0, self.stages * self.digit_bits + 1 - self.shift)

    @property
    def constant_bits(self) -> int:
        """Bits of a constant: bias, factor, shift."""
        return self.acc_bits + self.factor_bits + self.more_shift_bits

    @property
    def residual_bits_per_cycle(self) -> int:
        """Bits of a code that are multiplied per cycle then."""
        return CODE_BITS // self.residual_cycles

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

    @property
    def direct(self) -> bool:
        """Whether codes and weights go from the memories to the multipliers without a register.

        The DSP blocks of an UP5K, which alone has single-port RAM, have registers of their own.
        """
        return self.single_port is not None and self.in_dsp == self.multipliers

    @property
    def is_spread(self) -> bool:
        """Whether codes and weights are in many block RAMs, which are far apart.

        These have registers of their own, as those of constants and of the program. There is one
        in front of them, too, for addresses and for what is written, one behind the choice between
        those of codes, and one behind DSP blocks, which are as far from the adders; registers tell
        that loops are at their ends, from which addresses follow, and the borders that an
        instruction begins.
        """
        return self.ram.has_register and self.single_port is None

    @property
    def read_stage(self) -> int:
        """Cycles from the issue of a word until it is read; and from a row's address to the row."""
        return 1 + self.is_spread
