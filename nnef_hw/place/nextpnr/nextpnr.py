"""The open toolchain: yosys maps, nextpnr places and routes, a packer writes the bitstream.

Everything happens inside one folder with relative names, because the WebAssembly tools see nothing
else, and the results keep no path of this machine, so equal inputs give equal files.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.errors import UnroutedError
from nnef_hw.hardware.families import Pin
from nnef_hw.place.mapping import map_design
from nnef_hw.place.nextpnr.attempt import IsNeedless, Placer
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.nextpnr.floorplan import describe_places
from nnef_hw.place.nextpnr.pll import clock_names, tuned_clocks
from nnef_hw.place.nextpnr.run import SupersededError
from nnef_hw.place.nextpnr.seeds import placements_of
from nnef_hw.place.nextpnr.timing import (
    clocks_of,
    longest_path,
    slack_of,
    slowest_clock,
    used_by,
)
from nnef_hw.place.result import Resource, SynthesisResult
from nnef_hw.place.toolchain import (
    Attempt,
    Design,
    Mapped,
    Progress,
    Toolchain,
    say_nothing,
)
from nnef_hw.system.tools import TOOLS, run_tool

__all__ = ["Nextpnr"]

_log = logging.getLogger(__name__)
OUTPUTS = {
    "board_top_netlist.v": "netlist of cells",
    "timing.json": "nextpnr's timing and utilization",
    "floorplan.json": "places of the cells",
    "*.log": "log",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Nextpnr(Toolchain):
    """Yosys, nextpnr and a packer, in the dialect of a family."""

    dialect: Dialect

    @classmethod
    def of(cls, dialect: Dialect) -> Nextpnr:
        """Return the toolchain that speaks a dialect."""
        return cls(
            title=dialect.router.name,
            programs=(TOOLS["yosys"], dialect.router, dialect.packer, *dialect.libraries),
            places=True,
            constraints_suffix=dialect.constraints_suffix,
            bitstream_suffix=dialect.bitstream_suffix,
            outputs=OUTPUTS,
            models=dialect.models,
            ip_family=dialect.ip_family,
            ip_option=dialect.ip_option,
            dialect=dialect,
        )

    def constraints(self, pins: Mapping[str, Pin], input_mhz: float) -> str:
        return self.dialect.constraints(pins, input_mhz)

    def map(
        self, design: Design, sources: Sequence[Path], folder: Path, logs: Path,
        *, pads: bool | None, progress: Progress = say_nothing,
    ) -> Mapped:  # fmt: skip
        progress("synthesizing (yosys)")
        ports = () if pads is None else self.dialect.ports(with_pins=pads)
        return map_design(self.dialect, design, sources, folder, logs, ports)

    def count(self, design: Design, folder: Path, log: Path) -> dict[str, tuple[int, int]]:
        return Placer(self.dialect, design).pack(folder, log)

    def attempt(self, design: Design, folder: Path, seed: int, log: Path) -> Attempt:
        report = Placer(self.dialect, design).place(folder, seed, log)
        fmax, _ = slowest_clock(clocks_of(report), design.frequency_mhz)
        return Attempt(fmax, used_by(report, self.dialect))

    def place(
        self, design: Design, mapped: Mapped, folder: Path, logs: Path,
        *, seeds: Sequence[int], bitstream: bool, progress: Progress = say_nothing,
    ) -> SynthesisResult:  # fmt: skip
        dialect, top = self.dialect, design.top
        placer = Placer(dialect, design)
        seconds = dict(mapped.seconds)
        begin = time.perf_counter()
        if dialect.planned():
            progress("placing DSP blocks and block RAMs")
        placer.plan(folder, logs / "plan.log")
        progress(f"placing and routing ({dialect.router.name})")

        def place(seed: int, is_needless: IsNeedless) -> dict[str, object]:
            log = logs / f"nextpnr{seed}.log"
            try:
                report = placer.place(folder, seed, log, is_needless)
            except UnroutedError as error:
                _log.warning("seed %d: %s (see %s)", seed, error.reason, log)
                raise
            except SupersededError:
                log.unlink()
                raise
            log.replace(folder / f"seed{seed}" / "nextpnr.log")
            return report

        tuning = design.tuning
        names = clock_names(_read(folder / design.netlist), tuning.outputs) if tuning else None
        placements, unrouted = placements_of(place, seeds)
        best = max(placements, key=lambda seed: slack_of(placements[seed]))
        report = placements[best]
        clocks, setting = clocks_of(report), None
        if tuning and names:
            clocks, setting = tuned_clocks(clocks, names, tuning)
        if setting:
            placer.set_pll(folder, best, logs / "pll.log", setting.parameters)
        seconds["nextpnr"] = time.perf_counter() - begin
        files = self._keep(top, folder, best, report)
        if bitstream:
            config, packer = f"{top}.config", dialect.packer
            files["bitstream"] = f"{top}.{dialect.bitstream_suffix}"
            command = dialect.pack_arguments(design.part, config, files["bitstream"])
            progress(f"packing ({packer.name})")
            packing_log = logs / f"{packer.name}.log"
            seconds[packer.name] = run_tool(packer, command, cwd=folder, log=packing_log)

        fmax, constraint = slowest_clock(clocks, design.frequency_mhz)
        return SynthesisResult(
            fmax_mhz=fmax,
            frequency_mhz=constraint,
            timing_met=all(achieved >= limit for achieved, limit in clocks.values()),
            clocks=clocks,
            resources=self._resources(report["utilization"], mapped),
            cells=mapped.cells,
            files=files,
            seconds=seconds,
            seeds={
                str(seed): slowest_clock(clocks_of(placement), design.frequency_mhz)[0]
                for seed, placement in placements.items()
            }
            | dict.fromkeys(map(str, unrouted)),
            seed=best,
            path=longest_path(report),
            clock_mhz=setting.clock_mhz if setting else None,
        )

    def _keep(
        self, top: str, folder: Path, seed: int, report: Mapping[str, object]
    ) -> dict[str, str]:
        """Leave the files of one placement in the folder; return their names by what they are."""
        (folder / f"{top}.json").unlink()
        for path in (folder / f"seed{seed}").iterdir():
            path.replace(folder / path.name)
        for own in folder.glob("seed*"):
            shutil.rmtree(own)
        config = f"{top}.config"
        netlist = folder / self.dialect.placed(config)
        floorplan = describe_places(netlist, report, self.dialect)
        (folder / "floorplan.json").write_text(json.dumps(floorplan, separators=(",", ":")) + "\n")
        if netlist.name != config:
            netlist.unlink()
        return {
            "netlist": f"{top}_netlist.v",
            "report": "timing.json",
            "floorplan": "floorplan.json",
            "yosys_log": "yosys.log",
            "nextpnr_log": "nextpnr.log",
        }

    def _resources(
        self, utilization: Mapping[str, Mapping[str, int]], mapped: Mapped
    ) -> dict[str, Resource]:
        counts = {cell: (row["used"], row["available"]) for cell, row in utilization.items()}
        resources = {
            name: Resource(used, available)
            for name, (used, available) in self.dialect.utilization(counts).items()
        }
        if "ff" not in resources:
            resources["ff"] = Resource(mapped.flip_flops, resources["lut"].available)
        return resources


def _read(path: Path) -> JsonObject:
    found: JsonObject = json.loads(path.read_text())
    return found
