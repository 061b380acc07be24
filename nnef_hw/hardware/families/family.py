"""Facts about the silicon of an FPGA family, measured or from its manuals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["AdderTiming", "Family", "Pin"]


@dataclass(frozen=True, kw_only=True)
class AdderTiming:
    """Delays of chained adders in placed designs, wires included.

    Parameters
    ----------
    start_ns
        From a register to the first adder, and from the last one into a register.
    adder_ns
        Each adder of the longest path.
    carry_ns
        Each bit of the widest adder.
    """

    start_ns: float
    adder_ns: float
    carry_ns: float

    def chained(self, clock_mhz: float, bits: int) -> int:
        """Return how many adders of at most so many bits fit into a cycle; at least one."""
        left = 1000 / clock_mhz - self.start_ns - bits * self.carry_ns
        return max(1, int(left / self.adder_ns))

    def clock_mhz(self, adders: int, bits: int) -> float:
        """Return the fastest clock at which so many adders of at most so many bits fit a cycle."""
        return 1000 / (self.start_ns + bits * self.carry_ns + adders * self.adder_ns)


@dataclass(frozen=True)
class Pin:
    """A pin of the device: its package name, polarity, and what the board asks of it."""

    site: str
    invert: bool
    attributes: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Family(ABC):
    """An FPGA family: the facts of its silicon.

    A family that leaves a fact or a question open cannot be made. There is one object of each, so
    that they are compared and hashed as objects; it prints as its name.

    Parameters
    ----------
    name, title
        As the command line calls it, and in full. The name is also an alias of the board that
        stands for the family: components are measured for its device.
    ram
        Block RAM and its shapes.
    products_per_dsp
        Independent 8x8 products in a DSP block.
    paired_weight_bits
        Widest weights of which a DSP block makes two independent products with codes of 8 bits,
        where it makes one with wider weights; 0 if there are none.
    sums_per_dsp
        Products of two sums of 9 bits, for two products each of a fast inner product; 0 where these
        take as many DSP blocks as the products.
    packed_weight_bits
        Widest weights of which a DSP block makes four products with codes of 8 bits, as sums of a
        code and two weights; 0 if there are none.
    adds_in_dsp
        Whether such a block adds one of the two sums itself.
    flip_flops_per_lut
        How many flip-flops a device has beside each of its LUTs.
    has_lut_ram
        Whether LUTs can be memory.
    lut_multiplier
        LUTs of one registered 8x8 multiplier in logic, measured (:mod:`.lut_weights`).
    mixes_products
        Whether devices have the LUTs for multipliers beside an engine whose others fill the DSP
        blocks.
    lut_weights
        LUTs per unit of every feature of a part, measured: ``lut_weights[part][feature]``
        (:mod:`.lut_weights`); ``docs/resources.md`` tells how.
    weight_delay
        Registers between weight memories and multipliers that the clocks of its boards need.
    long_wires
        Whether a wire across the device takes most of a cycle of those clocks: a FIFO then stands
        between sums and their requantizer, and a restart hops from block to block.
    has_wide_products
        Whether a DSP block, as the toolchain places it, multiplies factors of 16 bits.
    adders
        How long chained adders take; ``docs/resources.md`` tells how it was measured.
    digit_bits
        Most adders a requantizer may chain in one cycle, for the clocks of its boards.
    logic_words
        Most words of a weight memory in LUTs, for the clocks of its boards.
    lut_share
        Share of the LUTs that an engine may fill and still reach those clocks.
    stream_share
        The same for a streaming design, as estimated; its wires are shorter. Of ECP5 and Gowin
        about that of the fullest design that was routed at such a clock.
    loop_lut
        LUTs that are set aside for the loop of a language model of up to 32 tokens, measured; and
        for each further bit of a token.
    ip_clock_mhz
        Clock for which the rates of plain IP are reported unless the user asks for another.
    define
        Macro with which ``primitives.v`` instantiates the family's cells.
    pll
        ``module:class`` of its clock generator.
    toolchain
        ``module:object`` of what maps and places its designs: ``nnef_hw.place.toolchain``.
    """

    name: str
    title: str
    ram: BlockRam
    products_per_dsp: int
    paired_weight_bits: int
    sums_per_dsp: int
    packed_weight_bits: int
    adds_in_dsp: bool
    flip_flops_per_lut: float
    has_lut_ram: bool
    lut_multiplier: int
    mixes_products: bool
    lut_weights: Mapping[str, Mapping[str, float]]
    weight_delay: int
    long_wires: bool
    has_wide_products: bool
    adders: AdderTiming
    digit_bits: int
    logic_words: int
    lut_share: float
    stream_share: float
    loop_lut: tuple[int, int]
    ip_clock_mhz: float
    define: str
    pll: str
    toolchain: str

    @abstractmethod
    def product_share(self, digits: int, width: int) -> float:
        """Return the LUTs of a multiplier in logic, for each one of an 8x8 multiplier.

        Measured; ``digits`` are the bits of the narrower factor, ``width`` those of the other.
        """

    def lut_ram_luts(self, cells: float) -> float:
        """Return the LUTs of so many cells of LUT RAM, measured in memories of weights."""
        return cells * self.lut_weights["weight writer"]["lut ram cells"] if cells else 0.0

    def pll_class(self) -> object:
        """Return the class of the clock generator; its module is imported only now."""
        module, _, name = self.pll.partition(":")
        return getattr(import_module(module), name)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        # another process, or a copy, has the same object: the constant of the family's module
        return self.name.upper()
