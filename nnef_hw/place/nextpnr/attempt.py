"""One placement by nextpnr: blocks first, then the rest, routed; and packing alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

from nnef_hw.place.cells.tiles import LogicTiles
from nnef_hw.place.nextpnr.dialect import Dialect
from nnef_hw.place.nextpnr.mend import Mender, Way
from nnef_hw.place.nextpnr.probe import all_places
from nnef_hw.place.nextpnr.run import SupersededError, run_nextpnr, utilisation_of
from nnef_hw.place.toolchain import Design

__all__ = ["IsNeedless", "Placer"]

IsNeedless: TypeAlias = Callable[[bool], bool]


@dataclass(frozen=True, slots=True)
class Placer:
    """Packs and places the netlist of one design, ``{top}.json``."""

    dialect: Dialect
    design: Design

    def place(
        self, folder: Path, seed: int, log: Path, is_needless: IsNeedless = lambda in_reach: False
    ) -> dict[str, object]:
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
        dialect, top = self.dialect, self.design.top
        own = folder / f"seed{seed}"
        # the WebAssembly tools see nothing above their folder
        clock = ["--freq", f"{self.design.frequency_mhz:g}", "--timing-allow-fail"]
        ways = [Way([*clock, *options]) for options in dialect.placings(seed)]
        route = ["--report", f"{own.name}/timing.json"]
        config = f"{top}.config"
        route += dialect.route_options(f"{own.name}/{config}")
        if ripup := dialect.ripup_options():

            def run(netlist: Path, options: Sequence[str], in_reach: bool) -> None:
                name = netlist.relative_to(folder).as_posix()
                self._run(name, options, own, log, partial(is_needless, in_reach))

            mender = Mender(
                frequency_mhz=self.design.frequency_mhz, run=run, netlist=folder / f"{top}.json",
                own=own, written=[own / config, own / dialect.placed(config)], log=log,
                route=route, ripup=ripup,
            )  # fmt: skip
            if tiles := dialect.tiles():
                # All by nextpnr first, which knows more of timing.
                first, *_ = ways
                prepare = partial(
                    self._place_cells, folder, tiles, seed, first.options, log,
                    partial(is_needless, True),
                )  # fmt: skip
                ways.insert(1, Way(first.options, prepare))
            return mender.mend(ways)
        [way] = ways
        self._run(f"{top}.json", [*way.options, *route], own, log, partial(is_needless, True))
        report: dict[str, object] = json.loads((own / "timing.json").read_text())
        return report

    def set_pll(
        self, folder: Path, seed: int, log: Path, parameters: Mapping[str, int]
    ) -> None:  # fmt: skip
        """Change the PLL's parameters in what :meth:`place` has written; all else stays.

        Raises
        ------
        ToolError
            nextpnr failed.
        """
        own, config = folder / f"seed{seed}", f"{self.design.top}.config"
        placed = own / self.dialect.placed(config)
        if not self.dialect.set_pll(own / config, placed, parameters):
            return
        # its pins have their places already
        design = replace(self.design, constraints=None)
        route = self.dialect.route_options(f"{own.name}/{config}")
        arguments = ["--no-pack", "--no-place", "--no-route", *route]
        run_nextpnr(self.dialect, design, f"{own.name}/{placed.name}", arguments, own, log)
        log.unlink()

    def plan(self, folder: Path, log: Path) -> None:
        """Give blocks of the netlist of a folder their places, where the family does.

        Which ones there are nextpnr tells by placing as many blocks as it has.

        Raises
        ------
        TargetError, ToolError
            nextpnr is missing, or does not have the device.
        """
        if not (planned := self.dialect.planned()):
            return
        path = folder / f"{self.design.top}.json"
        netlist = json.loads(path.read_text())
        cells = [cell for module in netlist["modules"].values() for cell in module["cells"].items()]
        if not (kinds := {cell["type"] for _, cell in cells} & {*planned}):
            return
        # Needs scipy, which other families do without.
        from nnef_hw.place.blocks.block_plan import Sites, plan_blocks

        numbers, blocks = all_places(self.dialect, self.design, sorted(kinds), "probe", folder, log)
        places = plan_blocks(netlist, Sites(numbers[self.dialect.cells["lut"]], blocks))
        for name, cell in cells:
            if name in places:
                cell["attributes"]["BEL"] = places[name]
        path.write_text(json.dumps(netlist, separators=(",", ":")))

    def _place_cells(
        self, folder: Path, tiles: LogicTiles, seed: int, options: Sequence[str], log: Path,
        is_needless: Callable[[], bool],
    ) -> Path:  # fmt: skip
        """Pack the netlist of a folder and place its cells; return that netlist."""
        # Needs scipy, which other families do without.
        from nnef_hw.place.cells.cell_places import place_cells

        def check() -> None:
            if is_needless():
                raise SupersededError

        own = folder / f"seed{seed}"
        packed = own / "packed.json"
        write = [*options, "--pack-only", "--write", f"{own.name}/{packed.name}"]
        self._run(f"{self.design.top}.json", write, own, log, is_needless)
        _, places = all_places(self.dialect, self.design, [tiles.mark], f"tiles{seed}", folder, log)
        netlist = json.loads(packed.read_text())
        place_cells(netlist, tiles, places[tiles.mark], self.design.frequency_mhz, seed, check)
        packed.write_text(json.dumps(netlist, separators=(",", ":")))
        return packed

    def pack(self, folder: Path, log: Path) -> dict[str, tuple[int, int]]:
        """Pack the netlist of a folder; return resources used and available.

        They are those of a placement, but for lone flip-flops of Gowin devices: 2% of the LUTs.

        Raises
        ------
        TargetError, ToolError
            As for :meth:`place`.
        """
        own = folder / "packed"
        self._run(f"{self.design.top}.json", ["--pack-only"], own, log, lambda: False)
        counts = utilisation_of(log)
        found = {name: counts[cell] for name, cell in self.dialect.cells.items() if cell in counts}
        netlist = json.loads((folder / f"{self.design.top}.json").read_text())
        # Before placement the logic cells of Gowin's adders count as LUTs already.
        used, available = found["lut"]
        return found | {"lut": (used + round(self.dialect.lone_flip_flops(netlist)), available)}

    def _run(
        self, netlist: str, arguments: Sequence[str], own: Path, log: Path,
        is_needless: Callable[[], bool],
    ) -> None:  # fmt: skip
        run_nextpnr(self.dialect, self.design, netlist, arguments, own, log, is_needless)
