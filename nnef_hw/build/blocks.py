"""DSP blocks and block RAMs, exchanged among their places for shorter wires.

Nextpnr's placers give each of them a free place that they find by chance, in no order
(``legalise_placement_strict`` in common/place/placer_static.cc and placer_heap.cc): a ResNet-8 with
156 DSP blocks and 194 block RAMs on an ECP5-85F had wires of 200,819 units before that and 643,825
behind it by the static placer, of which the logic, which is placed then, made 555,000. Who goes
where is an assignment problem: the wires of a block are the longer, the farther its place is from
the rectangles that the rest of its nets spans.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["Exchange", "exchange_blocks"]

WIDE = 1000
"""Pins of a net that reaches everywhere, wherever a block is."""
ROUNDS = 4
"""Most times that each kind is exchanged: most of it is done after the first."""
_PLACE = re.compile(r"X(\d+)/Y(\d+)/")
_NAME = re.compile(r'("(?:NEXTPNR_)?BEL": ")([^"]+)"')

_Point = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Where blocks go.

    Parameters
    ----------
    places
        nextpnr's names of the places, by cell; all blocks are in it.
    moves
        The new place of who was in a place.
    before, after
        Half perimeters of all nets, in tiles.
    """

    places: Mapping[str, str]
    moves: Mapping[str, str]
    before: int
    after: int

    @property
    def saved(self) -> float:
        """The share of the wires that it saves."""
        return (self.before - self.after) / max(1, self.before)

    def moved(self, placed: str) -> str:
        """Return the text of the placed netlist with the blocks in their new places."""
        return _NAME.sub(lambda name: f'{name[1]}{self.moves.get(name[2], name[2])}"', placed)

    def fixed(self, mapped: str) -> str:
        """Return the text of the netlist that was placed, with the places as constraints."""
        netlist = json.loads(mapped)
        for module in netlist["modules"].values():
            for name, cell in module["cells"].items():
                if name in self.places:
                    cell["attributes"]["BEL"] = self.places[name]
        return json.dumps(netlist)


def exchange_blocks(netlist: Mapping[str, Any], kinds: Collection[str]) -> Exchange:
    """Exchange blocks of a kind among the places that they have.

    Parameters
    ----------
    netlist
        A placed design, as nextpnr writes it in JSON.
    kinds
        Types of cells.
    """
    wires = _Wires(netlist, kinds)
    before = shortest = wires.length
    begin = places = dict(wires.places)
    for _ in range(ROUNDS):
        for kind in kinds:
            wires.assign(kind)
        # blocks of one net may all have moved towards where the others were
        if (length := wires.length) >= shortest:
            break
        shortest, places = length, dict(wires.places)
    moves = {begin[cell]: place for cell, place in places.items()}
    return Exchange(places, moves, before, shortest)


class _Wires:
    """The nets of a placed design, and where their pins are."""

    def __init__(self, netlist: Mapping[str, Any], kinds: Collection[str]) -> None:
        self.points: dict[str, _Point] = {}
        self.places: dict[str, str] = {}
        self.cells: dict[str, list[str]] = {kind: [] for kind in kinds}
        pins: dict[int, dict[str, None]] = defaultdict(dict)
        for module in netlist["modules"].values():
            for name, cell in module["cells"].items():
                place = cell["attributes"].get("NEXTPNR_BEL", "")
                if not (match := _PLACE.match(place)):
                    continue
                self.points[name] = int(match[1]), int(match[2])
                if cell["type"] in self.cells:
                    self.cells[cell["type"]].append(name)
                    self.places[name] = place
                for bits in cell["connections"].values():
                    for bit in bits:
                        if isinstance(bit, int):
                            pins[bit][name] = None
        self.nets = [list(cells) for cells in pins.values() if 1 < len(cells) <= WIDE]
        self.nets_of: dict[str, list[list[str]]] = defaultdict(list)
        for net in self.nets:
            for name in net:
                if name in self.places:
                    self.nets_of[name].append(net)

    @property
    def length(self) -> int:
        """Half perimeters of all nets."""
        return sum(sum(hi - lo for lo, hi in self._spans(net)) for net in self.nets)

    def assign(self, kind: str) -> None:
        """Exchange the blocks of one kind, as if the others stayed where they are."""
        cells = self.cells[kind]
        places = [self.places[name] for name in cells]
        points = [self.points[name] for name in cells]
        costs = np.array([self._costs(name, np.array(points)) for name in cells])
        for cell, place in zip(*linear_sum_assignment(costs), strict=True) if cells else ():
            self.places[cells[cell]] = places[place]
            self.points[cells[cell]] = points[place]

    def _costs(self, name: str, points: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return by how much a block's nets grow with it at each of some points [point, axis]."""
        costs = np.zeros(len(points), np.int64)
        for net in self.nets_of[name]:
            for axis, (lo, hi) in enumerate(self._spans([other for other in net if other != name])):
                at = points[:, axis]
                costs += np.maximum(lo - at, 0) + np.maximum(at - hi, 0)
        return costs

    def _spans(self, net: list[str]) -> list[tuple[int, int]]:
        axes = zip(*(self.points[name] for name in net), strict=True)
        return [(min(axis), max(axis)) for axis in axes]
