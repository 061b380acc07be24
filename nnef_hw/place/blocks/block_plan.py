"""Places for DSP blocks and block RAMs, before anything else of a netlist is placed.

Nextpnr's placers give each of them a free place that they find by chance, in no order
(``legalise_placement_strict`` in common/place/placer_heap.cc and placer_static.cc), and place the
logic after them. Here all cells are spread over the chip at once, the blocks take the nearest
places of their kind, and change them by turns with the logic that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linear_sum_assignment

from nnef_hw.place.blocks.spreading import Charges, Spreader, crowd
from nnef_hw.place.blocks.wires import Cells, Points, Wires
from nnef_hw.place.netlist.bels import place_of

__all__ = ["Sites", "plan_blocks"]

PINS = 6
"""Of a LUT with its flip-flop, nearly: areas of logic are counted in pins."""
FULLEST = 0.9
"""Share of the LUTs in one place that may be used."""
LOGIC_BIN, BLOCK_BIN = 2.0, 8.0
"""Tiles along an edge of the bins that logic and blocks are counted in."""
TURNS = 3
"""Times that the logic follows the blocks, and then these change places."""
ROUNDS = 2
"""Times that each type does in a turn, as the other one has moved."""
SEED = 1


@dataclass(frozen=True, slots=True)
class Sites:
    """Blocks of a chip.

    Parameters
    ----------
    luts
        Number of its LUTs.
    blocks
        nextpnr's names of all places for blocks, by their type.
    """

    luts: int
    blocks: Mapping[str, Sequence[str]]


@dataclass(slots=True)
class _Blocks:
    """The blocks of one type.

    Parameters
    ----------
    cells
        Their indices.
    names, places
        nextpnr's names of all places, and where they are [axis, place].

    Attributes
    ----------
    taken
        Which of them each block has.
    """

    cells: Cells
    names: Sequence[str]
    places: Points
    taken: Cells = field(init=False)

    def charges(self, size: Sequence[float]) -> Charges:
        room = len(self.names) / len(self.cells)
        return Charges(self.cells, np.ones(len(self.cells)), size, BLOCK_BIN, room)

    def take_nearest(self, at: Points) -> None:
        """Move each block to a place, all together as little as can be."""
        ways = at[:, self.cells, None] - self.places[:, None]
        self._take(linear_sum_assignment((ways**2).sum(axis=0))[1], at)

    def take_best(self, wires: Wires, at: Points) -> None:
        """Move each block where the wires are shortest if nothing else moves."""
        self._take(wires.assign(self.cells, self.places, at), at)

    def _take(self, taken: Cells, at: Points) -> None:
        self.taken = taken
        at[:, self.cells] = self.places[:, taken]


def plan_blocks(netlist: Mapping[str, object], sites: Sites) -> dict[str, str]:
    """Return places for the blocks of a mapped netlist: nextpnr's names by those of the cells.

    Equal netlists have equal plans on equal processors: they depend on how these round.

    Parameters
    ----------
    netlist
        As yosys writes it in JSON, with the design flat in its top module.
    sites
        What is to be had. Of a type of which the design has more, none is given a place.
    """
    wires = Wires(netlist)
    blocks = [
        _Blocks(cells, names, np.array([place_of(name) for name in names], float).T)
        for kind, names in sites.blocks.items()
        if 0 < len(cells := wires.cells(kind)) <= len(names)
    ]
    if not blocks:
        return {}
    held = np.zeros(len(wires.names), bool)
    for kind in blocks:
        held[kind.cells] = True
    places = np.concatenate([kind.places for kind in blocks], axis=1)
    # On either side the chip ends as far behind the last block.
    size = (places.min(axis=1) + places.max(axis=1)).tolist()
    charges = [kind.charges(size) for kind in blocks]
    logic = np.flatnonzero(~held & (wires.pins > 0))
    if pins := wires.pins[logic].sum():
        room = FULLEST * PINS * sites.luts / pins
        area = wires.pins[logic].astype(float)
        charges.append(Charges(logic, area, size, LOGIC_BIN, room))
    spreader = Spreader(wires, charges, size)
    at = spreader.spread(crowd(size, len(held), SEED), np.zeros(len(held), bool))
    for kind in blocks:
        kind.take_nearest(at)
    for _ in range(TURNS):
        at = spreader.spread(at, held)
        for kind in ROUNDS * blocks:
            kind.take_best(wires, at)
    return {
        wires.names[cell]: kind.names[place]
        for kind in blocks
        for cell, place in zip(kind.cells.tolist(), kind.taken.tolist(), strict=True)
    }
