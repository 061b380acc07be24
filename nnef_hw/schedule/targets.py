"""Devices and boards as data: what a design may use, and the clock it gets by default."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from nnef_hw.blockram import BlockRam
from nnef_hw.errors import UsageError

__all__ = ["TARGETS", "Device", "Target", "find_target"]


@dataclass(frozen=True, slots=True)
class Device:
    """What an FPGA has.

    Parameters
    ----------
    name, family
        ``up5k`` of ``ice40``, ``ecp5-85k`` of ``ecp5``.
    lut, ff
        Logic cells (one LUT4 and one flip-flop each).
    dsp, products_per_dsp
        DSP blocks, and independent 8x8 products in each.
    bram, ram
        Block RAMs and their shapes.
    spram
        Single-port RAM blocks.
    lut_multiplier
        LUTs of one registered 8x8 multiplier in logic, measured.
    weight_delay
        Registers between weight memories and multipliers that the clocks of its boards need.
    digit_bits
        Most adders a requantizer may chain in one cycle, for the clocks of its boards.
    """

    name: str
    family: str
    lut: int
    ff: int
    dsp: int
    products_per_dsp: int
    bram: int
    ram: BlockRam
    spram: int
    lut_multiplier: int
    weight_delay: int
    digit_bits: int

    @property
    def products(self) -> int:
        """8x8 products that the DSP blocks give."""
        return self.dsp * self.products_per_dsp

    @property
    def ram_bytes(self) -> int:
        """Bytes of block RAM, as 8-bit words."""
        depth, width = self.ram.shapes[0]
        return self.bram * depth * (width // 8)


ICE40_RAM = BlockRam("SB_RAM40_4K", ((256, 16), (512, 8), (1024, 4), (2048, 2)))
# Its narrower shapes save a multiplexer now and then, but take a line of Verilog per few bits.
ECP5_RAM = BlockRam("DP16KD", ((512, 36), (1024, 18), (2048, 9)))

UP5K = Device(
    name="up5k", family="ice40", lut=5280, ff=5280, dsp=8, products_per_dsp=2, bram=30,
    ram=ICE40_RAM, spram=4, lut_multiplier=112, weight_delay=0, digit_bits=2,
)  # fmt: skip
ECP5_85K = Device(
    name="ecp5-85k", family="ecp5", lut=83640, ff=83640, dsp=156, products_per_dsp=1, bram=208,
    ram=ECP5_RAM, spram=0, lut_multiplier=104, weight_delay=1, digit_bits=2,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """A board the compiler can build for.

    Parameters
    ----------
    name, title
        On the command line, and in full.
    aliases
        Other names on the command line.
    device, part, package
        Its FPGA, and that FPGA's names for place and route.
    clock_mhz
        Clock of the accelerator unless the user asks for another.
    link_lut, link_bram
        What the host link takes of the device, measured.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    device: Device
    part: str
    package: str
    clock_mhz: float
    link_lut: int
    link_bram: int


TARGETS = (
    Target(
        "icebreaker", "1BitSquared iCEBreaker", ("ice40",), UP5K, "up5k", "sg48",
        clock_mhz=24.0, link_lut=700, link_bram=1,
    ),
    Target(
        "ulx3s_85f", "Radiona ULX3S 85F", ("ecp5",), ECP5_85K, "85k", "CABGA381",
        clock_mhz=60.0, link_lut=700, link_bram=1,
    ),
)  # fmt: skip


def find_target(name: str) -> Target:
    """Return the board of that name or alias.

    Raises
    ------
    UsageError
        If there is none; the message lists all boards.
    """
    names = {alias: target for target in TARGETS for alias in (target.name, *target.aliases)}
    if name in names:
        return names[name]
    close = get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise UsageError(
        f"board {name!r} is not known", remedy=f"{hint}choose one of {', '.join(sorted(names))}"
    )
