"""Verilog to a bitstream: yosys, nextpnr and the packer of a family.

Everything happens inside one folder with relative names, because the WebAssembly tools see nothing
else, and the results keep no path of this machine, so equal inputs give equal files.
"""

from __future__ import annotations

import json
import logging
import math
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nnef_hw.errors import TargetError, ToolError
from nnef_hw.families import Family
from nnef_hw.tools import find_tool, run_tool

__all__ = ["Resource", "SynthesisResult", "map_only", "synthesize", "tool_identities"]

_log = logging.getLogger(__name__)


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
        Names below the folder: ``netlist``, ``report``, logs, and ``bitstream`` if there is one.
    seconds
        Time by step.
    seeds
        Highest frequency of the same clock by the seed of the placement; the fastest was packed.
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


YOSYS_ASSERTION = "ERROR: Assert"
_DISPLAY = {"lut": "logic cells", "ff": "flip-flops", "dsp": "DSP blocks", "bram": "block RAMs",
            "spram": "SPRAM blocks"}  # fmt: skip
_UTILISATION = re.compile(r"^Info:\s+(\w+):\s*(\d+)/\s*(\d+)\s+\d+%", re.MULTILINE)
_MISFIT = re.compile(
    r"^ERROR: .*(no BELs remaining|[Uu]nable to find|[Ff]ailed to (?:place|route|expand|find)|"
    r"[Rr]outing design failed|too many|legal placement).*$",
    re.MULTILINE,
)

_UNKNOWN = re.compile(
    r"^ERROR: (No package for partnumber|Unable to read chipdb|[Uu]nable to load uarch for device|"
    r"Unsupported package)\b.*$",
    re.MULTILINE,
)


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
        Seeds of the placer; the fastest placement is used.
    bitstream
        Whether to pack a bitstream.
    log_dir
        Folder where logs are written, and stay if a tool fails: errors name them. In the end they
        move to ``out_dir``, which is the default.

    Raises
    ------
    TargetError
        The design does not fit, or cannot be routed; or nextpnr does not have the device.
    ToolError
        A tool is missing or failed for another reason.

    Notes
    -----
    A missed clock constraint is a result, not an error: see ``timing_met``.
    """
    logs = log_dir or out_dir
    logs.mkdir(parents=True, exist_ok=True)
    ports = family.ports(with_pins=constraints is not None)
    cells, seconds = _map(verilog, family, top, device, out_dir, logs, ports)
    netlist = f"{top}.json"
    arguments = [*family.device_options(device, package, speed), "--json", netlist]
    arguments += ["--freq", f"{frequency_mhz:g}", "--timing-allow-fail"]
    pins = None
    if constraints is not None:
        pins = f"{top}.{family.constraints_suffix}"
        (out_dir / pins).write_text(constraints)

    log = logs / "nextpnr.log"
    begin = time.perf_counter()
    placements = {}
    for seed in seeds:
        folder = out_dir / f"seed{seed}"
        folder.mkdir(exist_ok=True)
        try:
            # the WebAssembly tools see nothing above their folder
            run = ["--seed", str(seed), "--report", f"seed{seed}/timing.json"]
            run += family.route_options(pins, f"seed{seed}/{top}.config")
            run_tool(family.router.name, [*arguments, *run], cwd=out_dir, log=log)
        except ToolError as error:
            _raise_if_unknown(log, family, f"{device} {package}{speed}", error)
            _raise_if_misfit(log, family, f"{device}-{package}", error)
            raise
        log.replace(folder / log.name)
        placements[seed] = json.loads((folder / "timing.json").read_text())
    seconds["nextpnr"] = time.perf_counter() - begin
    (out_dir / netlist).unlink()
    best = max(placements, key=lambda seed: _slack(placements[seed]))
    for path in (out_dir / f"seed{best}").iterdir():
        path.replace(out_dir / path.name)
    for seed in seeds:
        shutil.rmtree(out_dir / f"seed{seed}")
    report = placements[best]
    files = {
        "netlist": f"{top}_netlist.v",
        "report": "timing.json",
        "yosys_log": "yosys.log",
        "nextpnr_log": "nextpnr.log",
    }
    if bitstream:
        files["bitstream"] = f"{top}.{family.bitstream_suffix}"
        command = family.pack_arguments(device, f"{top}.config", files["bitstream"])
        packer = family.packer.name
        packing_log = logs / f"{packer}.log"
        seconds[packer] = run_tool(packer, command, cwd=out_dir, log=packing_log)
    for path in logs.glob("*.log"):
        path.replace(out_dir / path.name)

    clocks = _clocks(report)
    fmax, constraint = _slowest(clocks, frequency_mhz)
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
            str(seed): _slowest(_clocks(placement), frequency_mhz)[0]
            for seed, placement in placements.items()
        },
    )


def _clocks(report: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return frequency and constraint of every clock in nextpnr's report."""
    # rounded down, lest a clock be promised that is not there
    return {
        name: (math.floor(clock["achieved"] * 1000) / 1000, clock["constraint"])
        for name, clock in report["fmax"].items()
    }


def _slowest(
    clocks: Mapping[str, tuple[float, float]], frequency_mhz: float
) -> tuple[float | None, float]:
    """Return the clock that is closest to missing its constraint."""
    return min(
        clocks.values(), key=lambda clock: clock[0] / clock[1], default=(None, frequency_mhz)
    )


def _slack(report: Mapping[str, Any]) -> float:
    """Return by what factor the constraints of a placement are reached."""
    return min((fmax / limit for fmax, limit in _clocks(report).values()), default=1.0)


def map_only(
    verilog: Path | Sequence[Path],
    *,
    top: str,
    family: Family,
    device: str,
    out_dir: Path,
    ports: Sequence[str] = (),
) -> dict[str, int]:
    """Map a design to cells and count them by type, in seconds; nothing is placed.

    ``out_dir`` receives the netlist as ``{top}_netlist.v``, the names and cells of which
    Verilator takes together with the models of the cells. ``ports`` are further commands of yosys
    (:meth:`.Family.ports`), without which not every nextpnr takes ``{top}.json``.
    """
    return _map(verilog, family, top, device, out_dir, out_dir, ports)[0]


def tool_identities(family: Family) -> tuple[str, ...]:
    """Names and versions of the tools that a result depends on, for the keys of caches."""
    names = ("yosys", family.router.name, family.packer.name)
    return tuple(find_tool(name).identity for name in names)


def _map(
    verilog: Path | Sequence[Path],
    family: Family,
    top: str,
    device: str,
    out_dir: Path,
    log_dir: Path,
    ports: Sequence[str],
) -> tuple[dict[str, int], dict[str, float]]:
    sources = [verilog] if isinstance(verilog, Path) else list(verilog)
    out_dir.mkdir(parents=True, exist_ok=True)
    names = []
    for number, source in enumerate(sources):
        names.append(f"source{number}.v")
        shutil.copyfile(source, out_dir / names[-1])
    files = family.files()
    for name, text in files.items():
        (out_dir / name).write_text(text)
    reading = f"read_verilog -sv -D{family.define} {' '.join(names)}"
    log = log_dir / "yosys.log"
    *ways, last = family.mappings(device, top)
    for number, way in enumerate(ways):
        try:
            seconds = _run_yosys([reading, *way, *ports], top, out_dir, log)
            break
        except ToolError:
            if YOSYS_ASSERTION not in log.read_text(errors="replace"):
                raise
            failed = log.replace(log_dir / f"yosys_assertion{number or ''}.log")
            _log.warning("yosys failed with an assertion of its own, see %s in the build; another "
                         "way is tried", failed.name)  # fmt: skip
    else:
        seconds = _run_yosys([reading, *last, *ports], top, out_dir, log)
    counts = json.loads((out_dir / "cells.json").read_text())["design"]["num_cells_by_type"]
    for name in (*names, *files, "cells.json"):
        (out_dir / name).unlink()
    return dict(sorted(counts.items())), {"yosys": seconds}


def _run_yosys(commands: Sequence[str], top: str, out_dir: Path, log: Path) -> float:
    """Map the source to cells with these commands; return the seconds it took."""
    script = [
        *commands,
        # sources of cells are files of the yosys installation
        "setattr -unset src =*/w:* =*/c:* =*/m:*",
        "setattr -mod -unset src =*",
        f"write_json {top}.json",
        f"write_verilog -noattr {top}_netlist.v",
        "tee -q -o cells.json stat -json",
    ]
    (out_dir / "synthesis.ys").write_text("\n".join(script) + "\n")
    return run_tool("yosys", ["-s", "synthesis.ys"], cwd=out_dir, log=log)


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


def _raise_if_unknown(log: Path, family: Family, target: str, cause: ToolError) -> None:
    """Turn nextpnr's failure into an error of the user's, if it has no such device."""
    if match := _UNKNOWN.search(log.read_text(errors="replace")):
        reason = match[0].removeprefix("ERROR: ")
        raise TargetError(
            f"{find_tool(family.router.name).identity} does not know the device {target} "
            f"({reason})",
            remedy="correct part, package and speed of the board",
        ) from cause


def _raise_if_misfit(log: Path, family: Family, target: str, cause: ToolError) -> None:
    """Turn nextpnr's failure into an error of the user's, if it is one."""
    text = log.read_text(errors="replace")
    used = {cell: (int(n), int(limit)) for cell, n, limit in _UTILISATION.findall(text)}
    names = {cell: _DISPLAY[name] for name, cell in family.cells.items()}
    over = [
        f"{n} {names.get(cell, cell)} of {limit}" for cell, (n, limit) in used.items() if n > limit
    ]
    remedy = "take a smaller model, fewer multipliers or a bigger board"
    if over:
        raise TargetError(
            f"the design does not fit into {target}: it needs {', '.join(over)}", remedy=remedy
        ) from cause
    if match := _MISFIT.search(text):
        cell, _ = next(iter(family.cells.items()))[::-1]
        n, limit = used.get(cell, (0, 0))
        share = f" with {n} of {limit} logic cells used" if limit else ""
        reason = match[0].removeprefix("ERROR: ")
        raise TargetError(
            f"the design cannot be placed and routed in {target}{share} ({reason}; see {log})",
            remedy=remedy,
        ) from cause
