"""The files of a build, and what they are for."""

from __future__ import annotations

from pathlib import Path

from nnef_hw.boards.interfaces import BUSES
from nnef_hw.hardware.families import Family
from nnef_hw.place.toolchain import Toolchain, toolchain_of
from nnef_hw.report.model.report import BuiltFile

__all__ = ["built_files"]

CONSTRAINTS, BITSTREAM, OUTPUTS = "constraints", "bitstream", "outputs"
"""Places in the list of what a toolchain names."""
PURPOSES = {
    "rtl/top.v": "the accelerator in Verilog",
    "ip/README.md": "how to use it in a design",
    "ip/*_axis.v": "AXI4-Stream around it",
    "ip/*_tb.v": "bench of that",
    **{f"ip/*_{bus.suffix}.v": f"registers on {bus.title} around it" for bus in BUSES},
    "ip/registers.h": "registers for C",
    "ip/*.svd": "registers as CMSIS-SVD",
    "ip/*.rdl": "registers as SystemRDL",
    "*.core": "FuseSoC core",
    "component.xml": "IP-XACT component, for Vivado's catalog",
    "ip/model.h": "sizes and scales for a host in C",
    "board/model.h": "hash, sizes and scales for a host in C",
    "board/board_top.v": "the board's top in Verilog",
    CONSTRAINTS: "pins and clocks",
    BITSTREAM: "bitstream",
    "board/weights.bin": "weights for the board's memory",
    "model.nnef.tgz": "the integers that it computes",
    "float.nnef.tgz": "the real network that they came from",
    "manifest.json": "what a host needs",
    "plan.json": "folding and cycles",
    "report.json": "this report as JSON",
    "sim/run.py": "bench with golden vectors",
    OUTPUTS: "",
}
"""Patterns, in the order in which a page lists the files."""


def built_files(folder: Path, family: Family) -> tuple[BuiltFile, ...]:
    """Return the files that are in a build's folder.

    The report itself, which is written with this list, counts as there.
    """
    rows: list[BuiltFile] = []
    for pattern, purpose in _purposes(toolchain_of(family)).items():
        found = {path.relative_to(folder).as_posix() for path in folder.glob(pattern)}
        if pattern == "report.json":
            found = {pattern}
        rows += [BuiltFile(path, purpose) for path in sorted(found)]
    return tuple(rows)


def _purposes(toolchain: Toolchain) -> dict[str, str]:
    """Return the purposes by patterns, with those of a toolchain in their places."""
    suffixes = {CONSTRAINTS: toolchain.constraints_suffix, BITSTREAM: toolchain.bitstream_suffix}
    purposes: dict[str, str] = {}
    for pattern, purpose in PURPOSES.items():
        if pattern == OUTPUTS:
            purposes |= {f"board/{name}": what for name, what in toolchain.outputs.items()}
        elif pattern not in suffixes:
            purposes[pattern] = purpose
        elif suffixes[pattern] is not None:
            purposes[f"board/board_top.{suffixes[pattern]}"] = purpose
    return purposes
