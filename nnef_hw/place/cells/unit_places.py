"""Slots for units of cells: near to where they are wanted, then where their wires are shorter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnroutedError
from nnef_hw.place.blocks.wires import Cells, Points, Wires
from nnef_hw.place.cells.tile_grid import Spot, TileGrid
from nnef_hw.place.cells.tiles import Unit

__all__ = ["UnitPlaces"]

AROUND = 16
"""Tiles in every direction from the best place where a unit looks for a better one."""
ATTEMPTS = 60
WORTH = 1.0
"""Tiles of wire that a move saves at least."""


class UnitPlaces:
    """Units in the slots of a grid.

    Parameters
    ----------
    units
        The first cells of ``wires``, in its order.
    grid
        Where they go; nothing of it is taken yet.
    wires
        The nets between them and the cells that have their places.
    """

    def __init__(self, units: Sequence[Unit], grid: TileGrid, wires: Wires) -> None:
        self._units, self._grid, self._wires = units, grid, wires
        self.spots: list[Spot] = []

    def settle(self, at: Points, order: Sequence[int]) -> None:
        """Give every unit the slots nearest to a place, one after the other, and move it there.

        Raises
        ------
        UnroutedError
            A unit finds none.
        """
        found: dict[int, Spot] = {}
        for n in order:
            unit = self._units[n]
            spot = self._nearest(unit, *at[:, n])
            if spot is None:
                raise UnroutedError(
                    f"no {unit.slots} LUTs in a row are left for {unit.members[0].name}",
                    remedy="take a smaller model, fewer multipliers or a bigger board",
                )
            self._grid.put(unit, spot)
            found[n] = spot
        self.spots = [found[n] for n in range(len(self._units))]
        for n, spot in found.items():
            at[:, n] = self._grid.place(self._units[n], spot)

    def improve(self, at: Points, order: Sequence[int]) -> int:
        """Move units, one after the other, where their nets are shorter; return how many moved."""
        rows = np.array(self._grid.rows, float)
        moved = 0
        for n in order:
            unit, old = self._units[n], self.spots[n]
            columns = np.array(self._grid.columns) + (unit.slots / 2 - 0.5) / self._slots
            across, along = self._costs(n, columns, rows, at)
            most = across[old.slot // self._slots] + along[old.row] - WORTH
            if across.min() + along.min() > most:
                continue
            self._grid.take(unit, old)
            spot = self._better(unit, across, along, most) or old
            self._grid.put(unit, spot)
            if spot != old:
                self.spots[n] = spot
                at[:, n] = self._grid.place(unit, spot)
                moved += 1
        return moved

    @property
    def _slots(self) -> int:
        return self._grid.slots

    def _nearest(self, unit: Unit, x: float, y: float) -> Spot | None:
        """Return the nearest slots that a unit finds."""
        begin = x - (unit.slots / 2 - 0.5) / self._slots - self._grid.columns[0]
        best: tuple[float, Spot] | None = None
        for row in np.argsort(np.abs(np.array(self._grid.rows) - y), kind="stable").tolist():
            away = abs(self._grid.rows[row] - y)
            if best and away >= best[0]:
                break
            for column in _outward(round(begin), len(self._grid.columns)):
                if best and away + abs(column - begin) - 1 >= best[0]:
                    break
                if spot := self._grid.fit(unit, row, column):
                    distance = away + abs(self._grid.place(unit, spot)[0] - x)
                    if best is None or distance < best[0]:
                        best = distance, spot
        return best[1] if best else None

    def _costs(
        self, n: int, columns: NDArray[np.float64], rows: NDArray[np.float64], at: Points
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the growth of a unit's nets with the unit in each column and in each row."""
        costs = np.zeros(len(columns)), np.zeros(len(rows))
        for net in self._wires.nets_of(n).tolist():
            there = at[:, self._wires.others(net, n)]
            low, high = there.min(axis=1), there.max(axis=1)
            for axis, places in enumerate((columns, rows)):
                growth = np.maximum(low[axis] - places, 0) + np.maximum(places - high[axis], 0)
                costs[axis][:] += self._wires.weights[net] * growth
        return costs

    def _better(
        self, unit: Unit, across: NDArray[np.float64], along: NDArray[np.float64], most: float
    ) -> Spot | None:
        """Return where the nets of a unit are shortest that is free, if they are short enough."""
        first_row, rows = _around(along)
        first_column, columns = _around(across)
        costs = (rows[:, None] + columns).ravel()
        for place in np.argsort(costs, kind="stable")[:ATTEMPTS].tolist():
            if costs[place] >= most:
                break
            row, column = divmod(place, len(columns))
            if spot := self._grid.fit(unit, first_row + row, first_column + column):
                return spot
        return None


def _around(costs: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]:
    """Return the part of some costs around the lowest one, and where it begins."""
    lowest: Cells = np.flatnonzero(costs == costs.min())
    middle = int(lowest[len(lowest) // 2])
    begin = max(0, middle - AROUND)
    return begin, costs[begin : middle + AROUND + 1]


def _outward(middle: int, count: int) -> Iterator[int]:
    """Yield all numbers below a count, those nearest to the middle first."""
    middle = min(max(middle, 0), count - 1)
    for away in range(count):
        for number in {middle - away, middle + away}:
            if 0 <= number < count:
                yield number
