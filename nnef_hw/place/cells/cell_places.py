"""Places for all cells in logic tiles, along their wires and spread by how many there are.

Nextpnr's HeAP places cells as closely as they go. Where the wires are longer than such a place has
room for, there is no route, though most of the chip is empty: a layer of adders for each of its
weights took 35% of an ECP5-85F with up to 100 tiles of wire to each tile of the chip, and three
times as many horizontal as vertical ones. Here areas grow where wires are dense, and nets with late
paths weigh more from turn to turn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from nnef_hw.arithmetic.records import JsonObject, JsonView
from nnef_hw.place.blocks.block_plan import LOGIC_BIN
from nnef_hw.place.blocks.spreading import Charges, Spreader, crowd
from nnef_hw.place.blocks.wires import Points, Wires
from nnef_hw.place.cells.slack import Paths
from nnef_hw.place.cells.tile_grid import TileGrid
from nnef_hw.place.cells.tiles import Cell, LogicTiles, Unit
from nnef_hw.place.cells.unit_places import UnitPlaces
from nnef_hw.place.netlist.bels import place_of

__all__ = ["place_cells"]

_log = logging.getLogger(__name__)

TURNS, GROWING = 14, 4
"""Times that cells are spread, the first ones of which let areas grow."""
ROOM, SPARSEST = 1.05, 0.3
"""Cells find hardly more room than there is, so that they are spread all over the chip: unless
less than this share of the slots where they lie is in use.
"""
BLUR = 3.0
"""Tiles across which wires are taken to go."""
LEAST_WIRES = 5.0
"""Tiles of wire per tile below which an area shrinks no more."""
EARLY = 0.95
"""Share of the period that the longest path may take before another turn is needless."""
MOVES, ENOUGH = 10, 0.01
"""Times that units move, or until so small a share of them does."""
NEARER, CLOSEST = 0.8, 0.3
"""What areas of units on late paths shrink by in a turn, and to which share of theirs at most."""
URGENT = 0.6
"""Share of the period from which on units take their slots before others."""


class _Weighing(NamedTuple):
    """Weights of late nets: share of the period where they begin, growth, and maximum."""

    begin: float
    pace: float
    most: float


IN_SPREADING, IN_MOVING = _Weighing(0.85, 2, 12), _Weighing(0.75, 4, 200)
KEPT = 0.8
"""What a net that is early again keeps of its weight."""


def place_cells(
    netlist: JsonView, tiles: LogicTiles, places: Sequence[str], frequency_mhz: float,
    seed: int, check: Callable[[], None],
) -> None:  # fmt: skip
    """Give every cell of logic tiles in a packed netlist its place, as an attribute ``BEL``.

    Parameters
    ----------
    netlist
        As nextpnr writes it in JSON after packing; it is changed.
    tiles, places
        What the family knows of its tiles, and nextpnr's name of a place in each of them.
    frequency_mhz
        The clock.
    seed
        From where cells begin.
    check
        Is called every few seconds; what it raises ends the search.

    Raises
    ------
    UnroutedError
        Some cells find no place.
    """
    [module] = netlist["modules"].values()
    cells: JsonObject = module["cells"]
    units = tiles.units(cells)
    if not units:
        return
    plan = _Plan(
        cells, units, tiles, [at for name in places if (at := place_of(name))], 1000 / frequency_mhz
    )
    settled = plan.settle(plan.spread(seed, check), check)
    for unit, spot in zip(units, settled.spots, strict=True):
        y = plan.grid.rows[spot.row]
        for member in unit.members:
            column, slot = divmod(spot.slot + member.slot, tiles.slots)
            name = tiles.name(plan.grid.columns[column], y, slot, member.part)
            cells[member.name]["attributes"]["BEL"] = name


class _Plan:
    """Units of cells on a chip, along wires and paths."""

    def __init__(
        self, cells: Mapping[str, Cell], units: Sequence[Unit], tiles: LogicTiles,
        places: Sequence[tuple[int, int]], period: float,
    ) -> None:  # fmt: skip
        self._units, self._tiles, self._period = units, tiles, period
        self.grid = TileGrid(tiles, places)
        self._slots = tiles.slots * len(places)
        within = {member.name for unit in units for member in unit.members}
        given = {
            name: place_of(cell["attributes"].get("BEL") or cell["attributes"]["NEXTPNR_BEL"])
            for name, cell in cells.items()
            if name not in within and cell["attributes"].keys() & {"BEL", "NEXTPNR_BEL"}
        }  # fmt: skip
        self._given = np.array(list(given.values()), float).reshape(-1, 2).T
        groups = [[member.name for member in unit.members] for unit in units]
        groups += [[name] for name in given]
        self.wires = Wires(_netlist(cells, groups, tiles))
        self._paths = Paths(cells, tiles)
        # Of every cell with paths, its unit, and how far from the middle of that it is.
        group = {name: n for n, names in enumerate(groups) for name in names}
        self._group = np.array([group.get(name, -1) for name in self._paths.names], np.int64)
        offsets = {
            member.name: (member.slot + 0.5 - unit.slots / 2) / tiles.slots
            for unit in units for member in unit.members
        }  # fmt: skip
        self._offset = np.array([offsets.get(name, 0) for name in self._paths.names], float)
        self._net = np.array([self.wires.nets.get(bit, -1) for bit in self._paths.bits], np.int64)
        self._size = np.array([self.grid.columns[-1] + 1, self.grid.rows[-1] + 1], float)

    def spread(self, seed: int, check: Callable[[], None]) -> Points:
        """Return where units would best be [axis, unit or given cell]."""
        stretch = np.array([[self._tiles.stretch], [1.0]])
        size = self._size[:, None] * stretch
        count = len(self._units)
        held = np.arange(len(self.wires.names)) >= count
        at = crowd(size.ravel().tolist(), len(held), seed)
        at[:, count:] = self._given * stretch
        least = np.maximum(self.wires.pins[:count], 1).astype(float)
        total, area = least.sum(), least
        least = CLOSEST * least
        found: Points = at
        slots = sum(unit.slots for unit in self._units)
        room = max(ROOM, SPARSEST * self._slots / slots)
        for turn in range(TURNS):
            check()
            logic = Charges(np.arange(count), area, size.ravel().tolist(), LOGIC_BIN, room)
            at = Spreader(self.wires, [logic], size.ravel().tolist()).spread(at, held)
            found = at / stretch
            urgency = self._urgency(found)
            share = self._weigh(found, IN_SPREADING)
            _log.debug("turn %d: the longest path takes %.2f of the period", turn, share)
            if turn >= GROWING and share <= EARLY:
                break
            if turn < GROWING:
                area = area * self._demand(found)
            closer = np.maximum(NEARER * area, np.minimum(area, least))
            area = np.where(urgency > IN_SPREADING.begin, closer, area)
            area *= total / area.sum()
        return found

    def settle(self, at: Points, check: Callable[[], None]) -> UnitPlaces:
        """Return the units in slots near to some places, moved along their wires."""
        settled = UnitPlaces(self._units, self.grid, self.wires)
        urgency = self._urgency(at).tolist()
        # RAMs have the fewest places, then what is urgent, then what is long.
        settled.settle(at, sorted(range(len(self._units)), key=lambda n: (
            not self._units[n].is_aligned, -max(urgency[n], URGENT), -self._units[n].slots, n
        )))  # fmt: skip
        self.wires.weights[:] = 1
        best: tuple[tuple[bool, float], list[Any]] | None = None
        for turn in range(MOVES):
            check()
            share = self._weigh(at, IN_MOVING)
            low, high = self.wires.boxes(at)
            length = float((high - low).sum())
            _log.debug("move %d: %.2f of the period, %.0f tiles of wire", turn, share, length)
            merit = share > EARLY, length if share <= EARLY else share
            if best is None or merit < best[0]:
                best = merit, list(settled.spots)
            heaviest = [
                self.wires.weights[self.wires.nets_of(n)].max(initial=0)
                for n in range(len(self._units))
            ]
            order = np.argsort(-np.array(heaviest), kind="stable").tolist()
            if settled.improve(at, order) < ENOUGH * len(self._units):
                break
        assert best
        settled.spots = best[1]
        return settled

    def _weigh(self, at: Points, how: _Weighing) -> float:
        """Let nets of late paths weigh more; return the longest path's share of the period."""
        longest = self._paths.longest(self._cells_at(at)) / self._period
        shares = np.zeros(len(self.wires.weights))
        known = self._net >= 0
        np.maximum.at(shares, self._net[known], longest[known])
        weights = self.wires.weights
        later = np.maximum(shares - how.begin, 0)
        heavier = np.minimum(weights * (1 + how.pace * later), how.most)
        weights[:] = np.where(later > 0, heavier, 1 + KEPT * (weights - 1))
        return float(longest.max(initial=0))

    def _cells_at(self, at: Points) -> Points:
        """Return where the cells with paths are; those without a place are in the middle."""
        there = np.where(self._group >= 0, at[:, self._group], self._size[:, None] / 2)
        there[0] += self._offset
        return there

    def _urgency(self, at: Points) -> NDArray[np.float64]:
        """Return the share of the period that the longest path through each unit takes."""
        longest = self._paths.longest(self._cells_at(at)) / self._period
        most = np.zeros(len(self._units) + 1)
        for ends in self._paths.ends:
            group = self._group[ends]
            inside = np.where((group >= 0) & (group < len(self._units)), group, -1)
            np.maximum.at(most, inside, longest)
        return most[:-1]

    def _demand(self, at: Points) -> NDArray[np.float64]:
        """Return how dense the wires around each unit are, compared with all others."""
        low, high = self.wires.boxes(at)
        wires = np.zeros((int(self._size[0]) + 1, int(self._size[1]) + 1))
        # Each net is spread over the tiles that its pins span.
        first, last = low.astype(np.int64), high.astype(np.int64) + 1
        length = (high - low).sum(axis=0) / (last - first).prod(axis=0)
        corners = np.zeros((wires.shape[0] + 1, wires.shape[1] + 1))
        for x, y, sign in (
            (first[0], first[1], 1), (last[0], last[1], 1),
            (first[0], last[1], -1), (last[0], first[1], -1),
        ):  # fmt: skip
            np.add.at(corners, (x, y), sign * length)
        wires = corners.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
        wires = np.maximum(gaussian_filter(wires, BLUR), LEAST_WIRES)
        x, y = at[:, : len(self._units)].astype(np.int64)
        around: NDArray[np.float64] = wires[x, y]
        return np.asarray(around / around.mean(), float)


def _netlist(
    cells: Mapping[str, Cell], groups: Sequence[Sequence[str]], tiles: LogicTiles
) -> Mapping[str, object]:
    """Return a netlist of which each cell is a group of others, with its nets."""
    grouped = {
        f"group{n}": {
            "type": "group",
            "connections": {"wires": list(dict.fromkeys(
                bits[0] for name in names for port, bits in cells[name]["connections"].items()
                if bits and tiles.is_wire(port)
            ))},
        }
        for n, names in enumerate(groups)
    }  # fmt: skip
    return {"modules": {"groups": {"cells": grouped}}}
