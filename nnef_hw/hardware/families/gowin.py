"""Gowin's LittleBee and Arora: GW1N and GW2A."""

from __future__ import annotations

from nnef_hw.hardware.families.family import AdderTiming, Family
from nnef_hw.hardware.families.lut_weights import lut_weights
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["GOWIN"]

LUTS = lut_weights("gowin")


class Gowin(Family):
    """GW1N and GW2A."""

    def product_share(self, digits: int, width: int) -> float:
        # an adder for every two digits
        return (digits + digits % 2) * width / 64


GOWIN = Gowin(
    name="gowin",
    title="Gowin",
    ram=BlockRam("BSRAM", ((512, 36), (1024, 18), (2048, 9))),
    products_per_dsp=1,
    paired_weight_bits=0,
    sums_per_dsp=1,
    packed_weight_bits=0,
    adds_in_dsp=False,
    flip_flops_per_lut=0.75,
    has_lut_ram=True,
    lut_multiplier=int(LUTS.multiplier["luts"]),
    mixes_products=True,
    lut_weights=LUTS.parts,
    weight_delay=0,
    long_wires=False,
    has_wide_products=False,
    adders=AdderTiming(start_ns=5.0, adder_ns=2.0, carry_ns=0.05),
    digit_bits=2,
    logic_words=16,
    lut_share=0.67,
    stream_share=0.75,
    loop_lut=(720, 0),
    ip_clock_mhz=60.0,
    define="NNEF_HW_GOWIN",
    pll="nnef_hw.boards.hardware.pll:GowinPll",
    toolchain="nnef_hw.place.nextpnr.gowin:TOOLCHAIN",
)  # fmt: skip
