"""The cells that yosys maps a design to, in Verilog that Verilator takes."""

from __future__ import annotations

import re
from pathlib import Path

import nnef_hw.sim
from nnef_hw.build.synthesis import map_only
from nnef_hw.errors import ToolError
from nnef_hw.files import digest, publish_directory
from nnef_hw.tools import Tool, cache_directory, find_tool

__all__ = ["mapped_verilog"]

# Files of yosys with the models of a family's cells; what they lack is in sim/models.
MODELS = {
    "ice40": ("ice40/cells_sim.v",),
    "ecp5": ("ecp5/common_sim.vh", "ecp5/ccu2c_sim.vh"),
}
HEAD = "/* verilator lint_off PINMISSING */\n`define NO_ICE40_DEFAULT_ASSIGNMENTS\n"
# Includes are there already; a PLL is modelled where a board is simulated.
OMITTED = re.compile(r"^`include [^\n]*$|^module SB_PLL.*?^endmodule$", re.MULTILINE | re.DOTALL)


def mapped_verilog(verilog: str, family: str, *, top: str = "top", device: str = "up5k") -> str:
    """Map a module to the cells of a device; return the netlist with the cells' models.

    The netlist is kept in the cache, by Verilog and version of yosys.

    Parameters
    ----------
    verilog
        The accelerator or the board, as in a build's ``rtl/top.v`` or ``board/board_top.v``.
    top
        Module to map.
    family
        "ice40" or "ecp5".
    device
        As nextpnr names it; of an iCE40 it decides which cells there are.

    Raises
    ------
    ToolError
        If yosys is missing, or fails, or comes without models of the cells.
    """
    yosys = find_tool("yosys")
    share = _share(yosys)
    key = digest(yosys.identity, family, device, top, verilog)[:32]

    def produce(folder: Path) -> None:
        source = folder / f"{top}.v"
        source.write_text(verilog)
        map_only(source, top=top, family=family, out_dir=folder, device=device)
        (folder / f"{top}.json").unlink()

    mapped = publish_directory(cache_directory() / "netlists" / key, produce)
    netlist = (mapped / f"{top}_netlist.v").read_text()
    models = "".join(OMITTED.sub("", (share / name).read_text()) for name in MODELS[family])
    ours = Path(nnef_hw.sim.__file__).parent / "models" / f"{family}.v"
    return HEAD + netlist + models + (ours.read_text() if ours.is_file() else "")


def _share(yosys: Tool) -> Path:
    """Folder of the files that belong to yosys: in its wheel, or beside its program."""
    places = (yosys.path / "share", yosys.path.resolve().parents[1] / "share" / "yosys")
    for place in places:
        if (place / MODELS["ice40"][0]).is_file():
            return place
    raise ToolError(
        f"{yosys.identity} at {yosys.path} comes without models of its cells",
        remedy="pip install pyosys",
    )
