"""Lattice's iCE40."""

from __future__ import annotations

from nnef_hw.hardware.families.family import AdderTiming, Family
from nnef_hw.hardware.families.lut_weights import lut_weights
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["ICE40"]

LUTS = lut_weights("ice40")


class Ice40(Family):
    """iCE40 UltraPlus, HX and LP."""

    def product_share(self, digits: int, width: int) -> float:
        # with an odd number of digits it takes more for each than its bits would have it
        counted = min(LUTS.multiplier["odd digit"] * digits, digits + 1) if digits % 2 else digits
        return counted * width / 64


ICE40 = Ice40(
    name="ice40",
    title="iCE40",
    ram=BlockRam(
        "SB_RAM40_4K", ((256, 16), (512, 8), (1024, 4), (2048, 2)), writes_bits=True
    ),
    products_per_dsp=2,
    paired_weight_bits=0,
    sums_per_dsp=0,
    packed_weight_bits=0,
    adds_in_dsp=False,
    flip_flops_per_lut=1.0,
    has_lut_ram=False,
    lut_multiplier=int(LUTS.multiplier["luts"]),
    mixes_products=False,
    lut_weights=LUTS.parts,
    weight_delay=0,
    long_wires=False,
    has_wide_products=True,
    adders=AdderTiming(start_ns=4.0, adder_ns=5.4, carry_ns=0.28),
    digit_bits=2,
    logic_words=128,
    lut_share=0.91,
    stream_share=0.91,
    loop_lut=(560, 25),
    ip_clock_mhz=24.0,
    define="NNEF_HW_ICE40",
    pll="nnef_hw.boards.hardware.pll:Ice40Pll",
    toolchain="nnef_hw.place.nextpnr.ice40:TOOLCHAIN",
)  # fmt: skip
