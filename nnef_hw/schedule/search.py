"""Search for foldings: one option per layer, so that all fit and the slowest is fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nnef_hw.devices import Device, Resources
from nnef_hw.schedule.block import Block

__all__ = ["Budget", "Search", "total_resources", "useful_options"]

SLACK = 9 / 8
"""Most by which an interval may exceed the least one."""
MOST_RIVALS = 24
MULTIPLIER_COST = 0.02
LUT_WEIGHT = 3
# Found by placing MLPerf Tiny's networks on an ECP5-85F (docs/resources.md).
DSP_WEIGHT = 0.14
TINY = 1e-9
# Weights of (LUT, DSP, block RAM) shares when options are compared; each finds other designs.
PREFERENCES: tuple[tuple[float, float, float], ...] = tuple(
    (lut, dsp, bram)
    for lut, dsp, bram in product((0.02, 0.3, 1.0), repeat=3)
    if max(lut, dsp, bram) == 1.0
)
LUT, DSP, BRAM, SPRAM, MULTIPLIERS = range(5)


@dataclass(frozen=True, slots=True)
class Budget:
    """What the layers may use together."""

    lut: int
    dsp: int
    bram: int
    spram: int

    def holds(self, used: Resources) -> bool:
        """Whether that much may be used."""
        return (
            used.lut <= self.lut
            and used.dsp <= self.dsp
            and used.bram <= self.bram
            and used.spram <= self.spram
        )

    def less(self, used: Resources) -> Budget:
        """Return what is left."""
        return Budget(
            self.lut - used.lut,
            self.dsp - used.dsp,
            self.bram - used.bram,
            self.spram - used.spram,
        )


def total_resources(blocks: Sequence[Block]) -> Resources:
    """Return what blocks use together."""
    return sum((block.resources for block in blocks), Resources())


def useful_options(options: Sequence[Block]) -> list[Block]:
    """Drop options that another one beats in everything."""
    points = np.array([(b.cycles, b.missing_words, *_amounts(b)) for b in options])
    kept: list[int] = []
    for n in np.lexsort(points.T[::-1]):
        if not (points[kept] <= points[n]).all(axis=1).any():
            kept.append(int(n))
    return [options[n] for n in kept]


def _amounts(block: Block) -> tuple[int, int, int, int, int]:
    used = block.resources
    return used.lut, used.dsp, used.bram, used.spram, block.multipliers


class Search:
    """Chooses among the options of every layer.

    Parameters
    ----------
    options
        Per layer, at least one.
    budget, device
        What they may use, and of what.
    supply
        Whether a line buffer's words come no faster than a frame per interval. If not, they are
        taken to come as fast as they can be stored, which shallow line buffers need.
    """

    def __init__(
        self, options: Sequence[Sequence[Block]], budget: Budget, device: Device, *, supply: bool
    ) -> None:
        self.options, self.budget, self.device = options, budget, device
        self.supply = supply
        self.limits = np.array([budget.lut, budget.dsp, budget.bram, budget.spram])
        self.sizes = np.array([device.lut, max(device.dsp, 1), device.bram])
        self.dsp_weight = DSP_WEIGHT * device.long_wires
        self.amounts = [np.array([_amounts(b) for b in layer], float) for layer in options]
        self.cycles = [np.array([b.cycles for b in layer]) for layer in options]
        self.missing = [np.array([b.missing_words for b in layer]) for layer in options]
        self.words = [np.array([b.words for b in layer]) for layer in options]

    @property
    def floor(self) -> int:
        """Cycles that the slowest layer takes with the fastest of its options."""
        return int(max(cycles.min() for cycles in self.cycles))

    @property
    def feasible(self) -> bool:
        """Whether anything fits, however slow."""
        slowest = max(int(cycles.max()) for cycles in self.cycles)
        return self.within(slowest * 2) is not None

    def with_less(self, used: Resources) -> Search:
        """Return the same search with a smaller budget."""
        return Search(self.options, self.budget.less(used), self.device, supply=self.supply)

    def best(self) -> list[Block] | None:
        """Return blocks at about the least feasible interval, None if nothing fits.

        Idle multipliers cost LUTs, and LUTs cost clock: of the intervals up to :data:`SLACK`
        longer, the one that makes the best use of its multipliers is taken.
        """
        fastest = self.least()
        if fastest is None:
            return None
        interval, best = fastest
        rivals = [best]
        near = [cost for cost in self._intervals() if interval <= cost <= interval * SLACK]
        for cost in near[:: -(-len(near) // MOST_RIVALS)]:
            found = self.within(cost)
            if found is not None:
                rivals.append(found)
        return min(rivals, key=_multiplier_cycles)

    def least(self) -> tuple[int, list[Block]] | None:
        """Return about the least feasible interval, and its blocks; None if nothing fits."""
        candidates = self._intervals()
        low, high = 0, len(candidates) - 1
        best = self.within(candidates[high] * 2)
        if best is None:
            return None
        while low < high:
            middle = (low + high) // 2
            found = self.within(candidates[middle])
            if found is None:
                low = middle + 1
            else:
                best, high = found, middle
        return candidates[high], best

    def _intervals(self) -> list[int]:
        """List what an interval may be: the cycles of some option, and no less than the floor."""
        costs = np.unique(np.concatenate(self.cycles))
        intervals: list[int] = costs[costs >= self.floor].tolist()
        return intervals

    def within(self, interval: int) -> list[Block] | None:
        """Return the blocks that take the least of the device at an interval, None if none fit."""
        allowed = [self._allowed(n, interval) for n in range(len(self.options))]
        if not all(rows.any() for rows in allowed):
            return None
        best: NDArray[np.int64] | None = None
        best_cost = np.inf
        for weights in PREFERENCES:
            chosen = self._relieve_dsp(self._greedy(allowed, weights), allowed, weights)
            if (self._used(chosen)[:MULTIPLIERS] <= self.limits).all():
                chosen, cost = self._refine(chosen, allowed)
                if cost < best_cost:
                    best, best_cost = chosen, cost
        if best is None:
            return None
        return [layer[n] for layer, n in zip(self.options, best, strict=True)]

    def _allowed(self, layer: int, interval: int) -> NDArray[np.bool_]:
        cycles = self.cycles[layer]
        if self.supply:
            waiting = self.missing[layer] * (interval / self.words[layer])
            cycles = cycles + np.maximum(0.0, waiting - self.missing[layer])
        return np.asarray(cycles <= interval)

    def _used(self, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = [table[n] for table, n in zip(self.amounts, chosen, strict=True)]
        return np.array(np.sum(rows, axis=0))

    def _load(self, layer: int, weights: tuple[float, float, float]) -> NDArray[np.float64]:
        shares = self.amounts[layer][:, :SPRAM] / self.sizes
        return np.array(shares @ np.array(weights))

    def _greedy(
        self, allowed: Sequence[NDArray[np.bool_]], weights: tuple[float, float, float]
    ) -> NDArray[np.int64]:
        """Take the cheapest option of every layer."""
        chosen = []
        for layer, rows in enumerate(allowed):
            costs = self._load(layer, weights)
            costs += MULTIPLIER_COST * self.amounts[layer][:, MULTIPLIERS]
            chosen.append(int(np.where(rows, costs, np.inf).argmin()))
        return np.array(chosen)

    def _relieve_dsp(
        self,
        chosen: NDArray[np.int64],
        allowed: Sequence[NDArray[np.bool_]],
        weights: tuple[float, float, float],
    ) -> NDArray[np.int64]:
        """Move layers to LUT multipliers, fewest LUTs first, until the DSP blocks suffice."""
        chosen = chosen.copy()
        while self._used(chosen)[DSP] > self.limits[DSP]:
            alternatives = []
            for layer, rows in enumerate(allowed):
                table, now = self.amounts[layer], self.amounts[layer][chosen[layer]]
                fewer = rows & (table[:, DSP] < now[DSP])
                if fewer.any():
                    n = int(np.where(fewer, self._load(layer, weights), np.inf).argmin())
                    price = (table[n, LUT] - now[LUT]) / (now[DSP] - table[n, DSP])
                    alternatives.append((price, layer, n))
            if not alternatives:
                break
            _, layer, n = min(alternatives)
            chosen[layer] = n
        return chosen

    def _refine(
        self, chosen: NDArray[np.int64], allowed: Sequence[NDArray[np.bool_]]
    ) -> tuple[NDArray[np.int64], float]:
        """Change one layer at a time as long as that makes the design cheaper; return its cost.

        Nearly full LUTs or block RAMs weigh most: they are what is hard to place. So are the last
        DSP blocks of large chips, far from the others of their array (docs/resources.md).
        """
        chosen = chosen.copy()
        used, best = self._used(chosen), np.inf
        improved = True
        while improved:
            improved = False
            for layer, table in enumerate(self.amounts):
                totals = used - table[chosen[layer]] + table
                lut, dsp, bram = (totals[:, :SPRAM] / self.sizes).T
                costs = LUT_WEIGHT * lut**2 + self.dsp_weight * dsp**4 + bram**2
                costs += MULTIPLIER_COST * totals[:, MULTIPLIERS]
                fits = (totals[:, :MULTIPLIERS] <= self.limits).all(axis=1) & allowed[layer]
                costs[~fits] = np.inf
                n = int(costs.argmin())
                if costs[n] < best - TINY:
                    best, improved = float(costs[n]), True
                    chosen[layer], used = n, totals[n]
        return chosen, best


def _multiplier_cycles(blocks: Sequence[Block]) -> tuple[int, int]:
    """Return what a design pays for a frame: multipliers times cycles; and the cycles."""
    interval = max(block.cycles for block in blocks)
    return interval * sum(block.multipliers for block in blocks), interval
