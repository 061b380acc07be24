"""Search for foldings: one option per layer, so that all fit and the slowest is fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import Budget
from nnef_hw.streaming.foldings.mixing import fill_dsp
from nnef_hw.streaming.search.knapsack import Table, cheapest, choose

__all__ = ["Search", "faster_limit", "fullness"]

SLACK = 9 / 8
"""Most by which an interval may exceed the least one."""
ROOMY = 5 / 4
"""Most by which it may exceed that for a design that does not fill the device to the brim."""
MOST_RIVALS = 24
MAC_COST = 0.02
"""What a multiply-accumulate per cycle costs: idle multipliers are not worth their LUTs."""
LUT_WEIGHT = 10
"""What a square of the LUTs' share costs, where one of the block RAMs' costs 1: LUTs cost clock."""
BRIM = 0.85
"""Share of the block RAMs beyond which more of them are dear where wires are long.

The last ones that a placer finds free are far from what uses them.
"""
BRIM_WEIGHT = 30
"""What a square of the share beyond that costs besides."""
TINY = 1e-9
# Weights of (LUT, DSP, block RAM) shares when options are compared; each finds other designs.
PREFERENCES: tuple[tuple[float, float, float], ...] = tuple(
    (lut, dsp, bram)
    for lut, dsp, bram in product((0.02, 0.3, 1.0), repeat=3)
    if max(lut, dsp, bram) == 1.0
)
LUT, DSP, BRAM, SPRAM, MACS = range(5)


def _amounts(block: Block) -> tuple[int, int, int, int, int]:
    used = block.resources
    return used.lut, used.dsp, used.bram, used.spram, block.macs_per_cycle


class Search:
    """Chooses among the options of every layer.

    Parameters
    ----------
    options
        Options per layer, at least one.
    budget, device
        What the layers may use, and of which device.
    steady_words
        Whether a line buffer's words come no faster than a frame per interval. If not, they are
        taken to come as fast as they can be stored, which shallow line buffers need.
    """

    def __init__(
        self,
        options: Sequence[Sequence[Block]],
        budget: Budget,
        device: Device,
        *,
        steady_words: bool,
    ) -> None:
        self.options, self.budget, self.device = options, budget, device
        self.steady_words = steady_words
        self.limits = np.array([budget.lut, budget.dsp, budget.bram, budget.spram])
        self.sizes = np.maximum([device.lut, device.dsp, device.bram], 1)
        self.amounts = [np.array([_amounts(b) for b in layer], float) for layer in options]
        self.used = [table[:, :MACS].astype(np.int64) for table in self.amounts]
        self.cycles = [np.array([b.cycles for b in layer]) for layer in options]
        self.missing = [np.array([b.missing_words for b in layer]) for layer in options]
        self.words = [np.array([b.words for b in layer]) for layer in options]
        # Of every layer and option; a layer with fewer options has some that are never allowed.
        loads = [self._loads(table) for table in self.amounts]
        self.loads = [_padded([layer[n] for layer in loads]) for n in range(len(PREFERENCES))]
        self.padded = _padded(self.amounts)
        self.found: dict[int, list[Block] | None] = {}

    @property
    def floor(self) -> int:
        """Cycles that the slowest layer takes with the fastest of its options."""
        return int(max(cycles.min() for cycles in self.cycles))

    @property
    def feasible(self) -> bool:
        """Whether anything fits, however slow; if not, that is proven."""
        return choose(self.used, self.limits) is not None

    def with_less(self, used: Resources) -> Search:
        """Return the same search with a smaller budget."""
        return Search(
            self.options, self.budget.less(used), self.device, steady_words=self.steady_words
        )

    def best(self) -> list[Block] | None:
        """Return blocks at about the least feasible interval, None if nothing fits.

        Idle multipliers cost LUTs, and LUTs cost clock: of the intervals up to :data:`SLACK`
        longer, the one that makes the best use of its multipliers is taken. It may be the least
        that fits without trouble, if it is no longer than :data:`ROOMY`.
        """
        interval = self.least()
        if interval is None:
            return None
        near = [cost for cost in self._intervals() if interval <= cost <= interval * SLACK]
        tried = [interval, *near[:: -(-len(near) // MOST_RIVALS)]]
        roomy = self._first(interval, self._is_roomy)
        if roomy is not None and roomy <= interval * ROOMY:
            tried.append(roomy)
        rivals = [blocks for blocks in map(self.within, tried) if blocks is not None]
        return min(rivals, key=_cycles_of_macs)

    def least(self) -> int | None:
        """Return the least feasible interval; None if nothing fits."""
        return self._first(0, lambda interval: self._solve(interval, choose) is not None)

    def _first(self, least: int, fits: Callable[[int], bool]) -> int | None:
        """Return the first interval, of those that are not below the least, at which a design fits.

        None if none does.
        """
        candidates = [interval for interval in self._intervals() if interval >= least]
        low, high = 0, len(candidates) - 1
        if not fits(candidates[high] * 2):
            return None
        while low < high:
            middle = (low + high) // 2
            if fits(candidates[middle]):
                high = middle
            else:
                low = middle + 1
        return candidates[high]

    def _intervals(self) -> list[int]:
        """List the intervals to try: the cycles of some option, and no less than the floor."""
        costs = np.unique(np.concatenate(self.cycles))
        intervals: list[int] = costs[costs >= self.floor].tolist()
        return intervals

    def within(self, interval: int) -> list[Block] | None:
        """Return the blocks that take about the least of the device at an interval.

        None if none fit: that is proven.
        """
        if interval not in self.found:
            chosen = self._within(interval)
            self.found[interval] = None if chosen is None else self._filled(chosen)
        return self.found[interval]

    def _filled(self, chosen: NDArray[np.int64]) -> list[Block]:
        """Return the chosen blocks, of which some multipliers take DSP blocks that are left."""
        blocks = [layer[n] for layer, n in zip(self.options, chosen, strict=True)]
        return fill_dsp(blocks, self.budget.dsp)

    def _within(self, interval: int) -> NDArray[np.int64] | None:
        allowed = [self._allowed(n, interval) for n in range(len(self.options))]
        starts = self._starts(allowed)
        chosen = self._solve(interval, cheapest)
        if chosen is None:
            return None
        starts.append(chosen)
        refined = [self._refine(start, allowed) for start in starts]
        return min(refined, key=lambda found: found[1])[0]

    def _is_roomy(self, interval: int) -> bool:
        """Whether a design fits that only looks at one layer after the other."""
        return bool(self._starts([self._allowed(n, interval) for n in range(len(self.options))]))

    def _starts(self, allowed: Sequence[NDArray[np.bool_]]) -> list[NDArray[np.int64]]:
        """Return choices that fit, each the cheapest option of every layer for a preference."""
        if not all(rows.any() for rows in allowed):
            return []
        padded = _padded([rows[:, None] for rows in allowed])[:, :, 0] == 1
        starts: dict[tuple[int, ...], NDArray[np.int64]] = {}
        for loads in self.loads:
            chosen = self._relieve_dsp(self._greedy(padded, loads), padded, loads)
            if (self._used(chosen)[:MACS] <= self.limits).all():
                starts[tuple(chosen)] = chosen
        return list(starts.values())

    def _solve(
        self, interval: int, solve: Callable[[Sequence[Table], Table], list[int] | None]
    ) -> NDArray[np.int64] | None:
        """Return options that fit at an interval; None if there are none."""
        rows = [np.flatnonzero(self._allowed(n, interval)) for n in range(len(self.options))]
        tables = [table[kept] for table, kept in zip(self.used, rows, strict=True)]
        chosen = solve(tables, self.limits)
        if chosen is None:
            return None
        return np.array([kept[n] for kept, n in zip(rows, chosen, strict=True)])

    def _allowed(self, layer: int, interval: int) -> NDArray[np.bool_]:
        cycles = self.cycles[layer]
        if self.steady_words:
            waiting = self.missing[layer] * (interval / self.words[layer])
            cycles = cycles + np.maximum(0.0, waiting - self.missing[layer])
        return np.asarray(cycles <= interval)

    def _used(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = [table[n] for table, n in zip(self.amounts, chosen, strict=True)]
        return np.array(np.sum(rows, axis=0))

    def _loads(self, table: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return for every preference what an option takes, without and with its multipliers."""
        shares = table[:, :SPRAM] / self.sizes
        loads = [shares @ np.array(weights) for weights in PREFERENCES]
        macs = MAC_COST * table[:, MACS]
        return [np.stack([load, load + macs], axis=1) for load in loads]

    def _greedy(self, allowed: NDArray[np.bool_], loads: NDArray[np.float64]) -> NDArray[np.int64]:
        """Take the cheapest option of every layer."""
        return np.asarray(np.where(allowed, loads[:, :, 1], np.inf).argmin(axis=1))

    def _relieve_dsp(
        self,
        chosen: NDArray[np.int64],
        allowed: NDArray[np.bool_],
        loads: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Move layers to LUT multipliers, fewest LUTs first, until the DSP blocks suffice."""
        chosen, layers = chosen.copy(), np.arange(len(chosen))
        while self._used(chosen)[DSP] > self.limits[DSP]:
            now = self.padded[layers, chosen]
            fewer = allowed & (self.padded[:, :, DSP] < now[:, DSP, None])
            movable = fewer.any(axis=1)
            if not movable.any():
                break
            others = np.where(fewer, loads[:, :, 0], np.inf).argmin(axis=1)
            then = self.padded[layers, others]
            with np.errstate(divide="ignore", invalid="ignore"):
                prices = (then[:, LUT] - now[:, LUT]) / (now[:, DSP] - then[:, DSP])
            layer = np.where(movable, prices, np.inf).argmin()
            chosen[layer] = others[layer]
        return chosen

    def _refine(
        self, chosen: NDArray[np.int64], allowed: Sequence[NDArray[np.bool_]]
    ) -> tuple[NDArray[np.int64], float]:
        """Change one layer at a time as long as that makes the design cheaper; return its cost.

        Nearly full LUTs or block RAMs weigh most: they are what is hard to place.
        """
        chosen = chosen.copy()
        used, best = self._used(chosen), np.inf
        improved = True
        while improved:
            improved = False
            for layer, table in enumerate(self.amounts):
                totals = used - table[chosen[layer]] + table
                lut, _, bram = (totals[:, :SPRAM] / self.sizes).T
                costs = fullness(lut, bram, long_wires=self.device.long_wires)
                costs += MAC_COST * totals[:, MACS]
                fits = (totals[:, :MACS] <= self.limits).all(axis=1) & allowed[layer]
                costs[~fits] = np.inf
                n = int(costs.argmin())
                if costs[n] < best - TINY:
                    best, improved = float(costs[n]), True
                    chosen[layer], used = n, totals[n]
        return chosen, best


def fullness(
    lut: NDArray[np.float64], bram: NDArray[np.float64], *, long_wires: bool
) -> NDArray[np.float64]:
    """Return the cost of designs that take these shares of the LUTs and block RAMs of a device."""
    costs = LUT_WEIGHT * lut**2 + bram**2
    return costs + BRIM_WEIGHT * np.maximum(0, bram - BRIM) ** 2 if long_wires else costs


def faster_limit(
    limit: int, interval: int, wanted: int, least: int | None, *, halfway: bool
) -> int:
    """Return how many cycles layers may take after a design that takes more than wanted.

    In proportion, but not so few that nothing is tried.

    Parameters
    ----------
    limit, interval
        What they could take for that design, and what it takes with all waits.
    least
        The least at which they fit, if they do.
    halfway
        Whether to go no farther than halfway to the least: designs between are smaller.
    """
    aim = limit * wanted // interval
    if least is not None:
        aim = max(aim, (least + limit) // 2 if halfway else least)
    return min(limit - 1, aim)


def _padded(tables: Sequence[Array]) -> NDArray[np.float64]:
    """Stack tables of as many columns, with NaN where one has fewer rows."""
    padded = np.full((len(tables), max(map(len, tables)), tables[0].shape[1]), np.nan)
    for place, table in zip(padded, tables, strict=True):
        place[: len(table)] = table
    return padded


def _cycles_of_macs(blocks: Sequence[Block]) -> tuple[int, int]:
    """Return the work of a design in a frame's time: MACs, all multipliers busy; and cycles.

    A pair of products in one multiplier is no better than two multipliers.
    """
    interval = max(block.cycles for block in blocks)
    return interval * sum(block.macs_per_cycle for block in blocks), interval
