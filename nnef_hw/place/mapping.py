"""Verilog to the cells of a family, with yosys.

Everything happens inside one folder with relative names, because the WebAssembly tools see nothing
else, and the results keep no path of this machine, so equal inputs give equal files.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.errors import ToolError
from nnef_hw.place.mapper import Mapper
from nnef_hw.place.toolchain import Design, Mapped
from nnef_hw.system.tools import CrampedError, run_tool

__all__ = ["map_design"]

_log = logging.getLogger(__name__)

YOSYS_ASSERTION = "ERROR: Assert"
OPEN = "x"
"""A pin that is not connected, in JSON: at an output nextpnr takes a bit for a net to be routed."""


def map_design(
    mapper: Mapper, design: Design, sources: Sequence[Path], out_dir: Path, log_dir: Path,
    ports: Sequence[str],
) -> Mapped:  # fmt: skip
    """Map a design to cells: :meth:`.Toolchain.map`.

    ``out_dir`` receives the netlist as ``{top}.json`` and ``{top}_netlist.v``, ``log_dir`` the log.
    ``ports`` are further commands of yosys (:meth:`.Mapper.ports`), without which not every
    nextpnr takes ``{top}.json``.
    """
    top = design.top
    out_dir.mkdir(parents=True, exist_ok=True)
    names = []
    for number, source in enumerate(sources):
        names.append(f"source{number}.v")
        shutil.copyfile(source, out_dir / names[-1])
    files = mapper.files()
    for name, text in files.items():
        (out_dir / name).write_text(text)
    reading = f"read_verilog -sv -D{mapper.family.define} {' '.join(names)}"
    log = log_dir / "yosys.log"
    *ways, last = mapper.mappings(design.part, top)
    for number, way in enumerate(ways):
        try:
            seconds = _run_yosys([reading, *way, *ports], top, out_dir, log)
            break
        except CrampedError:
            raise
        except ToolError:
            if YOSYS_ASSERTION not in log.read_text(errors="replace"):
                raise
            failed = log.replace(log_dir / f"yosys_assertion{number or ''}.log")
            _log.warning("yosys failed with an assertion of its own, see %s in the build; another "
                         "way is tried", failed.name)  # fmt: skip
    else:
        seconds = _run_yosys([reading, *last, *ports], top, out_dir, log)
    seconds += _revise(mapper, top, out_dir, log_dir)
    counts = json.loads((out_dir / "cells.json").read_text())["design"]["num_cells_by_type"]
    for name in (*names, *files, "cells.json"):
        (out_dir / name).unlink()
    flip_flops = sum(n for cell, n in counts.items() if re.fullmatch(mapper.flip_flops, cell))
    return Mapped(dict(sorted(counts.items())), flip_flops, {"yosys": seconds})


def _run_yosys(commands: Sequence[str], top: str, out_dir: Path, log: Path) -> float:
    """Map the source to cells with these commands; return the seconds it took."""
    script = [
        *commands,
        # sources of cells are files of the yosys installation
        "setattr -unset src =*/w:* =*/c:* =*/m:*",
        "setattr -mod -unset src =*",
        f"write_json {top}.json",
        *_described(top),
    ]
    (out_dir / "synthesis.ys").write_text("\n".join(script) + "\n")
    return run_tool("yosys", ["-s", "synthesis.ys"], cwd=out_dir, log=log)


def _revise(mapper: Mapper, top: str, out_dir: Path, log_dir: Path) -> float:
    """Let the mapper better what yosys has mapped; return the seconds it took."""
    begin = time.perf_counter()
    netlist = out_dir / f"{top}.json"
    mapped = json.loads(netlist.read_text())
    if mapper.revise(mapped):
        netlist.write_text(json.dumps(_without_open_outputs(mapped), separators=(",", ":")))
        script, log = out_dir / "revised.ys", log_dir / "yosys_revised.log"
        script.write_text("\n".join([f"read_json {top}.json", *_described(top)]) + "\n")
        run_tool("yosys", ["-s", script.name], cwd=out_dir, log=log)
        script.unlink()
        log.unlink()
        netlist.write_text(json.dumps(mapped, separators=(",", ":")))
    return time.perf_counter() - begin


def _without_open_outputs(netlist: JsonObject) -> JsonObject:
    """Return a mapped design with a bit at every output: Verilog would get a constant there."""
    return netlist | {
        "modules": {
            name: module | {"cells": _with_outputs(module["cells"])}
            for name, module in netlist["modules"].items()
        }
    }


def _with_outputs(cells: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
    listed = (bits for cell in cells.values() for bits in cell["connections"].values())
    numbers = (bit for bits in listed for bit in bits if isinstance(bit, int))
    fresh = count(max(numbers, default=1) + 1)

    def connected(cell: JsonObject) -> JsonObject:
        directions = cell["port_directions"]
        return cell | {
            "connections": {
                pin: [next(fresh)] if bits == [OPEN] and directions[pin] == "output" else bits
                for pin, bits in cell["connections"].items()
            }
        }

    return {name: connected(cell) for name, cell in cells.items()}


def _described(top: str) -> list[str]:
    """Return the commands of yosys that write what becomes of a netlist besides its placement."""
    return [f"write_verilog -noattr {top}_netlist.v", "tee -q -o cells.json stat -json"]
