"""Yosys and nextpnr for Gowin's Arora V: GW5A and GW5AST."""

from __future__ import annotations

from nnef_hw.hardware.families import ARORA, GOWIN
from nnef_hw.place.nextpnr.gowin import BLOCK_RAMS, GowinDialect
from nnef_hw.place.nextpnr.gowin import TOOLCHAIN as GOWIN_TOOLCHAIN
from nnef_hw.place.nextpnr.nextpnr import Nextpnr
from nnef_hw.place.toolchain import CellModels

__all__ = ["TOOLCHAIN"]

GPIO = ("cpu", "done", "mspi", "ready", "sspi")
"""Pins for configuration that are those of the design once it is configured.

The oscillators and LEDs of boards are at some of them.
"""

CONSTANTS = """
ram block $__GOWIN_DP_ {
    abits 14; widths WIDTHS per_port; byte 9; cost 129; init no_undef;
    port srsw "A" "B" {
        clock posedge; clken; wrbe_separate; rdinit zero;
        option "RESET_MODE" "SYNC" { rdsrst zero ungated; }
        portoption "WRITE_MODE" 0 { rdwr no_change; }
    }
}
"""
"""Block RAMs that are read at two addresses, for constants: what is written has a cheaper one.

Nextpnr times but one of the two ports. The other has the same address, but for a constant bit, and
its data, as the first one's, go to multipliers, of which nextpnr has no times either.
"""


class AroraDialect(GowinDialect):
    """GW5A and GW5AST; a part is named as apycula names its database: ``GW5A-25A``."""

    block_rams = BLOCK_RAMS + CONSTANTS
    block_ram_widths = "1 2 4 9 18"
    block_ram_cells = "+/gowin/brams_map_gw5a.v"

    def device_options(self, part: str, package: str, speed: str) -> list[str]:
        # the packer refuses a GW5A-25A of which nextpnr has not been told
        return [*super().device_options(part, package, speed), "--vopt", "sspi_as_gpio"]

    def pack_arguments(self, part: str, config: str, bitstream: str) -> list[str]:
        return [*(f"--{pins}_as_gpio" for pins in GPIO), "-d", part, "-o", bitstream, config]


TOOLCHAIN = Nextpnr.of(
    AroraDialect(
        family=ARORA,
        # the same programs
        router=GOWIN_TOOLCHAIN.dialect.router,
        packer=GOWIN_TOOLCHAIN.dialect.packer,
        libraries=(),
        constraints_suffix="cst",
        bitstream_suffix="fs",
        cells={"lut": "LUT4", "ff": "DFF", "dsp": "MULT12X12", "bram": "BSRAM"},
        flip_flops=r"DFF\w*",
        models=CellModels(
            files=("gowin/cells_sim.v",), ours=("gowin_memory.v", "arora.v"), defines=(),
            omitted=(r"SP(X9)?", r"PLLA"),
        ),
        ip_family=GOWIN.name,
        ip_option="-nodsp",
    )
)  # fmt: skip
