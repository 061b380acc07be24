"""Foldings of layers in loops: the shortest way around them that fits.

The interval of a network with states is the time around its slowest loop where that is more than
the cycles of any layer. What a faster folding gains there depends on how much of its work overlaps
with that of the layers around it, so beats are simulated to know. A layer cannot gain more than it
has cycles less (of all its turns around the loop); so of all changes that fit, those that promise
most for what they take are tried first, and none that promises less than one tried has given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.streaming.beats.beats import Network
from nnef_hw.streaming.beats.fifos import UNBOUNDED, Ports
from nnef_hw.streaming.beats.steady import Steady
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import Budget
from nnef_hw.streaming.layers.state import StateLayer

__all__ = ["layers_in_loops", "shorten_loops"]

MOST_EVENTS = 2_000_000
"""Simulated events after which no more changes are tried: seconds."""
LEVELS = (1, 3 / 4, 1 / 2, 1 / 4, 1 / 8)
"""Shares of its cycles that a layer is tried with, beside the next smaller number."""
TINY = 1e-6


class _Change(NamedTuple):
    """Faster foldings of a layer, or of two.

    Attributes
    ----------
    cycles
        Cycles that they have less.
    share
        Share of the device that they take more.
    blocks
        The blocks by their places.
    """

    cycles: int
    share: float
    blocks: Mapping[int, Block]

    @property
    def promise(self) -> float:
        """Most that a change may gain, for the resources that it takes."""
        return self.cycles / self.share

    def joined(self, other: _Change) -> _Change:
        """Return both changes at once."""
        return _Change(
            self.cycles + other.cycles, self.share + other.share, {**self.blocks, **other.blocks}
        )


def layers_in_loops(blocks: Sequence[Block]) -> set[str]:
    """Return the tensors of the blocks that a state depends on and that depend on a state."""
    states = {block.tensor for block in blocks if block.closes_loop}
    behind, before = set(states), {s.tensor for b in blocks if b.closes_loop for s in b.sources}
    for block in blocks:
        if not behind.isdisjoint(source.tensor for source in block.sources):
            behind.add(block.tensor)
    for block in reversed(blocks):
        if block.tensor in before:
            before.update(source.tensor for source in block.sources)
    return behind & (before | states)


def shorten_loops(
    blocks: Sequence[Block],
    options: Sequence[Sequence[Block]],
    queues: Resources,
    budget: Budget,
    ports: Ports,
    device: Device,
    enough: int | None = None,
) -> tuple[Block, ...] | None:
    """Return blocks with faster foldings where a loop bounds the interval; None if there are none.

    Parameters
    ----------
    blocks
        A design; its FIFOs are not considered.
    options
        Options per layer.
    queues
        What FIFOs are taken to need.
    budget, device
        What the layers may use, and of which device.
    enough
        An interval at which to stop.
    """
    return _LoopSearch(options, budget.less(queues), ports, device).run(blocks, enough)


class _LoopSearch:
    def __init__(
        self,
        options: Sequence[Sequence[Block]],
        budget: Budget,
        ports: Ports,
        device: Device,
    ) -> None:
        self.options, self.budget, self.ports, self.device = options, budget, ports, device
        self.events = 0
        # The first inference shows what a loop within it takes.
        states = (layer[0].layer for layer in options if layer[0].closes_loop)
        self.is_within = all(isinstance(x, StateLayer) and x.steps > 1 for x in states)

    def run(self, blocks: Sequence[Block], enough: int | None) -> tuple[Block, ...] | None:
        current = [_plain(block) for block in blocks]
        looped = layers_in_loops(current)
        first = interval = self._interval(current)
        while interval > max(enough or 0, 1) and self.events < MOST_EVENTS:
            found = self._best_change(current, looped, interval)
            if found is None:
                break
            current, interval = found
        return tuple(current) if interval < first else None

    def _best_change(
        self, blocks: list[Block], looped: set[str], interval: int
    ) -> tuple[list[Block], int] | None:
        """Return the design after the change that gives most for what it takes."""
        slowest = max(block.cycles for block in blocks)
        used = Resources.total(block.resources for block in blocks)
        changes = [
            self._changes(place, block, used)
            for place, block in enumerate(blocks)
            if block.tensor in looped or block.cycles == slowest == interval
        ]
        single = [change for layer in changes for change in layer]
        # Two ways through a loop may take equally long.
        double = (
            first.joined(second)
            for one, other in combinations(changes, 2)
            for first, second in product(one, other)
        )
        return self._best(blocks, interval, single) or self._best(blocks, interval, double)

    def _best(
        self, blocks: list[Block], interval: int, changes: Iterable[_Change]
    ) -> tuple[list[Block], int] | None:
        best: tuple[float, list[Block], int] | None = None
        for change in sorted(changes, key=lambda change: -change.promise):
            if (best and change.promise <= best[0]) or self.events >= MOST_EVENTS:
                break
            trial = [change.blocks.get(place, block) for place, block in enumerate(blocks)]
            if not self.budget.holds(Resources.total(block.resources for block in trial)):
                continue
            found = self._interval(trial)
            gain = (interval - found) / change.share
            if found < interval and (best is None or gain > best[0]):
                best = gain, trial, found
        return best[1:] if best else None

    def _changes(self, place: int, block: Block, used: Resources) -> list[_Change]:
        """List the faster foldings of a layer that fit, the cheapest for some numbers of cycles."""
        now = block.resources
        fitting = []
        for option in self.options[place]:
            total = Resources.total([used, option.resources])
            left = Resources(
                lut=total.lut - now.lut, ff=total.ff - now.ff, dsp=total.dsp - now.dsp,
                bram=total.bram - now.bram, spram=total.spram - now.spram,
            )  # fmt: skip
            if option.cycles < block.cycles and self.budget.holds(left):
                share = self._share(option.resources) - self._share(now)
                fitting.append((max(share, TINY), option))
        found: dict[int, _Change] = {}
        for level in LEVELS:
            within = [pair for pair in fitting if pair[1].cycles <= block.cycles * level]
            if within:
                share, option = min(within, key=lambda pair: (pair[0], pair[1].cycles))
                found[id(option)] = _Change(block.cycles - option.cycles, share, {place: option})
        return list(found.values())

    def _share(self, used: Resources) -> float:
        """Return how much of what there is that takes."""
        budget = self.budget
        pairs = ((used.lut, budget.lut), (used.dsp, budget.dsp), (used.bram, budget.bram))
        return sum(amount / max(1, limit) for amount, limit in pairs)

    def _interval(self, blocks: Sequence[Block]) -> int:
        """Return the interval with FIFOs without limit, or the latency of a loop within it."""
        unlimited = [
            block.with_fifos([UNBOUNDED] * len(block.fifos)) if block.needs_fifos else block
            for block in blocks
        ]
        network = Network(unlimited, *self.ports, lockstep=True)
        slowest = max(block.cycles for block in blocks)
        if self.is_within:
            time = network.run(1).latency
        else:
            time = network.settle(Steady(slowest, 1, None)).interval
        self.events += network.events
        return max(time, slowest)


def _plain(block: Block) -> Block:
    """Return a block without FIFOs, but for those that it cannot be without."""
    return Block.of(block.layer, block.folding, block.device)
