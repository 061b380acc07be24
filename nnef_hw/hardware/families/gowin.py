"""Gowin's LittleBee and Arora: GW1N and GW2A."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nnef_hw.hardware.families.family import Family
from nnef_hw.hardware.geometry.blockram import BlockRam

__all__ = ["GOWIN"]

# What holds for plain and fast arrays.
ARRAY = {
    "sum bits": 2.35, "kept bits": 1.07, "tree bits": 1.04, "hop bits": 1.91,
    "address bits": 1.89, "memory rows": 1.47, "short table": 1.35, "long table": 1.35,
    "fixed": 7.8,
}  # fmt: skip
# Of logic cells, whether a LUT is used of one, its flip-flop or only its carry.
LUT_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType({
    "line buffer": {
        "pointer bits": 7.82, "base bits": 3.88, "counter bits": 1.69, "counters": 8.07,
        "padding bits": 0.0, "padded width": 0.68, "memory rows": 0.52, "fixed": 0.0,
    },
    "parallel line buffer": {
        "window bits": 0.97, "pixel bits": 1.25, "padded width": 0.9, "counter bits": 2.59,
        "fixed": 27.6,
    },
    "array": ARRAY,
    "fast array": {**ARRAY, "factor bits": 1.25},
    "tap array": {
        "sum bits": 2.79, "kept bits": 1.15, "tree bits": 1.36, "hop bits": 0.0,
        "address bits": 0.27, "memory rows": 0.0, "short table": 0.0, "long table": 1.35,
        "columns": 1.22, "fixed": 36.1,
    },
    "requantizer": {
        "digit bits": 1.25, "stage bits": 1.3, "serial bits": 1.24, "short table": 0.57,
        "long table": 1.15, "round bits": 3.01, "fixed": 91.8,
    },
    "matrix product": {
        "queue bits": 3.71, "stages": 0.0, "adder bits": 1.06, "adders": 2.78,
        "passing bits": 0.81, "code bits": 0.0, "surplus bits": 0.0, "fixed": 0.0,
    },
    "sum queue": {"payload bits": 2.0, "fixed": 4.0},
    "pack": {
        "register bits": 0.92, "lanes": 2.25, "filled bits": 0.12, "counter bits": 0.01,
        "fixed": 4.4,
    },
    "pool": {"code bits": 3.06, "fixed": 8.6},
    "argmax": {"code bits": 2.76, "index bits": 4.82, "fixed": 7.4},
    "softmax": {"index bits": 5.73, "fixed": 222.4},
    "normalize": {"sum bits": 5.81, "digit bits": 1.87, "table LUTs": 1.8, "fixed": 449.04},
    "pipelined softmax": {"index bits": 4.88, "division bits": 4.77, "fixed": 289.8},
    "tflite softmax": {"index bits": 6.32, "fixed": 739.0},
    "table": {"fixed": 3.0},
    "corrected table": {
        "product bits": 1.32, "code bits": 0.0, "memory rows": 1.75, "fixed": 115.8,
    },
    "interpolated table": {"product bits": 1.2, "code bits": 5.85, "fixed": 0.0},
    "banked line buffer": {
        "window bits": 0.0, "written bits": 3.37, "offset bits": 0.61, "counter bits": 2.15,
        "fixed": 30.52,
    },
    "running pool": {"code bits": 1.04, "fixed": 80.6},
    "sum": {"tables": 42.25, "fixed": 0.0},
    "quotient": {"digit bits": 112.68, "fixed": 572.29},
    "table sum": {"sum bits": 3.6, "fixed": 0.1},
    "extremum": {"code bits": 2.0, "fixed": 7.5},
    "product": {"code bits": 2.15, "fixed": 34.1},
    "concat": {"code bits": 1.02, "streams": 0.0, "counter bits": 2.11, "fixed": 25.6},
    "constant": {"counter bits": 0.02, "table": 1.93, "fixed": 14.3},
    "state": {"counter bits": 1.67, "code bits": 1.04, "table": 1.66, "fixed": 7.0},
    "slice": {"counter bits": 2.53, "fixed": 0.0},
    "pad": {"counter bits": 2.05, "compared bits": 0.95, "fixed": 14.8},
    "interpolate": {
        "counter bits": 4.73, "code bits": 37.91, "memory rows": 0.0, "fixed": 301.4,
    },
    "upsample": {"counter bits": 2.66, "memory rows": 0.0, "fixed": 0.0},
    "depth to space": {"counter bits": 2.34, "memory rows": 0.0, "fixed": 13.4},
    "transpose": {"counter bits": 2.77, "memory rows": 0.56, "fixed": 10.6},
    "skid": {"payload bits": 2.0, "fixed": 4.0},
    "fifo": {"register bits": 1.07, "pointer bits": 2.97, "fixed": 0.0},
    "block fifo": {"pointer bits": 9.13, "code bits": 1.21, "fixed": 0.3},
    "flash reader": {"queue bits": 1.65, "word bits": 1.3, "fixed": 97.4},
    "sdram reader": {"word bits": 5.61, "data bits": 3.3, "fixed": 293.1},
})  # fmt: skip


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
    sums_per_dsp=1,
    flip_flops_per_lut=0.75,
    has_lut_ram=True,
    lut_multiplier=115,
    mixes_products=True,
    lut_weights=LUT_WEIGHTS,
    weight_delay=0,
    long_wires=False,
    digit_bits=2,
    logic_words=16,
    lut_share=0.67,
    ip_clock_mhz=60.0,
    define="NNEF_HW_GOWIN",
    pll="nnef_hw.boards.hardware.pll:GowinPll",
    toolchain="nnef_hw.place.nextpnr.gowin:TOOLCHAIN",
)  # fmt: skip
