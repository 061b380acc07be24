"""What nextpnr does with a netlist: packing alone, and placements by their seeds."""

from __future__ import annotations

import json
import logging
import math
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from nnef_hw.boards import Board
from nnef_hw.errors import SnaggedError, TargetError, ToolError, UnroutedError
from nnef_hw.hardware.families import Family
from nnef_hw.hardware.families.tiles import LogicTiles
from nnef_hw.place.block_plan import Sites, lone_cells, places_of, plan_blocks
from nnef_hw.place.cell_places import place_cells
from nnef_hw.place.mend import Mender, Way
from nnef_hw.place.routing import Congestion
from nnef_hw.system.tools import find_tool, run_tool

__all__ = ["IsNeedless", "Placer", "SupersededError", "clocks_of", "slowest_clock", "used_by"]

_log = logging.getLogger(__name__)
REMEDY = "take a smaller model, fewer multipliers or a bigger board"
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


IsNeedless: TypeAlias = Callable[[bool], bool]


class SupersededError(Exception):
    """A placement was given up, since nobody needs it any more."""


@dataclass(frozen=True, slots=True)
class Placer:
    """Packs and places netlists of one device.

    Parameters
    ----------
    top
        Top module; the netlist is ``{top}.json``.
    family, device, package, speed
        As nextpnr names them.
    frequency_mhz
        Constraint for clocks that the constraints say nothing about.
    constraints
        Text in the language of the family's nextpnr; None places the pins anywhere.
    """

    top: str
    family: Family
    device: str
    package: str
    speed: str
    frequency_mhz: float
    constraints: str | None

    @classmethod
    def of_board(cls, board: Board, frequency_mhz: float, constraints: str) -> Placer:
        """Return that of the board's top."""
        return cls(
            "board_top", board.device.family, board.part, board.package, board.speed,
            frequency_mhz, constraints,
        )  # fmt: skip

    def place(
        self, folder: Path, seed: int, log: Path, is_needless: IsNeedless = lambda in_reach: False
    ) -> dict[str, Any]:
        """Place and route the netlist of a folder; return nextpnr's report.

        ``folder / f"seed{seed}"`` receives the report as ``timing.json`` and ``{top}.config``.
        ``is_needless`` is asked meanwhile, with whether the clock is in reach as far as is known:
        when it says so, nextpnr is stopped.

        Raises
        ------
        TargetError
            The design does not fit; or nextpnr does not have the device.
        UnroutedError
            This seed has no legal placement, or router2 stopped getting on with that
            (:class:`.Congestion`).
        SupersededError
            The placement is needless.
        ToolError
            nextpnr is missing or failed for another reason.
        """
        own = folder / f"seed{seed}"
        # the WebAssembly tools see nothing above their folder
        clock = ["--freq", f"{self.frequency_mhz:g}", "--timing-allow-fail"]
        ways = [Way([*clock, *options]) for options in self.family.placings(seed)]
        route = ["--report", f"{own.name}/timing.json"]
        config = f"{self.top}.config"
        route += self.family.route_options(f"{own.name}/{config}")
        if ripup := self.family.ripup_options():

            def run(netlist: Path, options: Sequence[str], in_reach: bool) -> None:
                name = netlist.relative_to(folder).as_posix()
                self._run(name, options, own, log, partial(is_needless, in_reach))

            mender = Mender(
                frequency_mhz=self.frequency_mhz, run=run, netlist=folder / f"{self.top}.json",
                own=own, written=[own / config, own / self.family.placed(config)], log=log,
                route=route, ripup=ripup,
            )  # fmt: skip
            if tiles := self.family.tiles():
                # All by nextpnr first, which knows more of timing.
                first, *_ = ways
                prepare = partial(
                    self._place_cells, folder, tiles, seed, first.options, log,
                    partial(is_needless, True),
                )  # fmt: skip
                ways.insert(1, Way(first.options, prepare))
            return mender.mend(ways)
        [way] = ways
        self._run(f"{self.top}.json", [*way.options, *route], own, log, partial(is_needless, True))
        report: dict[str, Any] = json.loads((own / "timing.json").read_text())
        return report

    def plan(self, folder: Path, log: Path) -> None:
        """Give blocks of the netlist of a folder their places, where the family does.

        Which ones there are nextpnr tells by placing as many blocks as it has.

        Raises
        ------
        TargetError, ToolError
            nextpnr is missing, or does not have the device.
        """
        if not (planned := self.family.planned()):
            return
        path = folder / f"{self.top}.json"
        netlist = json.loads(path.read_text())
        cells = [cell for module in netlist["modules"].values() for cell in module["cells"].items()]
        if not (kinds := {cell["type"] for _, cell in cells} & {*planned}):
            return
        numbers, blocks = self._places(sorted(kinds), "probe", folder, log)
        places = plan_blocks(netlist, Sites(numbers[self.family.cells["lut"]], blocks))
        for name, cell in cells:
            if name in places:
                cell["attributes"]["BEL"] = places[name]
        path.write_text(json.dumps(netlist, separators=(",", ":")))

    def _place_cells(
        self, folder: Path, tiles: LogicTiles, seed: int, options: Sequence[str], log: Path,
        is_needless: Callable[[], bool],
    ) -> Path:  # fmt: skip
        """Pack the netlist of a folder and place its cells; return that netlist."""

        def check() -> None:
            if is_needless():
                raise SupersededError

        own = folder / f"seed{seed}"
        packed = own / "packed.json"
        write = [*options, "--pack-only", "--write", f"{own.name}/{packed.name}"]
        self._run(f"{self.top}.json", write, own, log, is_needless)
        _, places = self._places([tiles.mark], f"tiles{seed}", folder, log)
        netlist = json.loads(packed.read_text())
        place_cells(netlist, tiles, places[tiles.mark], self.frequency_mhz, seed, check)
        packed.write_text(json.dumps(netlist, separators=(",", ":")))
        return packed

    def _places(
        self, kinds: Sequence[str], top: str, folder: Path, log: Path
    ) -> tuple[dict[str, int], dict[str, list[str]]]:
        """Ask nextpnr to place as many cells as there are; return what there is, and all places."""
        probe = replace(self, top=top, constraints=None)
        own = folder / probe.top
        source, placed = folder / f"{probe.top}.json", own / "placed.json"

        def ask(numbers: Mapping[str, int], *options: str) -> dict[str, int]:
            source.write_text(lone_cells(numbers, probe.top))
            probe._run(source.name, options, own, log, lambda: False)
            return {cell: there for cell, (_, there) in _utilisation(log).items()}

        there = ask(dict.fromkeys(kinds, 1), "--pack-only")
        way, *_ = self.family.placings(1)
        name = placed.relative_to(folder).as_posix()
        ask({kind: there[kind] for kind in kinds}, *way, "--no-route", "--write", name)
        places = places_of(json.loads(placed.read_text()))
        shutil.rmtree(own)
        source.unlink()
        log.unlink()
        return there, places

    def pack(self, folder: Path, log: Path) -> dict[str, tuple[int, int]]:
        """Pack the netlist of a folder; return resources used and available.

        They are those of a placement, but for lone flip-flops of Gowin devices: 2% of the LUTs.

        Raises
        ------
        TargetError, ToolError
            As for :meth:`place`.
        """
        self._run(f"{self.top}.json", ["--pack-only"], folder / "packed", log, lambda: False)
        counts = _utilisation(log)
        found = {name: counts[cell] for name, cell in self.family.cells.items() if cell in counts}
        netlist = json.loads((folder / f"{self.top}.json").read_text())
        # Before placement the logic cells of Gowin's adders count as LUTs already.
        used, available = found["lut"]
        return found | {"lut": (used + round(self.family.lone_flip_flops(netlist)), available)}

    def _run(
        self, netlist: str, arguments: Sequence[str], own: Path, log: Path,
        is_needless: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Run nextpnr beside a folder, which receives what it writes."""
        own.mkdir(exist_ok=True)
        pins = None
        if self.constraints is not None:
            pins = f"{own.name}/{self.top}.{self.family.constraints_suffix}"
            (own.parent / pins).write_text(self.constraints)
        device = self.family.device_options(self.device, self.package, self.speed)
        command = [*device, "--json", netlist, *arguments, *self.family.pin_options(pins)]
        congestion = Congestion(log)
        try:
            run_tool(
                self.family.router.name, command, cwd=own.parent, log=log,
                is_stuck=lambda: is_needless() or congestion.is_stuck(),
            )  # fmt: skip
        except ToolError as error:
            if is_needless():
                raise SupersededError from error
            if congestion.is_stuck():
                found = SnaggedError if congestion.is_snag else UnroutedError
                raise found(
                    f"the placement has no route: several nets want {congestion.overused} wires "
                    f"after {congestion.iterations} iterations, and it gets no better",
                    remedy=REMEDY,
                ) from error
            named = f"{self.device} {self.package}{self.speed}"
            _raise_if_unknown(log, self.family, named, error)
            _raise_if_misfit(log, self.family, f"{self.device}-{self.package}", error)
            raise


def used_by(report: Mapping[str, Any], family: Family) -> dict[str, int]:
    """Return what a placement uses of each resource, from nextpnr's report."""
    rows = report["utilization"]
    counts = {cell: (row["used"], row["available"]) for cell, row in rows.items()}
    return {name: used for name, (used, _) in family.utilization(counts).items()}


def clocks_of(report: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return frequency and constraint of every clock in nextpnr's report."""
    # rounded down, lest a clock be promised that is not there
    return {
        name: (math.floor(clock["achieved"] * 1000) / 1000, clock["constraint"])
        for name, clock in report["fmax"].items()
    }


def slowest_clock(
    clocks: Mapping[str, tuple[float, float]], frequency_mhz: float
) -> tuple[float | None, float]:
    """Return the clock that is closest to missing its constraint."""
    return min(
        clocks.values(), key=lambda clock: clock[0] / clock[1], default=(None, frequency_mhz)
    )


def _utilisation(log: Path) -> dict[str, tuple[int, int]]:
    """Return how many cells of each type nextpnr has packed, and how many places there are."""
    rows = _UTILISATION.findall(log.read_text(errors="replace"))
    return {cell: (int(used), int(available)) for cell, used, available in rows}


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
    used = _utilisation(log)
    names = {cell: _DISPLAY[name] for name, cell in family.cells.items()}
    over = [
        f"{n} {names.get(cell, cell)} of {limit}" for cell, (n, limit) in used.items() if n > limit
    ]
    if over:
        raise TargetError(
            f"the design does not fit into {target}: it needs {', '.join(over)}", remedy=REMEDY
        ) from cause
    if match := _MISFIT.search(text):
        cell, _ = next(iter(family.cells.items()))[::-1]
        n, limit = used.get(cell, (0, 0))
        share = f" with {n} of {limit} logic cells used" if limit else ""
        reason = match[0].removeprefix("ERROR: ")
        raise UnroutedError(
            f"the design cannot be placed and routed in {target}{share} ({reason}; see {log})",
            remedy=REMEDY,
        ) from cause
