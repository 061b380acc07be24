"""Which slots of a chip's logic tiles are taken, and where units of cells may go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from nnef_hw.place.cells.tiles import LogicTiles, Unit

__all__ = ["Spot", "TileGrid"]

SLICE = 2
"""Slots of a slice."""
_Held: TypeAlias = dict[int, list[Hashable]]


@dataclass(frozen=True, slots=True)
class Spot:
    """Place of a unit's begin: a row of tiles by its number, and a slot within that."""

    row: int
    slot: int


class TileGrid:
    """Logic tiles in rows, all of them as long as the longest.

    Parameters
    ----------
    tiles
        What the family knows of them.
    places
        Columns and rows of those that there are.

    Attributes
    ----------
    slots
        Slots of a tile.
    columns, rows
        x and y of the tiles, by their number.
    """

    def __init__(self, tiles: LogicTiles, places: Iterable[tuple[int, int]]) -> None:
        there = set(places)
        self.slots = tiles.slots
        self._lut, self._flip_flop = tiles.lut, tiles.flip_flop
        low, high = min(x for x, _ in there), max(x for x, _ in there)
        self.columns = range(low, high + 1)
        self.rows: Sequence[int] = sorted({y for _, y in there})
        slices = self.slots // SLICE
        whole = (1 << slices) - 1
        # Of each row, a bit per slice of which nothing is taken, and a bit where tiles begin.
        self._free = [
            sum(whole << slices * n for n, x in enumerate(self.columns) if (x, y) in there)
            for y in self.rows
        ]
        self._there = list(self._free)
        self._begins = sum(1 << slices * n for n in range(len(self.columns)))
        count = len(self.columns) * self.slots
        self._luts = [bytearray(count) for _ in self.rows]
        self._flip_flops = [bytearray(count) for _ in self.rows]
        self._joined = [bytearray(count) for _ in self.rows]
        # What flip-flops of a tile share, those of a slice, and both with a RAM: with how many.
        self._shared: list[_Held] = [defaultdict(list) for _ in self.rows]
        self._alike: list[_Held] = [defaultdict(list) for _ in self.rows]
        self._inverted: list[_Held] = [defaultdict(list) for _ in self.rows]

    def place(self, unit: Unit, spot: Spot) -> tuple[float, float]:
        """Return x and y of the middle of a unit, in tiles."""
        middle = (spot.slot + unit.slots / 2) / self.slots
        return self.columns[0] + middle - 0.5, self.rows[spot.row]

    def put(self, unit: Unit, spot: Spot) -> None:
        """Take the slots of a unit."""
        self._mark(unit, spot, 1)
        for held, place, value in self._claims(unit, spot.row, spot.slot):
            held[place].append(value)

    def take(self, unit: Unit, spot: Spot) -> None:
        """Give the slots of a unit back."""
        self._mark(unit, spot, 0)
        for held, place, _ in self._claims(unit, spot.row, spot.slot):
            held[place].pop()

    def fit(self, unit: Unit, row: int, column: int) -> Spot | None:
        """Return the first slot of a tile with which a unit may begin; None if there is none."""
        begin = column * self.slots
        if unit.slots > 1:
            per_tile = self.slots // SLICE
            free = self._runs(unit, row) >> column * per_tile
            for n in range(1 if unit.is_aligned else per_tile):
                slot = begin + n * SLICE
                if free >> n & 1 and self._agree(unit, row, slot):
                    return Spot(row, slot)
            return None
        if not self._there[row] >> column * (self.slots // SLICE) & 1:
            return None
        has_lut = any(member.part == self._lut for member in unit.members)
        luts, flip_flops, joined = self._luts[row], self._flip_flops[row], self._joined[row]
        for slot in range(begin, begin + self.slots):
            # Slots of lone flip-flops stay theirs, though a LUT could be added.
            if flip_flops[slot] or (has_lut and (luts[slot] or joined[slot])):
                continue
            if self._agree(unit, row, slot):
                return Spot(row, slot)
        return None

    def _runs(self, unit: Unit, row: int) -> int:
        """Return a bit for each slice that as many free ones follow as a unit takes."""
        free, count = self._free[row], 1
        while count < -(-unit.slots // SLICE):
            step = min(count, -(-unit.slots // SLICE) - count)
            free &= free >> step
            count += step
        return free

    def _agree(self, unit: Unit, row: int, slot: int) -> bool:
        """Whether flip-flops of a unit agree in shared signals with each other and the row."""
        own: dict[tuple[int, int], Hashable] = {}
        for held, place, value in self._claims(unit, row, slot):
            there = held.get(place)
            if own.setdefault((id(held), place), there[0] if there else value) != value:
                return False
        return True

    def _claims(self, unit: Unit, row: int, begin: int) -> Iterator[tuple[_Held, int, Hashable]]:
        """Yield the signals that a unit at a slot shares with others, and where each is kept."""
        shared, alike, inverted = self._shared[row], self._alike[row], self._inverted[row]
        for offset, control in unit.controls:
            slot = begin + offset
            tile = slot // self.slots
            if control.tile is not None:
                yield shared, tile, control.tile
            if control.slice is not None:
                yield alike, slot // SLICE, control.slice
            yield inverted, tile, control.inverted

    def _mark(self, unit: Unit, spot: Spot, value: int) -> None:
        luts, flip_flops = self._luts[spot.row], self._flip_flops[spot.row]
        for member in unit.members:
            # The cell that writes a RAM is in slots that two LUTs of it block.
            if member.part == self._lut:
                luts[spot.slot + member.slot] = value
            elif member.part == self._flip_flop:
                flip_flops[spot.slot + member.slot] = value
        first, last = spot.slot // SLICE, (spot.slot + unit.slots - 1) // SLICE
        for pair in range(first, last + 1):
            slots = slice(SLICE * pair, SLICE * pair + SLICE)
            if unit.slots > 1:
                self._joined[spot.row][slots] = bytes([value]) * SLICE
            if any(luts[slots]) or any(flip_flops[slots]):
                self._free[spot.row] &= ~(1 << pair)
            else:
                self._free[spot.row] |= 1 << pair
