"""Map generated Verilog of networks for other FPGAs with yosys, and count its cells.

The Verilog is that of plain IP for any device, without a macro: yosys infers multipliers and
memories. Nothing is placed. Results are kept in docs/measured/mapping.json, one at a time, and the
table of docs/howto/own-design.md is made of them (``--pages`` makes it alone).
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_row import print_row

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import ToolError
from nnef_hw.flow.fixed import fix_model
from nnef_hw.frontend import load
from nnef_hw.hardware.devices import GENERIC, Target
from nnef_hw.hardware.families import AMD7
from nnef_hw.samples.samples import load_samples
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.system.tools import find_tool, run_tool

__all__ = ["MAPPINGS", "PAGE", "RECORD", "CellMapping", "matches", "with_table"]

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "docs" / "measured" / "mapping.json"
PAGE = ROOT / "docs" / "howto" / "own-design.md"
BLOCK = re.compile(r"(<!-- measured: mapping -->\n).*?(<!-- end of measured -->)", re.DOTALL)
RATE = 200
"""Inferences per second that every network is folded for, at the clock below."""
TARGET = Target("none", "plain IP", GENERIC, clock_mhz=60.0, link_lut=0, link_bram=0)
MODELS = {
    "digits_cnn": "digits_cnn.nnef.tgz",
    "digits_mlp": "model.nnef.tgz",
    "mnist_tiny_cnn": "model.nnef.tgz",
    "mnist_lenet5": "model.nnef.tgz",
    "jvowels_conv1d_tanh": "model.nnef.tgz",
    "tflm_hello_world": "model.nnef.tgz",
}


@dataclass(frozen=True, slots=True)
class CellMapping:
    """Commands of yosys for a family, and its cells as regular expressions.

    Parameters
    ----------
    title, command
        The family, and how yosys maps for it.
    lut, dsp, ram
        Cells that count as a LUT, a multiplier and a block RAM.
    """

    title: str
    command: str
    lut: str
    dsp: str
    ram: str


MAPPINGS = {
    AMD7.name: CellMapping(
        AMD7.title, "synth_xilinx -flatten -noiopad -noclkbuf",
        r"LUT\d|INV|SRL\w+|RAM\d+\w+", r"DSP48E1", r"RAMB(18|36)E1",
    ),
    "cyclone5": CellMapping(
        "Intel Cyclone V", "synth_intel_alm -family cyclonev -noiopad -noclkbuf",
        r"MISTRAL_ALUT\w+|MISTRAL_NOT|MISTRAL_MLAB", r"MISTRAL_MUL\w+", r"MISTRAL_M\d+K",
    ),
    "efinix": CellMapping(
        "Efinix Trion", "synth_efinix", r"EFX_(LUT4|ADD)", r"EFX_MULT", r"EFX_RAM_5K",
    ),
    "gatemate": CellMapping(
        "GateMate", "synth_gatemate -noiopad -noclkbuf",
        r"CC_(LUT\d|L2T\d|ADDF|MX\d)", r"CC_MULT", r"CC_BRAM_\d+K",
    ),
    "nexus": CellMapping(
        "Lattice Nexus", "synth_nexus -noiopad",
        r"LUT4|WIDEFN9|CCU2|INV|DPR16X4", r"MULT\w+", r"(PDP|DP|SP)SC?\d+K\w*|LRAM\w*",
    ),
}  # fmt: skip


def folder_of(network: str) -> Path:
    """Return the folder of a network: an example, or one of the folder that NNEF_HW_ZOO names."""
    example = ROOT / "examples" / network
    return example if example.is_dir() else Path(os.environ["NNEF_HW_ZOO"]) / network


def verilog_of(network: str) -> str:
    """Return the accelerator of a network at the common rate."""
    folder = folder_of(network)
    graph = load(folder / MODELS[network])
    fixed, _ = fix_model(graph, load_samples(folder / "samples.npz", graph))
    return to_verilog(Accelerator(schedule(fixed, TARGET, target_fps=RATE), fixed))


def map_for(mapping: CellMapping, verilog: str) -> dict[str, Any]:
    """Return the cells that yosys maps a design to, or its last words if it fails."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "top.v").write_text(verilog)
        script = f"read_verilog -sv top.v\n{mapping.command} -top top\n"
        (folder / "map.ys").write_text(f"{script}tee -q -o cells.json stat -json\n")
        try:
            run_tool("yosys", ["-s", "map.ys"], cwd=folder, log=folder / "log")
        except ToolError:
            lines = (folder / "log").read_text(errors="replace").splitlines()
            return {"error": next((x for x in reversed(lines) if "ERROR" in x), lines[-1])}
        counts = json.loads((folder / "cells.json").read_text())["design"]["num_cells_by_type"]
    return {"cells": {kind: n for kind, n in sorted(counts.items()) if not kind.startswith("$")}}


def counted(mapping: CellMapping, cells: Mapping[str, int]) -> tuple[int, int, int]:
    """Return LUTs, multipliers and block RAMs."""
    patterns = (mapping.lut, mapping.dsp, mapping.ram)
    lut, dsp, ram = (
        sum(n for kind, n in cells.items() if matches(pattern, kind)) for pattern in patterns
    )
    return lut, dsp, ram


def matches(pattern: str, kind: str) -> bool:
    """Return whether a cell is one of a pattern's, in full."""
    return re.fullmatch(pattern, kind) is not None


def with_table(text: str) -> str:
    """Return the page's text with the table of what was measured."""
    record = json.loads(RECORD.read_text())
    lines = [
        f"| LUT / multipliers / block RAM | {' | '.join(x.title for x in MAPPINGS.values())} |",
        f"|---|{'---:|' * len(MAPPINGS)}",
    ]
    for network, row in record["networks"].items():
        found = [_cell(mapping, row.get(name)) for name, mapping in MAPPINGS.items()]
        lines.append(f"| {network} | {' | '.join(found)} |")
    return BLOCK.sub(lambda found: f"{found[1]}{chr(10).join(lines)}\n{found[2]}", text)


def _cell(mapping: CellMapping, found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not mapped yet"
    if "error" in found:
        return f"fails: {found['error']}"
    lut, dsp, ram = counted(mapping, found["cells"])
    return f"{lut:,} / {dsp} / {ram}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("networks", nargs="*", default=list(MODELS), help="default: all")
    parser.add_argument("--pages", action="store_true", help="only write the table")
    options = parser.parse_args()
    if not options.pages:
        record = json.loads(RECORD.read_text()) if RECORD.is_file() else {"networks": {}}
        record |= {"yosys": find_tool("yosys").version, "rate": RATE}
        record["commands"] = {name: asdict(x)["command"] for name, x in MAPPINGS.items()}
        for network in options.networks:
            verilog = verilog_of(network)
            for name, mapping in MAPPINGS.items():
                found = map_for(mapping, verilog)
                record["networks"].setdefault(network, {})[name] = found
                RECORD.write_text(json.dumps(record, indent=1) + "\n")
                print_row(("", "for", ""), (network, mapping.title, _cell(mapping, found)))
    PAGE.write_text(with_table(PAGE.read_text()))


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main()
