"""Slack of a placed netlist, by nextpnr's own prediction of its wires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nnef_hw.place.blocks.wires import Points
from nnef_hw.place.cells.tiles import Cell, LogicTiles
from nnef_hw.place.netlist.mapped import drivers_of

__all__ = ["Paths"]

_Node = tuple[str, str]
MOST_LEVELS = 1000
"""More cells than a path between registers has."""


class Paths:
    """All paths of a packed netlist between registers.

    Parameters
    ----------
    cells
        Those of the netlist, by name.
    tiles
        What the family knows of their delays.

    Attributes
    ----------
    names
        Names of the cells: in this order they have their places.
    bits
        The net that each arc goes along [arc].
    ends
        Cells at both ends of each arc [end, arc].
    """

    def __init__(self, cells: Mapping[str, Cell], tiles: LogicTiles) -> None:
        self._tiles = tiles
        self.names = list(cells)
        index = {name: n for n, name in enumerate(self.names)}
        drivers = drivers_of(cells)
        first: dict[_Node, float] = {}
        arcs: list[tuple[_Node, _Node, float, int, bool]] = []
        for name, cell in cells.items():
            for port, way in cell["port_directions"].items():
                start = tiles.clock_to_output(cell, port) if way == "output" else None
                if start is not None:
                    first[name, port] = start
            for path in tiles.paths(cell):
                bit = cell["connections"][path.source][0]
                if bit in drivers:
                    source = drivers[bit]
                    target = (name, path.target or f"{path.source} at its end")
                    is_direct = tiles.is_direct(source[1], path.source)
                    arcs.append((source, target, path.delay, bit, is_direct))
        arcs = list(_timed(arcs, first))
        nodes = dict.fromkeys(node for source, target, *_ in arcs for node in (source, target))
        number = {node: n for n, node in enumerate(nodes)}
        self._nodes = len(nodes)
        self._first = np.array([first.get(node, 0) for node in nodes], float)
        pairs = [(number[source], number[target]) for source, target, *_ in arcs]
        self._from, self._to = np.array(pairs, np.int64).reshape(-1, 2).T
        self.ends = np.array(
            [(index[source[0]], index[target[0]]) for source, target, *_ in arcs], np.int64
        ).reshape(-1, 2).T  # fmt: skip
        self._delays = np.array([arc[2] for arc in arcs], float)
        self.bits = [arc[3] for arc in arcs]
        self._wired = np.array([not arc[4] for arc in arcs], bool)
        self._groups = _by_level(self._from, self._to, self._nodes)

    def longest(self, at: Points) -> NDArray[np.float64]:
        """Return the ns of the longest path through each arc [arc], with cells at some places."""
        dx, dy = np.abs(at[:, self.ends[0]] - at[:, self.ends[1]])
        delays = self._delays + self._wired * self._tiles.wire_delay(dx, dy)
        before, behind = self._first.copy(), np.zeros(self._nodes)
        for group in self._groups:
            arrivals = before[self._from[group]] + delays[group]
            np.maximum.at(before, self._to[group], arrivals)
        for group in reversed(self._groups):
            remainders = behind[self._to[group]] + delays[group]
            np.maximum.at(behind, self._from[group], remainders)
        longest: NDArray[np.float64] = before[self._from] + delays + behind[self._to]
        return longest


def _timed(
    arcs: list[tuple[_Node, _Node, float, int, bool]], first: Mapping[_Node, float]
) -> Iterator[tuple[_Node, _Node, float, int, bool]]:
    """Yield the arcs that a register is before: what only constants drive is never late."""
    reached = set(first)
    waiting: dict[_Node, list[_Node]] = {}
    for source, target, *_ in arcs:
        waiting.setdefault(source, []).append(target)
    ahead = list(first)
    while ahead:
        for target in waiting.get(ahead.pop(), ()):
            if target not in reached:
                reached.add(target)
                ahead.append(target)
    return (arc for arc in arcs if arc[0] in reached)


def _by_level(
    sources: NDArray[np.int64], targets: NDArray[np.int64], nodes: int
) -> list[NDArray[np.int64]]:
    """Return the arcs in groups, each of which begins where those before it end.

    Arcs in a loop without a register, which nothing can be said of, are in the last of them.
    """
    level = np.zeros(nodes, np.int64)
    for _ in range(MOST_LEVELS):
        deeper = level.copy()
        np.maximum.at(deeper, targets, level[sources] + 1)
        if (deeper == level).all():
            break
        level = deeper
    if not len(targets):
        return []
    order = np.argsort(level[targets], kind="stable")
    bounds = np.flatnonzero(np.diff(level[targets][order], prepend=-1))
    return [order[low:high] for low, high in pairwise([*bounds.tolist(), len(order)])]
