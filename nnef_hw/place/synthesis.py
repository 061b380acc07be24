"""Verilog to a bitstream: yosys, nextpnr and the packer of a family.

Everything happens inside one folder with relative names, because the WebAssembly tools see nothing
else, and the results keep no path of this machine, so equal inputs give equal files.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from nnef_hw.errors import UnroutedError
from nnef_hw.hardware.families import Family
from nnef_hw.place.critical import longest_path
from nnef_hw.place.floorplan import describe_places
from nnef_hw.place.mapping import map_design
from nnef_hw.place.placement import (
    IsNeedless,
    Placer,
    SupersededError,
    clocks_of,
    slowest_clock,
)
from nnef_hw.system.process_group import run_parallel
from nnef_hw.system.tools import find_tool, run_tool

__all__ = ["Resource", "SynthesisResult", "synthesize", "tool_identities"]

MOST_SEEDS = 3
"""Placements that are tried if none of those asked for has a route."""
_log = logging.getLogger(__name__)
_Report = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Resource:
    """Resources of one kind that a design uses, and that the device has."""

    used: int
    available: int


@dataclass(frozen=True, slots=True)
class SynthesisResult:
    """The result of synthesis, place and route.

    Attributes
    ----------
    fmax_mhz
        Highest frequency of the clock that is closest to missing its constraint; None if the
        design has no clock.
    frequency_mhz
        That clock's constraint.
    timing_met
        Every clock reaches its constraint.
    clocks
        Frequency and constraint in MHz of every clock, by nextpnr's names.
    resources
        ``lut``, ``ff``, ``dsp``, ``bram`` and, on iCE40, ``spram``. One logic cell of an iCE40
        holds a LUT, a flip-flop and a carry: ``lut`` counts the cells.
    cells
        Mapped cells by type.
    files
        Names below the folder: ``netlist``, ``report``, ``floorplan`` (what
        :func:`~nnef_hw.place.floorplan.describe_places` returns), logs, and ``bitstream`` if there
        is one.
    seconds
        Time by step.
    seeds
        Highest frequency of the same clock by the seed of the placement, up to the first that is in
        time; None where there is no route.
    seed
        The one that was packed: that first one, or the fastest.
    path
        Cells and delays in ns along the path that limits that clock.
    """

    fmax_mhz: float | None
    frequency_mhz: float
    timing_met: bool
    clocks: dict[str, tuple[float, float]]
    resources: dict[str, Resource]
    cells: dict[str, int]
    files: dict[str, str]
    seconds: dict[str, float]
    seeds: dict[str, float | None] = field(default_factory=dict)
    seed: int | None = None
    path: list[list[Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return what :meth:`from_json` takes back."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SynthesisResult:
        """Restore a result from a record."""
        fields = dict(value)
        fields["resources"] = {name: Resource(**r) for name, r in value["resources"].items()}
        fields["clocks"] = {name: (f, limit) for name, (f, limit) in value["clocks"].items()}
        return cls(**fields)


def synthesize(
    verilog: Path | Sequence[Path],
    *,
    top: str,
    family: Family,
    device: str,
    package: str,
    speed: str = "",
    out_dir: Path,
    frequency_mhz: float,
    constraints: str | None = None,
    seeds: Sequence[int] = (1,),
    bitstream: bool = True,
    log_dir: Path | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> SynthesisResult:
    """Map, place, route and pack a design.

    Parameters
    ----------
    verilog
        Source files. The macro of the family is defined.
    top
        Top module.
    family
        Whose tools and cells are used.
    device, package
        Device and package in nextpnr's names: "up5k" and "sg48", "85k" and "CABGA381".
    speed
        Speed grade, where the family has any: "6" to "8" of an ECP5.
    out_dir
        Folder that receives all files.
    frequency_mhz
        Constraint for clocks that the constraints file says nothing about.
    constraints
        Text in the language of the family's nextpnr; None places the pins anywhere.
    seeds
        Seeds of the placer, in ascending order. The first placement that is in time is used, for
        which later ones are given up; if there is none, the fastest. If none of them has a route,
        the next ones follow, up to :data:`MOST_SEEDS` in all.
    bitstream
        Whether to pack a bitstream.
    log_dir
        Folder where logs are written, and stay if a tool fails: errors name them. In the end they
        move to ``out_dir``, which is the default.
    progress
        Is told which tool runs.

    Raises
    ------
    TargetError
        The design does not fit, or no placement has a route; or nextpnr does not have the device.
    ToolError
        A tool is missing or failed for another reason.

    Notes
    -----
    A missed clock constraint is a result, not an error: see ``timing_met``.
    """
    logs = log_dir or out_dir
    logs.mkdir(parents=True, exist_ok=True)
    ports = family.ports(with_pins=constraints is not None)
    progress("synthesizing (yosys)")
    cells, seconds = map_design(verilog, family, top, device, out_dir, logs, ports)
    placer = Placer(top, family, device, package, speed, frequency_mhz, constraints)
    begin = time.perf_counter()
    if family.planned():
        progress("placing DSP blocks and block RAMs")
    placer.plan(out_dir, logs / "plan.log")
    progress(f"placing and routing ({family.router.name})")

    def place(seed: int, is_needless: IsNeedless) -> _Report:
        log = logs / f"nextpnr{seed}.log"
        try:
            report = placer.place(out_dir, seed, log, is_needless)
        except UnroutedError as error:
            _log.warning("seed %d: %s (see %s)", seed, error.reason, log)
            raise
        except SupersededError:
            log.unlink()
            raise
        log.replace(out_dir / f"seed{seed}" / "nextpnr.log")
        return report

    placements, unrouted = _placements(place, seeds)
    seconds["nextpnr"] = time.perf_counter() - begin
    (out_dir / f"{top}.json").unlink()
    best = max(placements, key=lambda seed: _slack(placements[seed]))
    for path in (out_dir / f"seed{best}").iterdir():
        path.replace(out_dir / path.name)
    for own in out_dir.glob("seed*"):
        shutil.rmtree(own)
    report = placements[best]
    config = f"{top}.config"
    netlist = out_dir / family.placed(config)
    floorplan = describe_places(netlist, report, family)
    (out_dir / "floorplan.json").write_text(json.dumps(floorplan, separators=(",", ":")) + "\n")
    if netlist.name != config:
        netlist.unlink()
    files = {
        "netlist": f"{top}_netlist.v",
        "report": "timing.json",
        "floorplan": "floorplan.json",
        "yosys_log": "yosys.log",
        "nextpnr_log": "nextpnr.log",
    }
    if bitstream:
        files["bitstream"] = f"{top}.{family.bitstream_suffix}"
        command = family.pack_arguments(device, config, files["bitstream"])
        packer = family.packer.name
        progress(f"packing ({packer})")
        packing_log = logs / f"{packer}.log"
        seconds[packer] = run_tool(packer, command, cwd=out_dir, log=packing_log)
    for path in logs.glob("*.log"):
        path.replace(out_dir / path.name)

    clocks = clocks_of(report)
    fmax, constraint = slowest_clock(clocks, frequency_mhz)
    return SynthesisResult(
        fmax_mhz=fmax,
        frequency_mhz=constraint,
        timing_met=all(achieved >= limit for achieved, limit in clocks.values()),
        clocks=clocks,
        resources=_resources(report["utilization"], cells, family),
        cells=cells,
        files=files,
        seconds=seconds,
        seeds={
            str(seed): slowest_clock(clocks_of(placement), frequency_mhz)[0]
            for seed, placement in placements.items()
        }
        | dict.fromkeys(map(str, unrouted)),
        seed=best,
        path=longest_path(report),
    )


def _placements(
    place: Callable[[int, IsNeedless], _Report], seeds: Sequence[int]
) -> tuple[dict[int, _Report], list[int]]:
    """Return what placements gave by their seeds, and the seeds of those without a route.

    There is none behind the first that is in time, nor one that was known to be late once another
    is in time: what is returned does not depend on which was faster.

    Raises
    ------
    UnroutedError
        If no placement has a route.
    """
    met: list[int] = []
    late: set[int] = set()
    reports: dict[int, _Report] = {}
    errors: dict[int, UnroutedError] = {}

    def attempt(seed: int) -> None:
        def is_needless(in_reach: bool) -> bool:
            if not in_reach:
                late.add(seed)
            return bool(met) and (seed in late or min(met) < seed)

        if is_needless(True):
            return
        try:
            reports[seed] = report = place(seed, is_needless)
        except UnroutedError as error:
            errors[seed] = error
        except SupersededError:
            return
        else:
            if _slack(report) >= 1 and seed not in late:
                met.append(seed)

    run_parallel([partial(attempt, seed) for seed in seeds], os.cpu_count())
    following = itertools.count(max(seeds) + 1)
    while len(errors) < MOST_SEEDS and not reports:
        attempt(next(following))
    if not reports:
        *_, last = errors.values()
        tried = ", ".join(map(str, sorted(errors)))
        raise UnroutedError(
            f"seeds {tried} lead to no placement with a route; of the last one: {last.reason}",
            remedy=last.remedy,
        ) from last
    if met:
        needless = late | {seed for seed in seeds if seed > min(met)}
        reports = {seed: report for seed, report in reports.items() if seed not in needless}
        errors = {seed: error for seed, error in errors.items() if seed not in needless}
    return {seed: reports[seed] for seed in sorted(reports)}, sorted(errors)


def _slack(report: Mapping[str, Any]) -> float:
    """Return by what factor the constraints of a placement are reached."""
    return min((fmax / limit for fmax, limit in clocks_of(report).values()), default=1.0)


def tool_identities(family: Family) -> tuple[str, ...]:
    """Names and versions of the tools that a result depends on, for the keys of caches."""
    names = ("yosys", family.router.name, family.packer.name)
    return tuple(find_tool(name).identity for name in names)


def _resources(
    utilization: Mapping[str, Mapping[str, int]], cells: Mapping[str, int], family: Family
) -> dict[str, Resource]:
    counts = {cell: (row["used"], row["available"]) for cell, row in utilization.items()}
    resources = {
        name: Resource(used, available)
        for name, (used, available) in family.utilization(counts).items()
    }
    if "ff" not in resources:
        flip_flops = sum(n for cell, n in cells.items() if re.fullmatch(family.flip_flops, cell))
        resources["ff"] = Resource(flip_flops, resources["lut"].available)
    return resources
