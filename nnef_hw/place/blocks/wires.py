"""The wires of a netlist: which way they pull cells, and where they are shortest for blocks."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from nnef_hw.arithmetic.records import JsonView

__all__ = ["Cells", "Points", "Wires"]

Points: TypeAlias = NDArray[np.float64]
"""Places in tiles [axis, place]."""
Cells: TypeAlias = NDArray[np.int64]
"""Indices of cells."""

WIDE = 1000
"""Pins of a net that reaches everywhere, wherever a block is: it is left out."""


class Wires:
    """The nets between the cells of a design.

    Parameters
    ----------
    netlist
        As yosys writes it in JSON, with the design flat in its top module.

    Attributes
    ----------
    names, kinds
        Names and types of the cells.
    pins
        Nets of each cell [cell].
    nets
        The index of each net, by its bit.
    weights
        How much the length of each net counts [net].
    """

    def __init__(self, netlist: JsonView) -> None:
        self.names: list[str] = []
        kinds: list[str] = []
        # in the order of the netlist, as sets have none
        pins: dict[int, dict[int, None]] = defaultdict(dict)
        for module in netlist["modules"].values():
            for name, cell in module["cells"].items():
                for bits in cell["connections"].values():
                    for bit in bits:
                        if isinstance(bit, int):
                            pins[bit][len(kinds)] = None
                self.names.append(name)
                kinds.append(cell["type"])
        self.kinds = np.array(kinds, str)
        wired = {bit: list(cells) for bit, cells in pins.items() if 1 < len(cells) <= WIDE}
        nets = list(wired.values())
        self.nets = {bit: net for net, bit in enumerate(wired)}
        self.weights = np.ones(len(nets))
        # pins by their nets, and nets by their cells
        self._pins = np.array([cell for net in nets for cell in net], np.int64)
        self._sizes = np.array([len(net) for net in nets], np.int64)
        self._first = np.cumsum(self._sizes) - self._sizes
        self._net = np.repeat(np.arange(len(nets)), self._sizes)
        self.pins = np.bincount(self._pins, minlength=len(kinds))
        self._nets = self._net[np.argsort(self._pins, kind="stable")]
        self._begin = np.cumsum(self.pins) - self.pins

    def cells(self, kind: str) -> Cells:
        """Return the cells of a type."""
        return np.flatnonzero(self.kinds == kind)

    def slope(self, at: Points, smoothing: float) -> Points:
        """Return the slope of half the perimeters of all nets [axis, cell].

        Extrema are weighted averages (Hsu, Chang and Balabanov, DAC 2011): a pin that is
        ``smoothing`` tiles from the outermost one weighs 1/e of it.
        """
        return np.array([self._slope(axis[self._pins], smoothing) for axis in at])

    def assign(self, cells: Cells, places: Points, at: Points) -> Cells:
        """Return which place each of some cells takes, for the shortest wires together.

        As if no other cell moved, so that cells of one net may all go where the others were.
        """
        costs = np.array([self._costs(cell, places, at) for cell in cells])
        chosen: Cells = linear_sum_assignment(costs)[1]
        return chosen

    def _costs(self, cell: int, places: Points, at: Points) -> NDArray[np.float64]:
        """Return by how much a cell's nets grow with it in each of some places."""
        growth = np.zeros(places.shape[1])
        for net in self.nets_of(cell):
            there = at[:, self.others(net, cell)]
            low, high = there.min(axis=1)[:, None], there.max(axis=1)[:, None]
            growth += (np.maximum(low - places, 0) + np.maximum(places - high, 0)).sum(axis=0)
        return growth

    def _slope(self, pins: NDArray[np.float64], smoothing: float) -> NDArray[np.float64]:
        slope = np.zeros_like(pins)
        for sign in (1, -1):
            along = sign * pins
            outermost = np.maximum.reduceat(along, self._first)
            weights = np.exp((along - outermost[self._net]) / smoothing)
            sums = np.add.reduceat(weights, self._first)
            means = np.add.reduceat(weights * along, self._first) / sums
            bent = 1 + (along - means[self._net]) / smoothing
            slope += sign * bent * weights / sums[self._net]
        slope *= self.weights[self._net]
        return np.bincount(self._pins, slope, len(self.names)).astype(np.float64)

    def boxes(self, at: Points) -> tuple[Points, Points]:
        """Return the lowest and the highest places of each net's pins [axis, net]."""
        pins = at[:, self._pins]
        low = np.minimum.reduceat(pins, self._first, axis=1)
        return low, np.maximum.reduceat(pins, self._first, axis=1)

    def nets_of(self, cell: int) -> Cells:
        """Return the nets of a cell."""
        return self._nets[self._begin[cell] : self._begin[cell] + self.pins[cell]]

    def others(self, net: int, cell: int) -> Cells:
        """Return the cells of a net but for one."""
        pins = self._pins[self._first[net] : self._first[net] + self._sizes[net]]
        others: Cells = pins[pins != cell]
        return others
