"""Lattice's ECP5."""

from __future__ import annotations

from nnef_hw.hardware.families.family import AdderTiming, Family
from nnef_hw.hardware.families.lut_weights import lut_weights
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["ECP5"]

LUTS = lut_weights("ecp5")


class Ecp5(Family):
    """ECP5, of every size."""

    def product_share(self, digits: int, width: int) -> float:
        # An adder of some bits more for every two digits; the first one is smaller. So is that of a
        # product of sums for the sign of a factor that is not one of four digits.
        luts = LUTS.multiplier
        has_lone_sign = digits == width and digits % 4 == 1
        pairs = digits // 2 + luts["lone sign"] if has_lone_sign else -(-digits // 2)
        share = (pairs - luts["first pair"]) / (4 - luts["first pair"])
        return share * (width + luts["more bits"]) / (8 + luts["more bits"])


ECP5 = Ecp5(
    name="ecp5",
    title="ECP5",
    # Its narrower shapes save a multiplexer now and then, but take a line of Verilog per few bits.
    ram=BlockRam("DP16KD", ((512, 36), (1024, 18), (2048, 9)), has_register=True),
    products_per_dsp=1,
    paired_weight_bits=0,
    sums_per_dsp=1,
    packed_weight_bits=4,
    adds_in_dsp=False,
    flip_flops_per_lut=1.0,
    has_lut_ram=True,
    lut_multiplier=int(LUTS.multiplier["luts"]),
    mixes_products=True,
    lut_weights=LUTS.parts,
    weight_delay=1,
    long_wires=True,
    has_wide_products=True,
    adders=AdderTiming(start_ns=6.0, adder_ns=2.6, carry_ns=0.04),
    digit_bits=2,
    logic_words=48,
    lut_share=0.55,
    stream_share=0.7,
    loop_lut=(720, 0),
    ip_clock_mhz=60.0,
    define="NNEF_HW_ECP5",
    pll="nnef_hw.boards.hardware.pll:Ecp5Pll",
    toolchain="nnef_hw.place.nextpnr.ecp5:TOOLCHAIN",
)  # fmt: skip
