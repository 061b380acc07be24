"""Figures that ``make bench`` measured, as data: ``docs/measured/builds.json``, a row a build."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import msgspec
from netlist_digest import netlist_digest

from nnef_hw.boards import find_board
from nnef_hw.host.manifest import IMAGE, MODULE, read_manifest
from nnef_hw.report.model.report import Report
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.system.files import digest, write_atomic

__all__ = [
    "ROOT",
    "Figures",
    "Key",
    "Measured",
    "design_digest",
    "machine",
    "measured",
    "read",
    "record",
]

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "measured" / "builds.json"
Key = tuple[str, str, str]
"""A network, a board, and what the build was told besides."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What was measured of a build.

    Parameters
    ----------
    cycles, latency
        Cycles between results, and of the first one.
    multipliers, utilization
        Multipliers, and multiply-accumulates per multiplier and cycle.
    clock_mhz, fmax_mhz
        Clock of the bitstream, and the highest that place and route found; None if not placed.
    rate
        Inferences per second.
    luts, dsp, bram
        Cells of the placed design; as estimated if it was not placed.
    frames, samples
        Samples that ran through the Verilog, and those that there are.
    score, fixed_score
        Of the real network and of the fixed-point model, on samples that did not calibrate.
    metric
        ``"accuracy"`` or ``"mae"``; None without labels.
    seconds
        Seconds of the build's steps.
    """

    cycles: int
    latency: int
    multipliers: int
    utilization: float
    clock_mhz: float
    fmax_mhz: float | None
    rate: float
    luts: int
    dsp: int
    bram: int
    frames: int
    samples: int
    score: float | None = None
    fixed_score: float | None = None
    metric: str | None = None
    seconds: dict[str, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A row: what was built, with which tools, and its figures.

    Parameters
    ----------
    network, board, options
        The network's name, and what ``nnef-hw build`` was told besides ``--calibrate``.
    label
        ``"placed"``, or ``"simulated"`` if place and route found no place or was not run.
    commit, machine, tools, seed
        Where the figures come from; the seed is that of the placement.
    design
        Digest of the netlist that the Verilog describes; None of a row older than this record.
    old
        Whether the netlist of the same command has become another one since.
    """

    network: str
    board: str
    options: str
    label: Literal["placed", "simulated"]
    commit: str
    machine: str
    tools: tuple[str, ...]
    seed: int | None
    design: str | None
    figures: Figures
    old: bool = False

    @property
    def key(self) -> Key:
        """What tells the row from others."""
        return self.network, self.board, self.options


def read() -> dict[Key, Measured]:
    """Return all rows by their keys."""
    rows = msgspec.convert(json.loads(FILE.read_text()), list[Measured]) if FILE.exists() else []
    return {row.key: row for row in rows}


def record(row: Measured) -> None:
    """Write a row in the place of the one with its key, or behind all others."""
    rows = {**read(), row.key: row}
    text = json.dumps([asdict(row) for row in rows.values()], indent=1)
    FILE.parent.mkdir(exist_ok=True)
    write_atomic(FILE, f"{text}\n")


def design_digest(folder: Path) -> str:
    """Return the digest of a build's accelerator, and of what its memory chip holds."""
    manifest = read_manifest(folder)
    netlist = netlist_digest(
        (folder / "rtl" / "top.v").read_text(), top=MODULE,
        define=find_board(manifest.board).device.family.define,
    )  # fmt: skip
    image = folder / IMAGE
    return digest(netlist, image.read_bytes() if image.exists() else b"")


def _figures(report: Report) -> Figures:
    run, scores = report.simulation, report.accuracy
    assert run is not None, "a bench simulates"
    placed = report.fmax_mhz is not None
    cells = {name: use.used if placed else use.estimated for name, use in report.resources.items()}
    known = {} if scores is None else {
        "score": scores.float, "fixed_score": scores.fixed, "metric": scores.metric,
    }  # fmt: skip
    return Figures(
        cycles=report.cycles_per_inference, latency=report.latency_cycles,
        multipliers=report.multipliers, utilization=round(report.mac_utilization, 4),
        clock_mhz=report.clock_mhz, fmax_mhz=report.fmax_mhz, rate=report.inferences_per_second,
        luts=cells["lut"], dsp=cells["dsp"], bram=cells["bram"],
        frames=run.frames, samples=run.frames_given, seconds=dict(report.seconds), **known,
    )  # fmt: skip


def measured(key: Key, folder: BuildFolder) -> Measured:
    """Return the row of a build that was made just now."""
    report = folder.report
    commit = subprocess.run(
        ["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, capture_output=True, text=True,
        check=True,
    ).stdout.strip()  # fmt: skip
    network, board, options = key
    return Measured(
        network=network, board=board, options=options, commit=commit, machine=machine(),
        label="simulated" if report.fmax_mhz is None else "placed",
        tools=report.tools or (), seed=report.seed, design=design_digest(folder.path),
        figures=_figures(report),
    )  # fmt: skip


def machine() -> str:
    """Return what the figures are measured on."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return f"{os.cpu_count()} cores of {cpu}, Python {platform.python_version()}"
