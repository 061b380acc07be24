"""The order in which a tensor's elements stream, and what changes it.

A tensor [1, C, ...] streams with its channels innermost: row, column, channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir.graph import Node

__all__ = ["Reordering", "find_reordering"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reordering:
    """A stream of ``extents``, outermost first, whose axes are given in another ``order``."""

    extents: tuple[int, int, int]
    order: tuple[int, int, int]

    @property
    def is_trivial(self) -> bool:
        """Whether the stream stays as it is."""
        return self.order == (0, 1, 2)


def find_reordering(node: Node, before: Shape, after: Shape) -> Reordering | None:
    """Return what a ``reshape`` or ``transpose`` does to the stream of its input.

    Axes are those of the image that comes, or those that a flat tensor is divided into. None if it
    is more than a transposition of three of them.
    """
    reads = _reads(node, before, after)
    for extents in (_stream(_axes(before)), _axes(after)):
        positions = np.arange(reads.size).reshape(extents)
        for order in permutations(range(3)):
            if np.array_equal(positions.transpose(order).reshape(-1), reads):
                return Reordering(extents, (order[0], order[1], order[2]))
    return None


def _axes(shape: Shape) -> tuple[int, int, int]:
    """Channels, rows and columns; what a tensor has more of counts as columns."""
    channels, rows, *columns = (*shape[1:], 1, 1)
    return channels, rows, prod(columns)


def _stream(axes: tuple[int, int, int]) -> tuple[int, int, int]:
    channels, rows, columns = axes
    return rows, columns, channels


def _reads(node: Node, before: Shape, after: Shape) -> NDArray[np.int64]:
    """Return which element of its input's stream each of its result's is."""
    positions = np.arange(prod(before)).reshape(*before[:1], *before[2:], *before[1:2])
    tensor = np.moveaxis(positions, -1, 1) if len(before) > 1 else positions
    moved = tensor.transpose(node.attrs["axes"]) if node.op == "transpose" else tensor
    moved = moved.reshape(after)
    return (np.moveaxis(moved, 1, -1) if len(after) > 1 else moved).reshape(-1)
