"""Placing and routing of families whose router takes up again what is late.

A placer may leave what no route mends. So the clock is tried with one placement after the other,
and only a clock that none of them reaches is given up for one that is in reach.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from nnef_hw.errors import SnaggedError, UnroutedError
from nnef_hw.place.nextpnr.ripup import (
    estimated_share,
    is_in_reach,
    raised,
    reached_for,
    set_clock,
    stated_for,
)

__all__ = ["Mender", "Run", "Way"]

_log = logging.getLogger(__name__)

Run: TypeAlias = Callable[[Path, Sequence[str], bool], None]
"""Runs nextpnr with a netlist and options, for a clock that is in reach as far as is known."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to a placement.

    Parameters
    ----------
    options
        Those of nextpnr, for the placement and its routes.
    prepare
        Gives the netlist to begin with: packed, with places for its cells. Without it, the mapped
        one is packed and placed by nextpnr.
    """

    options: Sequence[str]
    prepare: Callable[[], Path] | None = None


@dataclass(frozen=True, slots=True)
class _Placement:
    """A placed netlist, with its clock in MHz as nextpnr estimates it."""

    netlist: Path
    log: Path
    options: Sequence[str]
    estimate: float


@dataclass(frozen=True, slots=True)
class _Result:
    """The best route so far: for which clock, and what it reaches, in MHz."""

    placement: _Placement
    aim: float
    reached: float


@dataclass(frozen=True, slots=True)
class Mender:
    """Places and routes one netlist.

    Parameters
    ----------
    frequency_mhz
        The clock.
    run
        Runs nextpnr, which prints into ``log``.
    netlist
        What is placed.
    own
        Folder that receives ``timing.json``, and for now placed netlists.
    written
        Files that a route writes besides.
    log
        Ends as the log of the route that is kept; that of its placement is ``placing.log``.
    route, ripup
        Options of a route, and those that let the router take up again what is late.
    """

    frequency_mhz: float
    run: Run
    netlist: Path
    own: Path
    written: Sequence[Path]
    log: Path
    route: Sequence[str]
    ripup: Sequence[str]

    def mend(self, ways: Sequence[Way]) -> dict[str, object]:
        """Place in one way after the other until the clock is met; return nextpnr's report.

        A placement is routed until nothing is late. Where the report says that the clock is missed
        after all, it is routed once more, for a higher one and in another order; and in another
        order where nothing is late and a few wires are in conflict to the end. Where no placement
        has a route in time, that of the highest estimate is routed for what it promises, or else
        as it comes; in another order, too, where a few wires are in conflict.

        Raises
        ------
        UnroutedError
            There is no placement, or the last of these routes is none.
        """
        best: _Result | None = None
        placements: list[_Placement] = []
        unplaced: UnroutedError | None = None
        for number, way in enumerate(ways):
            try:
                placement = self._placed(number, way)
            except UnroutedError as error:
                unplaced = error
                continue
            placements.append(placement)
            if is_in_reach(self.frequency_mhz, placement.estimate):
                best = self._for_the_clock(placement, best)
            if best and best.reached >= self.frequency_mhz:
                break
        if unplaced and not placements:
            raise unplaced
        if best is None:
            best = self._for_less(max(placements, key=lambda placement: placement.estimate))
        best.placement.log.replace(self.own / "placing.log")
        for path, kept in self._kept.items():
            kept.replace(path)
        for path in (*self.own.glob("placed*.json"), *self.own.glob("placing?*.log")):
            path.unlink(missing_ok=True)
        return stated_for(self._report, best.aim, self.frequency_mhz)

    @property
    def _kept(self) -> dict[Path, Path]:
        """Files that a route writes, and where the files of the best one are until the end."""
        paths = (self._report, *self.written, self.log)
        return {path: self.own / f"best-{path.name}" for path in paths}

    @property
    def _report(self) -> Path:
        return self.own / "timing.json"

    def _placed(self, number: int, way: Way) -> _Placement:
        netlist = self.own / f"placed{number}.json"
        begin = [*way.options, "--no-route", "--write", f"{self.own.name}/{netlist.name}"]
        if way.prepare:
            source = way.prepare()
            self.run(source, [*begin, "--no-pack"], True)
            source.unlink()
        else:
            self.run(self.netlist, begin, True)
        estimate = self.frequency_mhz * estimated_share(self.log.read_text())
        log = self.log.replace(self.own / f"placing{number}.log")
        return _Placement(netlist, log, way.options, estimate)

    def _for_the_clock(self, placement: _Placement, best: _Result | None) -> _Result | None:
        """Route for the clock; return the better of the result and the best one before."""
        aim = raised(self.frequency_mhz)
        other = _reordered(placement.options)
        try:
            found = self._route(placement, aim, placement.options, self.ripup, best)
        except SnaggedError:
            return self._better(placement, aim, best, other)
        except UnroutedError:
            self._warn(aim)
            return best
        if found is best or found.reached >= self.frequency_mhz:
            return found
        # As much higher as the router sees less than the report.
        return self._better(placement, aim * aim / found.reached, found, other)

    def _for_less(self, placement: _Placement) -> _Result:
        """Route for the estimate, which is what the placer promises, or else as it comes."""
        if placement.estimate < raised(self.frequency_mhz):
            try:
                return self._in_orders(placement, placement.estimate, self.ripup)
            except UnroutedError:
                self._warn(placement.estimate)
        return self._in_orders(placement, self.frequency_mhz, ())

    def _in_orders(self, placement: _Placement, aim: float, ripup: Sequence[str]) -> _Result:
        """Route, and in another order where a few wires are in conflict to the end."""
        try:
            return self._route(placement, aim, placement.options, ripup, None)
        except SnaggedError:
            return self._route(placement, aim, _reordered(placement.options), ripup, None)

    def _better(
        self, placement: _Placement, aim: float, best: _Result | None, options: Sequence[str]
    ) -> _Result | None:
        """Route until nothing is late; return the better of the result and the best one before."""
        try:
            return self._route(placement, aim, options, self.ripup, best)
        except UnroutedError:
            self._warn(aim)
            return best

    def _warn(self, aim: float) -> None:
        _log.warning(
            "%s: no route is in time for %.2f MHz, another one follows", self.own.name, aim
        )

    def _route(
        self, placement: _Placement, aim: float, options: Sequence[str], ripup: Sequence[str],
        best: _Result | None,
    ) -> _Result:  # fmt: skip
        """Route; files are kept if the clock is higher than the best one before."""
        set_clock(placement.netlist, aim)
        end = [*options, "--no-pack", "--no-place", *self.route, *ripup]
        self.run(placement.netlist, end, aim >= self.frequency_mhz and bool(ripup))
        result = _Result(placement, aim, reached_for(self._report, aim))
        if best and result.reached <= best.reached:
            return best
        for path, kept in self._kept.items():
            path.replace(kept)
        return result


def _reordered(options: Sequence[str]) -> list[str]:
    """Return options with which nextpnr routes in another order.

    Without a seed it goes on with the random numbers of the placement.
    """
    at = options.index("--seed")
    return [*options[:at], *options[at + 2 :]]
