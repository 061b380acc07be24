"""Devices as data: what a design may use of an FPGA, and what the schedule knows of a target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from nnef_hw.errors import UsageError
from nnef_hw.hardware.families import AMD7, ARORA, ECP5, GOWIN, ICE40, Family
from nnef_hw.hardware.geometry.blockram import BlockRam, SinglePortRam

__all__ = [
    "DEVICES",
    "ECP5_12K",
    "ECP5_25K",
    "ECP5_45K",
    "ECP5_85K",
    "GW1NR_9C",
    "GW2AR_18C",
    "GW5AST_138C",
    "GW5A_25A",
    "HX8K",
    "LP8K",
    "UP5K",
    "XC7A35T",
    "XC7A100T",
    "XC7S50",
    "XC7Z020",
    "Device",
    "Resources",
    "Target",
    "find_device",
]


@dataclass(frozen=True, slots=True)
class Resources:
    """Primitives of a device.

    Parameters
    ----------
    lut, ff, dsp, bram, spram
        LUTs, flip-flops, DSP blocks, block RAMs, single-port RAMs.
    """

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

    @staticmethod
    def total(parts: Iterable[Resources]) -> Resources:
        """Return the sum of several resources; summing pairs takes several times as long."""
        each = [(part.lut, part.ff, part.dsp, part.bram, part.spram) for part in parts]
        return Resources(*map(sum, zip(*each, strict=True)))

    def to_json(self) -> dict[str, int]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Device:
    """Resources of an FPGA.

    Parameters
    ----------
    name, family
        ``up5k`` of iCE40, ``ecp5-85k`` of ECP5, ``gw2ar-18c`` of Gowin, ``gw5a-25a`` of Arora V,
        ``xc7a35t`` of AMD's 7 series.
    lut
        Logic cells (one LUT4 each, of AMD a LUT6, and of some families a flip-flop).
    dsp, bram, spram
        DSP blocks, block RAMs and single-port RAM blocks.
    single_port
        What one of the latter is; None if there are none.
    placed_lut
        LUTs of the largest design that its toolchain was seen to place, if that is less than its
        family's share of it: a plan does without more, as it does beyond that share.
    """

    name: str
    family: Family
    lut: int
    dsp: int
    bram: int
    spram: int
    single_port: SinglePortRam | None = None
    placed_lut: int | None = None

    @property
    def ff(self) -> int:
        """Flip-flops."""
        return int(self.lut * self.family.flip_flops_per_lut)

    @property
    def ram(self) -> BlockRam:
        """The block RAM and its shapes."""
        return self.family.ram

    def products_per_dsp(self, w_bits: int) -> int:
        """Independent products in a DSP block, of codes and weights of at most 8 bits."""
        family = self.family
        return 2 if w_bits <= family.paired_weight_bits else family.products_per_dsp

    @property
    def sums_per_dsp(self) -> int:
        """Products of two sums of 9 bits in a DSP block."""
        return self.family.sums_per_dsp

    def pairs_products(self, products: int) -> bool:
        """Whether each multiplier of an array of so many products makes two of them.

        That is where a DSP block can, and there are too few.
        """
        return products > self.products and self.sums_per_dsp > 0

    @property
    def lut_multiplier(self) -> int:
        """LUTs of one registered 8x8 multiplier in logic."""
        return self.family.lut_multiplier

    @property
    def mixes_products(self) -> bool:
        """Whether an engine has multipliers in logic beside those in DSP blocks."""
        return self.family.mixes_products

    @property
    def weight_delay(self) -> int:
        """Registers between weight memories and multipliers."""
        return self.family.weight_delay

    @property
    def long_wires(self) -> bool:
        """Whether a wire across the device takes most of a cycle."""
        return self.family.long_wires

    @property
    def digit_bits(self) -> int:
        """Most adders a requantizer may chain in one cycle."""
        return self.family.digit_bits

    @property
    def logic_words(self) -> int:
        """Most words of a weight memory in LUTs."""
        return self.family.logic_words

    @property
    def lut_share(self) -> float:
        """Share of the LUTs that an engine may fill and still reach the clocks of the boards."""
        return self._seen(self.family.lut_share)

    @property
    def stream_share(self) -> float:
        """Share of the LUTs that a streaming design may fill and still reach these clocks."""
        return self._seen(self.family.stream_share)

    def _seen(self, share: float) -> float:
        return share if self.placed_lut is None else min(share, self.placed_lut / self.lut)

    @property
    def products(self) -> int:
        """8x8 products that the DSP blocks give."""
        return self.products_of(8)

    def products_of(self, w_bits: int) -> int:
        """Products of codes and weights of so many bits that the DSP blocks give."""
        return self.dsp * self.products_per_dsp(w_bits)

    def is_within(self, other: Device) -> bool:
        """Whether another device of the family has at least as much of everything."""
        return self.family is other.family and all(
            getattr(self, name) <= getattr(other, name) for name in ("lut", "dsp", "bram", "spram")
        )

    @property
    def ram_bytes(self) -> int:
        """Bytes of block RAM, as 8-bit words."""
        depth, width = self.ram.shapes[0]
        return self.bram * depth * (width // 8)


LINK_FF = 433

LUT_SHARE = 0.95
"""Share of a device's LUTs that placement can be trusted to use."""


@dataclass(frozen=True)
class Target:
    """Destination of a design: facts that the schedule has to know.

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
    loads_program
        Whether a system may write the program of an engine, with its weights.
    """

    name: str
    title: str
    device: Device
    clock_mhz: float
    aliases: tuple[str, ...] = ()
    link_lut: int = 840
    link_bram: int = 1
    loads_program: bool = False

    @property
    def link_ff(self) -> int:
        """Flip-flops of the host link, on every device."""
        return LINK_FF if self.link_lut else 0


UP5K = Device(
    "up5k", ICE40, lut=5280, dsp=8, bram=30, spram=4,
    single_port=SinglePortRam("SB_SPRAM256KA", depth=16384, width=16),
)  # fmt: skip
HX8K = Device("hx8k", ICE40, lut=7680, dsp=0, bram=32, spram=0)
LP8K = Device("lp8k", ICE40, lut=7680, dsp=0, bram=32, spram=0)
# Sold as half of what is on the die of the 25F; nextpnr would let a design have all of it.
ECP5_12K = Device("ecp5-12k", ECP5, lut=12144, dsp=28, bram=32, spram=0)
ECP5_25K = Device("ecp5-25k", ECP5, lut=24288, dsp=28, bram=56, spram=0)
ECP5_45K = Device("ecp5-45k", ECP5, lut=43848, dsp=72, bram=108, spram=0)
ECP5_85K = Device("ecp5-85k", ECP5, lut=83640, dsp=156, bram=208, spram=0)
GW1NR_9C = Device("gw1nr-9c", GOWIN, lut=8640, dsp=40, bram=26, spram=0)
GW2AR_18C = Device("gw2ar-18c", GOWIN, lut=20736, dsp=96, bram=46, spram=0)
GW5A_25A = Device("gw5a-25a", ARORA, lut=23040, dsp=56, bram=56, spram=0)
GW5AST_138C = Device(
    "gw5ast-138c", ARORA, lut=138_240, dsp=596, bram=340, spram=0, placed_lut=69_052
)  # fmt: skip

XC7A35T = Device("xc7a35t", AMD7, lut=20_800, dsp=90, bram=100, spram=0)
XC7A100T = Device("xc7a100t", AMD7, lut=63_400, dsp=240, bram=270, spram=0)
XC7S50 = Device("xc7s50", AMD7, lut=32_600, dsp=120, bram=150, spram=0)
XC7Z020 = Device("xc7z020", AMD7, lut=53_200, dsp=220, bram=280, spram=0)

# For IP whose place is not known yet: logic, memories and multipliers as those of an ECP5.
GENERIC = Device("generic", ECP5, lut=100_000, dsp=200, bram=200, spram=0)

DEVICES = (
    UP5K, HX8K, LP8K, ECP5_12K, ECP5_25K, ECP5_45K, ECP5_85K, GW1NR_9C, GW2AR_18C, GW5A_25A,
    GW5AST_138C, XC7A35T, XC7A100T, XC7S50, XC7Z020, GENERIC,
)  # fmt: skip


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
