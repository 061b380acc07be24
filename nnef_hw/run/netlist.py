"""The cells that yosys maps a design to, in Verilog that Verilator takes."""

from __future__ import annotations

import re
from pathlib import Path

import nnef_hw.sim
from nnef_hw.errors import ToolError, UsageError
from nnef_hw.hardware.devices import Device
from nnef_hw.place.synthesis import map_only
from nnef_hw.place.toolchain import CellModels, toolchain_of
from nnef_hw.system.files import digest, publish_directory
from nnef_hw.system.tools import Tool, cache_directory, find_tool

__all__ = ["mapped_verilog"]

HEAD = "/* verilator lint_off PINMISSING */\n"
# What is included is there already.
INCLUDE = "^`include [^\n]*$"


def mapped_verilog(verilog: str, device: Device, *, top: str = "top") -> str:
    """Map a module to the cells of a device; return the netlist with the cells' models.

    The netlist is kept in the cache, by Verilog and version of yosys.

    Parameters
    ----------
    verilog
        The accelerator or the board, as in a build's ``rtl/top.v`` or ``board/board_top.v``.
    device
        Its family, and within it the device, decide which cells there are.
    top
        Module to map.

    Raises
    ------
    UsageError
        If the family's toolchain has no models of its cells.
    ToolError
        If yosys is missing, or fails, or comes without models of the cells.
    """
    yosys = find_tool("yosys")
    family = device.family
    toolchain = toolchain_of(family)
    if (models := toolchain.models) is None:
        raise UsageError(
            f"{toolchain.title} has no models of the cells of {device.name}",
            remedy="simulate the Verilog instead",
        )
    share = _share(yosys, models)
    key = digest(yosys.identity, family.name, device.name, top, verilog)[:32]

    def produce(folder: Path) -> None:
        source = folder / f"{top}.v"
        source.write_text(verilog)
        map_only(source, top=top, family=family, device=device.name, out_dir=folder)
        (folder / f"{top}.json").unlink()

    mapped = publish_directory(cache_directory() / "netlists" / key, produce)
    netlist = (mapped / f"{top}_netlist.v").read_text()
    defines = "".join(f"`define {name}\n" for name in models.defines)
    omitted = re.compile(
        "|".join((INCLUDE, *(rf"^module {name}\b.*?^endmodule$" for name in models.omitted))),
        re.MULTILINE | re.DOTALL,
    )
    cells = [omitted.sub("", (share / name).read_text()) for name in models.files]
    folder = Path(nnef_hw.sim.__file__).parent / "models"
    ours = [(folder / name).read_text() for name in models.ours]
    return "".join((HEAD, defines, netlist, *cells, *ours))


def _share(yosys: Tool, models: CellModels) -> Path:
    """Folder of the files that belong to yosys: in its wheel, or beside its program."""
    places = (yosys.path / "share", yosys.path.resolve().parents[1] / "share" / "yosys")
    for place in places:
        if all((place / name).is_file() for name in models.files):
            return place
    raise ToolError(
        f"{yosys.identity} at {yosys.path} comes without models of its cells",
        remedy="pip install pyosys",
    )
