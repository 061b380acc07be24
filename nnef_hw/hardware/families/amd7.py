"""AMD's 7 series (formerly Xilinx's): Artix-7, Spartan-7 and Zynq-7000.

No design was placed here, since the vendor's tool is none of ours: what yosys maps was measured,
delays are those of the data sheet with a nanosecond of wires for each LUT, and the shares of a
device that designs may fill are those of an ECP5.
"""

from __future__ import annotations

from nnef_hw.hardware.families.family import AdderTiming, Family
from nnef_hw.hardware.families.lut_weights import lut_weights
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["AMD7"]

LUTS = lut_weights("amd7")


class Amd7(Family):
    """Artix-7, Spartan-7 and Zynq-7000."""

    def product_share(self, digits: int, width: int) -> float:
        # Two digits take a LUT per bit, in chains of four; one more per bit joins them with those
        # below. A sign beside fours of digits takes the half of two digits.
        has_lone_sign = digits == width and digits % 4 == 1
        pairs = digits // 2 + 0.5 if has_lone_sign else -(-digits // 2)
        luts = 4 * pairs * -(-(width + 2) // 4) + (pairs - 1) * (width + 8 / 3)
        return luts / LUTS.multiplier["luts"]


AMD7 = Amd7(
    name="amd7",
    title="AMD 7 series",
    # half of a RAMB36E1
    ram=BlockRam("RAMB18E1", ((512, 36), (1024, 18), (2048, 9))),
    products_per_dsp=1,
    paired_weight_bits=4,
    sums_per_dsp=1,
    packed_weight_bits=4,
    adds_in_dsp=True,
    flip_flops_per_lut=2.0,
    has_lut_ram=True,
    lut_multiplier=int(LUTS.multiplier["luts"]),
    mixes_products=True,
    lut_weights=LUTS.parts,
    weight_delay=0,
    long_wires=False,
    has_wide_products=True,
    # DS181, speed grade -1: clock to output and setup, a LUT and the ends of its chain, four bits
    adders=AdderTiming(start_ns=2.0, adder_ns=2.0, carry_ns=0.03),
    digit_bits=2,
    logic_words=64,
    lut_share=0.55,
    stream_share=0.7,
    loop_lut=(720, 0),
    ip_clock_mhz=100.0,
    define="NNEF_HW_AMD7",
    pll="nnef_hw.boards.hardware.pll:Amd7Mmcm",
    toolchain="nnef_hw.place.vivado.amd7:TOOLCHAIN",
)  # fmt: skip
