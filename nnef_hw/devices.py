"""Devices as data: what a design may use of an FPGA, and what the schedule knows of a target."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from nnef_hw.blockram import BlockRam
from nnef_hw.errors import UsageError

__all__ = [
    "DEVICES",
    "ECP5_12K",
    "ECP5_25K",
    "ECP5_45K",
    "ECP5_85K",
    "HX8K",
    "LP8K",
    "UP5K",
    "Device",
    "Resources",
    "Target",
    "find_device",
]


@dataclass(frozen=True, slots=True)
class Resources:
    """Primitives of a device: LUT4s, flip-flops, DSP blocks, block RAMs, single-port RAMs."""

    lut: int = 0
    ff: int = 0
    dsp: int = 0
    bram: int = 0
    spram: int = 0

    def __add__(self, other: Resources) -> Resources:
        return Resources(
            self.lut + other.lut,
            self.ff + other.ff,
            self.dsp + other.dsp,
            self.bram + other.bram,
            self.spram + other.spram,
        )

    def to_json(self) -> dict[str, int]:
        """Plain JSON values."""
        return asdict(self)


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
    long_wires
        Whether a wire across the device takes most of a cycle of those clocks: a FIFO then stands
        between an array and its requantizer, a restart hops from block to block, and the last DSP
        blocks are left free where LUTs are many.
    has_lut_ram
        Whether LUTs can be memory.
    digit_bits
        Most adders a requantizer may chain in one cycle, for the clocks of its boards.
    logic_words
        Most words of a weight memory in LUTs, for the clocks of its boards.
    lut_share
        Share of the LUTs that a design may fill and still reach those clocks.
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
    long_wires: bool
    has_lut_ram: bool
    digit_bits: int
    logic_words: int
    lut_share: float

    @property
    def products(self) -> int:
        """8x8 products that the DSP blocks give."""
        return self.dsp * self.products_per_dsp

    def is_within(self, other: Device) -> bool:
        """Whether another device of the family has at least as much of everything."""
        return self.family == other.family and all(
            getattr(self, name) <= getattr(other, name) for name in ("lut", "dsp", "bram", "spram")
        )

    @property
    def ram_bytes(self) -> int:
        """Bytes of block RAM, as 8-bit words."""
        depth, width = self.ram.shapes[0]
        return self.bram * depth * (width // 8)


@dataclass(frozen=True)
class Target:
    """What the schedule has to know of where a design is going.

    Parameters
    ----------
    name, title
        On the command line, and in full.
    device
        Its FPGA.
    clock_mhz
        Clock of the accelerator unless the user asks for another.
    aliases
        Other names on the command line.
    link_lut, link_bram
        What the host link takes of the device, measured.
    """

    name: str
    title: str
    device: Device
    clock_mhz: float
    aliases: tuple[str, ...] = ()
    link_lut: int = 750
    link_bram: int = 1


ICE40_RAM = BlockRam("SB_RAM40_4K", ((256, 16), (512, 8), (1024, 4), (2048, 2)))
# Its narrower shapes save a multiplexer now and then, but take a line of Verilog per few bits.
ECP5_RAM = BlockRam("DP16KD", ((512, 36), (1024, 18), (2048, 9)))


def _ice40(name: str, *, lut: int, dsp: int, bram: int, spram: int) -> Device:
    return Device(
        name=name,
        family="ice40",
        lut=lut,
        ff=lut,
        dsp=dsp,
        products_per_dsp=2,
        bram=bram,
        ram=ICE40_RAM,
        spram=spram,
        lut_multiplier=112,
        weight_delay=0,
        long_wires=False,
        has_lut_ram=False,
        digit_bits=2,
        logic_words=128,
        lut_share=0.95,
    )


def _ecp5(name: str, *, lut: int, dsp: int, bram: int) -> Device:
    return Device(
        name=name,
        family="ecp5",
        lut=lut,
        ff=lut,
        dsp=dsp,
        products_per_dsp=1,
        bram=bram,
        ram=ECP5_RAM,
        spram=0,
        lut_multiplier=104,
        weight_delay=1,
        long_wires=True,
        has_lut_ram=True,
        digit_bits=2,
        logic_words=16,
        lut_share=0.55,
    )


UP5K = _ice40("up5k", lut=5280, dsp=8, bram=30, spram=4)
HX8K = _ice40("hx8k", lut=7680, dsp=0, bram=32, spram=0)
LP8K = _ice40("lp8k", lut=7680, dsp=0, bram=32, spram=0)
# Sold as half of what is on the die of the 25F; nextpnr would let a design have all of it.
ECP5_12K = _ecp5("ecp5-12k", lut=12144, dsp=28, bram=32)
ECP5_25K = _ecp5("ecp5-25k", lut=24288, dsp=28, bram=56)
ECP5_45K = _ecp5("ecp5-45k", lut=43848, dsp=72, bram=108)
ECP5_85K = _ecp5("ecp5-85k", lut=83640, dsp=156, bram=208)

# For IP whose place is not known yet: logic, memories and multipliers as those of an ECP5.
GENERIC = _ecp5("generic", lut=100_000, dsp=200, bram=200)

DEVICES = (UP5K, HX8K, LP8K, ECP5_12K, ECP5_25K, ECP5_45K, ECP5_85K, GENERIC)


def find_device(name: str) -> Device:
    """Return the device of that name.

    Raises
    ------
    UsageError
        If there is none; the message lists all devices.
    """
    for device in DEVICES:
        if device.name == name:
            return device
    known = ", ".join(device.name for device in DEVICES)
    raise UsageError(f"device {name!r} is not known", remedy=f"choose one of {known}")
