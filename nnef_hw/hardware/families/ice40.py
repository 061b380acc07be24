"""Lattice's iCE40."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nnef_hw.hardware.families.family import Family
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["ICE40"]

# What holds for plain and fast arrays.
ARRAY = {
    "sum bits": 2.07, "kept bits": 1.06, "tree bits": 0.89, "hop bits": 1.32,
    "address bits": 2.11, "memory rows": 1.06, "short table": 2.1, "long table": 2.1, "fixed": 29.2,
}  # fmt: skip
# Of logic cells, whether a LUT is used of one, its flip-flop or only its carry.
LUT_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType({
    "line buffer": {
        "pointer bits": 4.98, "base bits": 4.78, "counter bits": 1.12, "counters": 7.84,
        "padding bits": 0.29, "padded width": 0.72, "memory rows": 0.72, "fixed": 6.0,
    },
    "parallel line buffer": {
        "window bits": 1.14, "pixel bits": 0.5, "padded width": 0.25, "counter bits": 4.2,
        "fixed": 0.0,
    },
    "array": ARRAY,
    "fast array": {**ARRAY, "factor bits": 1.1},
    "tap array": {
        "sum bits": 2.41, "kept bits": 2.49, "tree bits": 1.17, "hop bits": 0.0,
        "address bits": 0.0, "memory rows": 0.0, "short table": 0.0, "long table": 2.1,
        "columns": 1.34, "fixed": 43.3,
    },
    "requantizer": {
        "digit bits": 1.21, "stage bits": 1.07, "serial bits": 1.22, "short table": 1.36,
        "long table": 1.96, "round bits": 3.0, "fixed": 75.1,
    },
    "matrix product": {
        "queue bits": 1.43, "stages": 0.0, "adder bits": 1.79, "adders": 1.06,
        "passing bits": 0.0, "code bits": 4.49, "surplus bits": 0.0, "fixed": 0.0,
    },
    "sum queue": {"payload bits": 2.0, "fixed": 9.0},
    "pack": {
        "register bits": 1.0, "lanes": 1.0, "filled bits": 0.0, "counter bits": 6.0,
        "fixed": 9.0,
    },
    "pool": {"code bits": 3.74, "fixed": 11.5},
    "argmax": {"code bits": 2.45, "index bits": 5.75, "fixed": 8.1},
    "softmax": {"index bits": 4.65, "fixed": 204.0},
    "normalize": {"sum bits": 7.16, "digit bits": 1.57, "table LUTs": 2.84, "fixed": 286.46},
    "pipelined softmax": {"index bits": 5.52, "division bits": 4.8, "fixed": 258.6},
    "tflite softmax": {"index bits": 4.0, "fixed": 723.7},
    "table": {"fixed": 6.0},
    "corrected table": {
        "product bits": 2.18, "code bits": 4.69, "memory rows": 0.28, "fixed": 19.0,
    },
    "interpolated table": {"product bits": 1.27, "code bits": 5.8, "fixed": 0.0},
    "banked line buffer": {
        "window bits": 1.02, "written bits": 0.0, "offset bits": 3.27, "counter bits": 0.67,
        "fixed": 0.0,
    },
    "running pool": {"code bits": 3.0, "fixed": 50.0},
    "sum": {"tables": 43.3, "fixed": 0.0},
    "quotient": {"digit bits": 109.3, "fixed": 581.06},
    "table sum": {"sum bits": 3.2, "fixed": 9.0},
    "extremum": {"code bits": 2.0, "fixed": 7.5},
    "product": {"code bits": 1.2, "fixed": 30.7},
    "concat": {"code bits": 1.08, "streams": 0.0, "counter bits": 0.85, "fixed": 29.5},
    "constant": {"counter bits": 0.28, "table": 2.49, "fixed": 11.4},
    "state": {"counter bits": 1.54, "code bits": 0.99, "table": 2.41, "fixed": 7.7},
    "slice": {"counter bits": 2.34, "fixed": 0.0},
    "pad": {"counter bits": 1.95, "compared bits": 0.7, "fixed": 15.7},
    "interpolate": {
        "counter bits": 2.13, "code bits": 40.9, "memory rows": 0.91, "fixed": 398.7,
    },
    "upsample": {"counter bits": 2.43, "memory rows": 0.91, "fixed": 0.0},
    "depth to space": {"counter bits": 1.77, "memory rows": 0.91, "fixed": 21.6},
    "transpose": {"counter bits": 2.16, "memory rows": 0.97, "fixed": 16.5},
    "skid": {"payload bits": 2.0, "fixed": 9.0},
    "fifo": {"register bits": 1.07, "pointer bits": 4.03, "fixed": 3.3},
    "block fifo": {"pointer bits": 8.8, "code bits": 1.7, "fixed": 0.0},
    "flash reader": {"queue bits": 2.0, "word bits": 2.57, "fixed": 76.3},
    "sdram reader": {"word bits": 4.47, "data bits": 2.79, "fixed": 227.7},
})  # fmt: skip


ODD_DIGIT = 1.15
"""LUTs of a multiplier with an odd number of digits, for each that its bits would have it take."""


class Ice40(Family):
    """iCE40 UltraPlus, HX and LP."""

    def product_share(self, digits: int, width: int) -> float:
        counted = min(ODD_DIGIT * digits, digits + 1) if digits % 2 else digits
        return counted * width / 64


ICE40 = Ice40(
    name="ice40",
    title="iCE40",
    ram=BlockRam("SB_RAM40_4K", ((256, 16), (512, 8), (1024, 4), (2048, 2))),
    products_per_dsp=2,
    sums_per_dsp=0,
    flip_flops_per_lut=1.0,
    has_lut_ram=False,
    lut_multiplier=112,
    mixes_products=False,
    lut_weights=LUT_WEIGHTS,
    weight_delay=0,
    long_wires=False,
    digit_bits=2,
    logic_words=128,
    lut_share=0.91,
    ip_clock_mhz=24.0,
    define="NNEF_HW_ICE40",
    pll="nnef_hw.boards.hardware.pll:Ice40Pll",
    toolchain="nnef_hw.place.nextpnr.ice40:TOOLCHAIN",
)  # fmt: skip
