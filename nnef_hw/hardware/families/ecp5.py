"""Lattice's ECP5."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nnef_hw.hardware.families.family import Family
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["ECP5"]

# Of multipliers in logic.
FIRST_PAIR, LONE_SIGN, MORE_BITS = 0.5, 0.76, 3
# Of LUT4s in slices, so that flip-flops are free.
LUT_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType({
    "line buffer": {
        "pointer bits": 4.95, "base bits": 3.57, "counter bits": 2.24, "counters": 6.87,
        "padding bits": 0.0, "padded width": 0.53, "memory rows": 0.96, "fixed": 3.93,
    },
    "parallel line buffer": {
        "window bits": 0.0, "pixel bits": 0.0, "padded width": 0.52, "counter bits": 2.37,
        "fixed": 10.92,
    },
    "array": {
        "sum bits": 2.21, "kept bits": 0.15, "tree bits": 0.83, "hop bits": 0.4,
        "address bits": 0.0, "memory rows": 1.13, "short table": 1.21, "long table": 1.78,
        "fixed": 0.0,
    },
    "fast array": {
        "sum bits": 1.32, "kept bits": 0.31, "tree bits": 0.52, "hop bits": 0.0,
        "address bits": 9.01, "memory rows": 1.74, "short table": 1.21, "long table": 1.78,
        "fixed": 0.0, "factor bits": 1.92,
    },
    "tap array": {
        "sum bits": 2.11, "kept bits": 1.03, "tree bits": 0.63, "hop bits": 0.0,
        "address bits": 0.0, "memory rows": 0.0, "short table": 0.98, "long table": 1.78,
        "columns": 0.29, "fixed": 6.91,
    },
    "requantizer": {
        "digit bits": 0.0, "stage bits": 2.02, "serial bits": 0.53, "short table": 1.21,
        "long table": 2.03, "round bits": 2.39, "fixed": 67.1,
    },
    "matrix product": {
        "queue bits": 2.18, "stages": 0.0, "adder bits": 0.91, "adders": 2.58, "passing bits": 0.0,
        "code bits": 0.0, "surplus bits": 0.0, "fixed": 0.0,
    },
    "sum queue": {"payload bits": 1.0, "fixed": 5.0},
    "pack": {
        "register bits": 0.0, "lanes": 1.0, "filled bits": 1.16, "counter bits": 0.1, "fixed": 4.0,
    },
    "pool": {"code bits": 2.23, "fixed": 4.45},
    "argmax": {"code bits": 2.57, "index bits": 3.24, "fixed": 0.0},
    "softmax": {"index bits": 2.87, "fixed": 178.17},
    "normalize": {"sum bits": 4.56, "digit bits": 1.02, "table LUTs": 2.51, "fixed": 338.0},
    "pipelined softmax": {"index bits": 10.4, "division bits": 3.75, "fixed": 148.62},
    "tflite softmax": {"index bits": 9.05, "fixed": 638.02},
    "table": {"fixed": 3.0},
    "corrected table": {
        "product bits": 1.01, "code bits": 0.0, "memory rows": 1.56, "fixed": 45.12,
    },
    "interpolated table": {"product bits": 0.91, "code bits": 1.56, "fixed": 1.42},
    "banked line buffer": {
        "window bits": 0.77, "written bits": 0.0, "offset bits": 0.0, "counter bits": 3.91,
        "fixed": 0.0,
    },
    "running pool": {"code bits": 0.0, "fixed": 54.83},
    "sum": {"tables": 35.11, "fixed": 0.0},
    "quotient": {"digit bits": 104.68, "fixed": 546.09},
    "table sum": {"sum bits": 1.3, "fixed": 0.04},
    "extremum": {"code bits": 2.39, "fixed": 2.7},
    "product": {"code bits": 1.22, "fixed": 22.43},
    "concat": {"code bits": 1.33, "streams": 0.0, "counter bits": 1.99, "fixed": 18.56},
    "constant": {"counter bits": 0.72, "table": 2.49, "fixed": 0.0},
    "state": {"counter bits": 1.71, "code bits": 1.01, "table": 2.28, "fixed": 5.64},
    "slice": {"counter bits": 2.34, "fixed": 0.0},
    "pad": {"counter bits": 1.38, "compared bits": 1.56, "fixed": 13.32},
    "interpolate": {"counter bits": 2.72, "code bits": 29.72, "memory rows": 0.4, "fixed": 264.43},
    "upsample": {"counter bits": 2.18, "memory rows": 0.4, "fixed": 2.68},
    "depth to space": {"counter bits": 2.01, "memory rows": 0.4, "fixed": 6.99},
    "transpose": {"counter bits": 2.46, "memory rows": 1.15, "fixed": 0.0},
    "skid": {"payload bits": 1.0, "fixed": 5.0},
    "fifo": {"register bits": 0.82, "pointer bits": 2.45, "fixed": 0.0},
    "block fifo": {"pointer bits": 8.29, "code bits": 0.19, "fixed": 4.11},
    "flash reader": {"queue bits": 2.65, "word bits": 1.11, "fixed": 13.07},
    "sdram reader": {"word bits": 3.34, "data bits": 0.0, "fixed": 226.72},
})  # fmt: skip


class Ecp5(Family):
    """ECP5, of every size."""

    def product_share(self, digits: int, width: int) -> float:
        # An adder of some bits more for every two digits; the first one is smaller. So is that of a
        # product of sums for the sign of a factor that is not one of four digits.
        has_lone_sign = digits == width and digits % 4 == 1
        pairs = digits // 2 + LONE_SIGN if has_lone_sign else -(-digits // 2)
        return (pairs - FIRST_PAIR) / (4 - FIRST_PAIR) * (width + MORE_BITS) / (8 + MORE_BITS)


ECP5 = Ecp5(
    name="ecp5",
    title="ECP5",
    # Its narrower shapes save a multiplexer now and then, but take a line of Verilog per few bits.
    ram=BlockRam("DP16KD", ((512, 36), (1024, 18), (2048, 9)), has_register=True),
    products_per_dsp=1,
    sums_per_dsp=1,
    flip_flops_per_lut=1.0,
    has_lut_ram=True,
    lut_multiplier=79,
    mixes_products=True,
    lut_weights=LUT_WEIGHTS,
    weight_delay=1,
    long_wires=True,
    digit_bits=2,
    logic_words=48,
    lut_share=0.55,
    ip_clock_mhz=60.0,
    define="NNEF_HW_ECP5",
    pll="nnef_hw.boards.hardware.pll:Ecp5Pll",
    toolchain="nnef_hw.place.nextpnr.ecp5:TOOLCHAIN",
)  # fmt: skip
