"""Gowin's Arora V: GW5A and GW5AST.

What the open tools do not have of every device is left out (``docs/boards.md``): LUT RAM, for which
apycula's database has no bits of a GW5A-25A, and words of 36 bits in one block RAM, which nextpnr
divides into two there.
"""

from __future__ import annotations

from nnef_hw.hardware.families.family import AdderTiming, Family
from nnef_hw.hardware.families.lut_weights import lut_weights
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["ARORA"]

LUTS = lut_weights("arora")


class Arora(Family):
    """GW5A and GW5AST."""

    def product_share(self, digits: int, width: int) -> float:
        # an adder for every two digits
        return (digits + digits % 2) * width / 64


ARORA = Arora(
    name="arora",
    title="Gowin Arora V",
    ram=BlockRam("BSRAM", ((1024, 18), (2048, 9)), reads_twice=True),
    products_per_dsp=1,
    paired_weight_bits=0,
    sums_per_dsp=1,
    packed_weight_bits=0,
    adds_in_dsp=False,
    flip_flops_per_lut=1.0,
    has_lut_ram=False,
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
    ip_clock_mhz=50.0,
    define="NNEF_HW_ARORA",
    pll="nnef_hw.boards.hardware.pll:AroraPll",
    toolchain="nnef_hw.place.nextpnr.arora:TOOLCHAIN",
)  # fmt: skip
