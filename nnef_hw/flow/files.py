"""The files of a build, and what they are for."""

from __future__ import annotations

from pathlib import Path

from nnef_hw.hardware.families import FAMILIES

__all__ = ["built_files"]

PURPOSES = {
    "rtl/top.v": "the accelerator in Verilog",
    "ip/README.md": "how to use it in a design",
    "ip/*_axis.v": "AXI4-Stream around it",
    "ip/*_tb.v": "bench of that",
    "*.core": "FuseSoC core",
    "ip/model.h": "sizes and scales for a host in C",
    "board/model.h": "hash, sizes and scales for a host in C",
    "board/board_top.v": "the board's top in Verilog",
    **{f"board/board_top.{family.constraints_suffix}": "pins and clocks" for family in FAMILIES},
    **{f"board/board_top.{family.bitstream_suffix}": "bitstream" for family in FAMILIES},
    "board/weights.bin": "weights for the board's memory",
    "model.nnef.tgz": "the integers that it computes",
    "float.nnef.tgz": "the real network that they came from",
    "manifest.json": "what a host needs",
    "plan.json": "folding and cycles",
    "report.json": "this report as JSON",
    "sim/run.py": "bench with golden vectors",
    "board/board_top_netlist.v": "netlist of cells",
    "board/timing.json": "nextpnr's timing and utilization",
    "board/floorplan.json": "places of the cells",
    "board/*.log": "log",
}
"""Patterns, in the order in which a page lists the files."""


def built_files(folder: Path) -> list[dict[str, str]]:
    """Return ``path`` below a build's folder, and ``purpose``, of the files that are there.

    The report itself, which is written with this list, counts as there.
    """
    rows = []
    for pattern, purpose in PURPOSES.items():
        found = {path.relative_to(folder).as_posix() for path in folder.glob(pattern)}
        if pattern == "report.json":
            found = {pattern}
        rows += [{"path": path, "purpose": purpose} for path in sorted(found)]
    return rows
