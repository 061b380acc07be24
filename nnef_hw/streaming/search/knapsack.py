"""Whether foldings fit a device together: one option per layer, and no resource used up.

What is said here is proven: by a bound, by a choice that fits, or by a table of the least LUTs for
every number of DSP blocks and block RAMs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["BRAM", "DSP", "Table", "cheapest", "choose", "least", "undominated"]

LUT, DSP, BRAM, SPRAM = range(4)
ITERATIONS = 60
RATE = 0.5
"""Share of a resource's excess by which the logarithm of its price rises in an iteration."""
SURE = 1e-9
ENDLESS = np.int64(1) << 40

Table = NDArray[np.int64]
"""LUTs, DSP blocks, block RAMs and single-port RAMs of a layer's options, one per row."""


def undominated(points: Table) -> list[int]:
    """Return the rows that no other one is at most as large as in every column.

    In lexical order; of equal rows the first.
    """
    order = np.lexsort(points.T[::-1])
    points, kept = points[order], []
    while len(order):
        # None that follows can beat the first.
        kept.append(int(order[0]))
        undecided = (points < points[0]).any(axis=1)
        points, order = points[undecided], order[undecided]
    return kept


def choose(tables: Sequence[Table], limits: Table) -> list[int] | None:
    """Return an option for every layer so that their sums stay within the limits; None if none do.

    Parameters
    ----------
    tables
        A table for every layer; without options nothing fits.
    limits
        Limit of every resource.
    """
    small = _Reduced.of(tables, limits)
    if small is None:
        return None
    chosen, hopeless = small.price()
    if chosen is None and not hopeless:
        chosen = small.cheapest()
    return None if chosen is None else small.rows_of(chosen)


def cheapest(tables: Sequence[Table], limits: Table) -> list[int] | None:
    """Return those options that fit with the fewest LUTs; None if none fit."""
    small = _Reduced.of(tables, limits)
    chosen = None if small is None else small.cheapest()
    return None if small is None or chosen is None else small.rows_of(chosen)


def least(tables: Sequence[Table], limits: Table, resource: int) -> int | None:
    """Return the least of a resource that is needed while the others stay within their limits.

    None if these alone are too low.
    """
    relaxed = limits.copy()
    relaxed[resource] = ENDLESS
    if resource == LUT:
        small = _Reduced.of(tables, relaxed)
        if small is None:
            return None
        luts, _ = small.tabulate()
        return int(small.least[LUT] + luts[-1, -1, -1])
    chosen = choose(tables, relaxed)
    if chosen is None:
        return None
    low = sum(int(table[:, resource].min()) for table in tables)
    high = sum(int(table[n, resource]) for table, n in zip(tables, chosen, strict=True))
    while low < high:
        relaxed[resource] = middle = (low + high) // 2
        if choose(tables, relaxed) is None:
            low = middle + 1
        else:
            high = middle
    return high


class _Reduced:
    """Options less the least of every layer, and without useless ones.

    Attributes
    ----------
    rows
        Which options of every layer remain.
    tables
        What these take above the layer's least.
    least, slack
        Sum of what every layer takes at least of a resource, and the rest of the limit.
    """

    def __init__(self, tables: Sequence[Table], limits: Table) -> None:
        self.rows = [np.array(undominated(table), np.int64) for table in tables]
        kept = [table[rows] for table, rows in zip(tables, self.rows, strict=True)]
        bases = [table.min(axis=0) for table in kept]
        self.tables = [table - base for table, base in zip(kept, bases, strict=True)]
        self.least = np.sum(bases, axis=0)
        self.slack = limits - self.least

    @classmethod
    def of(cls, tables: Sequence[Table], limits: Table) -> _Reduced | None:
        """Drop options until each could be part of what fits; None if a layer has none left."""
        rows = [np.arange(len(table)) for table in tables]
        while True:
            if not all(map(len, rows)):
                return None
            small = cls([table[kept] for table, kept in zip(tables, rows, strict=True)], limits)
            if (small.slack < 0).any():
                return None
            small.rows = [kept[n] for kept, n in zip(rows, small.rows, strict=True)]
            fits = [(table <= small.slack).all(axis=1) for table in small.tables]
            if all(map(np.all, fits)):
                return small
            rows = [kept[n] for kept, n in zip(small.rows, fits, strict=True)]

    def price(self) -> tuple[list[int] | None, bool]:
        """Put prices on resources; return a choice that fits, or that none does.

        If the cheapest choice costs more than all there is, at whatever prices, nothing fits.
        Prices rise for what is used too much.
        """
        scales = np.where(self.slack > 0, self.slack, 1)
        count = max(map(len, self.tables))
        shares = np.full((len(self.tables), count, len(scales)), np.inf)
        for place, table in zip(shares, self.tables, strict=True):
            place[: len(table)] = table / scales
        scarce = self.slack > 0
        shares = shares[:, :, scarce]
        layers = np.arange(len(shares))
        prices = np.ones(shares.shape[2])
        for _ in range(ITERATIONS):
            prices /= max(prices.sum(), SURE)
            chosen = (shares @ prices).argmin(axis=1)
            used = shares[layers, chosen].sum(axis=0)
            if (used <= 1 + SURE).all():
                return chosen.tolist(), False
            if used @ prices > 1 + SURE:
                return None, True
            prices *= np.exp(RATE * np.clip(used - 1, -2, 2))
        return None, False

    def rows_of(self, chosen: Sequence[int]) -> list[int]:
        """Return the same choice as rows of the tables that were given."""
        return [int(rows[n]) for rows, n in zip(self.rows, chosen, strict=True)]

    def cheapest(self) -> list[int] | None:
        """Return the choice that fits with the fewest LUTs."""
        luts, choices = self.tabulate()
        if luts[-1, -1, -1] > self.slack[LUT]:
            return None
        remaining = np.array(luts.shape) - 1
        chosen = []
        for table, choice in zip(reversed(self.tables), reversed(choices), strict=True):
            chosen.append(int(choice[tuple(remaining)]))
            remaining -= table[chosen[-1], DSP:]
        return chosen[::-1]

    def tabulate(self) -> tuple[NDArray[np.int64], list[NDArray[np.int16]]]:
        """Return the least LUTs for every number of the other resources, and the last choices.

        Both have an axis for each of the others.
        """
        most = np.sum([table.max(axis=0) for table in self.tables], axis=0)
        shape = tuple(np.minimum(self.slack, most)[DSP:] + 1)
        luts = np.zeros(shape, np.int64)
        choices = []
        for table in self.tables:
            best = np.full(shape, ENDLESS)
            choice = np.zeros(shape, np.int16)
            for n, (lut, *others) in enumerate(table.tolist()):
                from_here = tuple(slice(amount, None) for amount in others)
                up_to = tuple(
                    slice(size - amount) for size, amount in zip(shape, others, strict=True)
                )
                sums = luts[up_to] + lut
                shorter = sums < best[from_here]
                np.copyto(best[from_here], sums, where=shorter)
                choice[from_here][shorter] = n
            luts = np.minimum(best, ENDLESS)
            choices.append(choice)
        return luts, choices
