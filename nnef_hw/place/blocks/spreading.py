"""Global placement: cells spread over a chip as charges, along the wires between them.

The objective is the length of all wires, made smooth, and the energy of the cells' charges, which
grows in weight until they overlap little (ePlace: Lu et al., ACM TODAES 20(2), 2015). Cells are
points anywhere, and whole kinds of them share a chip without seeing each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn

from nnef_hw.place.blocks.wires import Cells, Points, Wires

__all__ = ["Charges", "Spreader", "crowd"]

OVERLAP = 0.15
"""Share of each kind of cells that may lie where there are too many of them."""
LEAST_STEPS, MOST_STEPS = 30, 500
"""Some 200 are enough for a full chip."""
GROWTH = 1.05
"""What the weight of a kind's energy grows by with every step, as long as it overlaps."""
FIRST_WEIGHT = 0.1
"""Share of the wires' slopes that the energy begins with."""
AGAIN = 0.3
"""What remains of that weight when cells are spread once more."""
FIRST_STEP = 0.3
"""Tiles that the first step moves a cell at most."""
MOST_LONGER = 20.0
"""Times that a step may be longer than the one before."""
FINEST = 0.8
"""Smoothing in tiles where a tenth of the cells overlaps; a hundred times as much at first."""


CROWD = 0.04
"""How far from the middle cells begin, as a share of the way to the edge."""


def crowd(size: Sequence[float], count: int, seed: int) -> Points:
    """Return places around the middle of a chip, so near to it by chance."""
    middle = np.array(size)[:, None] / 2
    return np.random.default_rng(seed).normal(middle, CROWD * middle, (2, count))


class Charges:
    """One kind of cells as charges in a grid of bins.

    Parameters
    ----------
    cells
        Indices of the cells.
    areas
        What each of them takes, in any unit.
    size
        Width and height of the chip in tiles.
    bin_tiles
        Edge of a bin in tiles, nearly.
    room
        How many times these cells would find room on the chip.
    """

    def __init__(
        self, cells: Cells, areas: NDArray[np.float64], size: Sequence[float],
        bin_tiles: float, room: float,
    ) -> None:  # fmt: skip
        self.cells = cells
        self._areas = areas / areas.sum()
        self._bins = [max(2, round(edge / bin_tiles)) for edge in size]
        self._edges = [edge / bins for edge, bins in zip(size, self._bins, strict=True)]
        self._most = room / np.prod(self._bins)
        x, y = (np.pi * np.arange(n) / edge for n, edge in zip(self._bins, size, strict=True))
        squares = x[:, None] ** 2 + y**2
        squares[0, 0] = np.inf  # the sum of all charges is nobody's slope
        self._squares = squares

    def slope(self, at: Points) -> tuple[float, Points]:
        """Return the share of the area that overlaps, and the energy's slope [axis, own cell]."""
        corners = list(self._corners(at[:, self.cells]))
        flat = sum(
            np.bincount(place, weight * self._areas, np.prod(self._bins))
            for place, weight in corners
        )
        density = np.reshape(flat, self._bins)
        waves = dctn(density * density.size, norm="ortho") / self._squares
        potential = idctn(waves, norm="ortho")
        slopes = []
        for axis, edge in enumerate(self._edges):
            field = np.gradient(potential, edge, axis=axis).ravel()
            slopes.append(self._areas * sum(weight * field[place] for place, weight in corners))
        return float(np.maximum(density - self._most, 0).sum()), np.array(slopes)

    def _corners(self, at: Points) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Yield the four bins around each cell, flat, and how much of the cell each has."""
        low, share = [], []
        for axis, edge, bins in zip(at, self._edges, self._bins, strict=True):
            place = np.clip(axis / edge - 0.5, 0, np.nextafter(bins - 1, 0))
            low.append(place.astype(np.int64))
            share.append(place - low[-1])
        for x in (0, 1):
            for y in (0, 1):
                place = (low[0] + x) * self._bins[1] + low[1] + y
                yield place, (share[0] if x else 1 - share[0]) * (share[1] if y else 1 - share[1])


class Spreader:
    """Spreads cells over a chip.

    Parameters
    ----------
    wires
        Their nets.
    charges
        Kinds of cells.
    size
        Width and height of the chip in tiles.
    """

    def __init__(self, wires: Wires, charges: Sequence[Charges], size: Sequence[float]) -> None:
        self._wires, self._charges = wires, charges
        self._size = np.array(size)[:, None]
        self._weights: dict[Charges, float] = {}
        self._overlap = 1.0

    def spread(self, at: Points, held: NDArray[np.bool_]) -> Points:
        """Return where cells end that begin in some places; those held stay [cell].

        By Nesterov's method, with steps after the curvature between the last two points (section
        4.3 of ePlace). Charges weigh less when they are spread once more.
        """
        self._weights = {kind: AGAIN * weight for kind, weight in self._weights.items()}
        ahead = last = at
        momentum = 1.0
        slope = self._slope(ahead, held)
        if not slope.any():
            return at
        step = FIRST_STEP / np.abs(slope).max()
        for number in range(MOST_STEPS):
            found: Points = np.clip(ahead - step * slope, 0, self._size)
            following = (1 + np.sqrt(4 * momentum**2 + 1)) / 2
            further = found + (momentum - 1) / following * (found - last)
            further = np.clip(further, 0, self._size)
            before, slope = slope, self._slope(further, held)
            bent = np.linalg.norm(slope - before)
            if not bent or (number >= LEAST_STEPS and self._overlap <= OVERLAP):
                return found
            step = min(MOST_LONGER * step, float(np.linalg.norm(further - ahead) / bent))
            ahead, last, momentum = further, found, following
        return last

    def _slope(self, at: Points, held: NDArray[np.bool_]) -> Points:
        """Return the objective's slope, by the nets of each cell; let what overlaps weigh more."""
        smoothing = FINEST * 10 ** (2 * (self._overlap - 0.1) / 0.9)
        slope = self._wires.slope(at, smoothing)
        total = slope.copy()
        self._overlap = 0.0
        for kind in self._charges:
            if held[kind.cells].all():
                continue
            overlap, energy = kind.slope(at)
            pull, push = np.abs(slope[:, kind.cells]).sum(), np.abs(energy).sum()
            first = float(FIRST_WEIGHT * pull / push) if push else 0.0
            weight = self._weights.setdefault(kind, first)
            total[:, kind.cells] += weight * energy
            self._weights[kind] = weight * (GROWTH if overlap > OVERLAP else 1)
            self._overlap = max(self._overlap, overlap)
        total[:, held] = 0
        return total / np.maximum(1, self._wires.pins)
