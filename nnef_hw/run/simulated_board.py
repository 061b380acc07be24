"""The board of a build in simulation, behind a serial port of this computer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from nnef_hw.boards.interfaces import Direction, HostLink, Source, link_of, source_of
from nnef_hw.errors import UsageError
from nnef_hw.host.manifest import HEX_IMAGE, read_manifest

if TYPE_CHECKING:
    from nnef_hw.sim.pty_board import PtyBoard

__all__ = ["simulated_board", "sources_of", "with_pads"]


@contextlib.contextmanager
def simulated_board(build: str | PathLike[str]) -> Iterator[PtyBoard]:
    """Simulate the board of a build behind a pseudo-terminal, a serial port for any program.

    ``port`` is the terminal's name, ``slowness`` how many times as long as on the board everything
    takes.

    Raises
    ------
    UsageError
        If there is no such build, or it has no board.
    ToolError
        If this system has no pseudo-terminals, or Verilator is missing.
    """
    from nnef_hw.sim.pty_board import PtyBoard

    build = Path(build)
    manifest = read_manifest(build)
    link = link_of(manifest.link)
    verilog = build / "board" / "board_top.v"
    if not isinstance(link, HostLink) or not verilog.is_file():
        raise UsageError(f"{str(build)!r} has no board", remedy="build with --board")
    text, top = with_pads(build, verilog.read_text())
    clk_hz, core_hz = round(manifest.clock_mhz * 1e6), None
    if manifest.oscillator_mhz is not None:
        clk_hz, core_hz = round(manifest.oscillator_mhz * 1e6), _core_mhz(build) * 1e6
        if not link.keeps_time:
            # its other end counts cycles of the oscillator, of which the accelerator has no less
            core_hz = max(clk_hz, core_hz)
    with PtyBoard(
        text, clk_hz=clk_hz, core_hz=core_hz, link=link, others=sources_of(build), top=top
    ) as board:
        yield board


def _core_mhz(build: Path) -> float:
    from nnef_hw.run.artifacts import BuildFolder

    return BuildFolder.open(build).clock_mhz


def sources_of(build: Path) -> list[Source]:
    """Return the sources of a build, in the order of its manifest."""
    entries = json.loads((build / "manifest.json").read_text()).get("sources", ())
    return [source_of(entry) for entry in entries]


def with_pads(build: Path, verilog: str) -> tuple[str, str]:
    """Return Verilog of a build's board with all beyond its pads, and the name of the module.

    These are memories, and wires that both ends pull low.
    """
    pins = [use for source in sources_of(build) for use in source.pins.values()]
    has_wires = any(use.direction is Direction.BOTH for use in pins)
    if read_manifest(build).memory is None and not has_wires:
        return verilog, "board_top"
    from nnef_hw.run.artifacts import BuildFolder
    from nnef_hw.run.memories import board_with_memories

    folder = BuildFolder.open(build)
    folder.check_images()
    return board_with_memories(verilog, folder.plan, (build / HEX_IMAGE).resolve())
