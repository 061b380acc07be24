"""Foldings for networks whose frames wait for each other: the shortest way of a frame that fits.

A language model that feeds itself begins with a token when the one before is known. So the
latency of a frame decides how fast it writes, and an interval that is shorter gains nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nnef_hw.errors import ShortageError
from nnef_hw.hardware.devices import LUT_SHARE, Device, Target
from nnef_hw.streaming.beats.beats import BeatTimes, Network
from nnef_hw.streaming.beats.fifos import UNBOUNDED, Ports, give_fifos, shrink_fifos
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import (
    Budget,
    border_resources,
    budget_of,
    queue_resources,
    total_resources,
)
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.search.misfit import ARCH
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.search import Search, fullness

__all__ = ["check_latency", "soonest"]

MOST_EVENTS = 8_000_000
"""Simulated events after which no more foldings are tried: half a minute."""
MOST_TRIALS = 3
"""Searches with more room for FIFOs, where they did not fit."""
FULL_WEIGHT = 0.1
"""By which share a latency counts more in a device that is full by 1: by a third of its LUTs."""

Options = Sequence[Sequence[Block]]


def soonest(
    blocks: tuple[Block, ...],
    times: BeatTimes,
    network: LayerGraph,
    target: Target,
    layer_counters: bool,
) -> tuple[tuple[Block, ...], BeatTimes]:
    """Return the design whose lone frame passes in the fewest cycles, and when its beats move.

    Its streams are as wide as those of the design that is given, which it is if none is faster.
    """
    device, ports = target.device, (network.inputs, network.outputs)
    link = border_resources(network, target, layer_counters)
    budget = budget_of(device, link, LUT_SHARE)
    options = network_options(network, device)
    queues = queue_resources(blocks, device)
    for _ in range(MOST_TRIALS):
        starts = _starts(blocks, options, budget.less(queues), device)
        search = _LatencySearch(options, budget.less(queues), ports, device)
        found = min(map(search.descend, starts), key=search.cost)
        sized = give_fifos(found, ports, device)
        if budget.holds(total_resources(sized.blocks)):
            sooner, passing = shrink_fifos(sized, ports, device)
            return (sooner, passing) if passing.latency < times.latency else (blocks, times)
        queues = queue_resources(sized.blocks, device)
    return blocks, times


def check_latency(latency: int, wanted: int, name: str, target: Target, clock: float) -> None:
    """Raise ShortageError if a network's latency, in cycles, is longer than wanted."""
    if latency > wanted:
        raise ShortageError(
            f"model {name!r} does not reach {clock * 1e6 / wanted:g} steps/s on {target.name} at "
            f"{clock:g} MHz ({wanted:,} cycles each, one behind the other)",
            ARCH,
            f"no folding was found with a latency below {latency:,} cycles",
        )


def _starts(
    blocks: Sequence[Block], options: Options, budget: Budget, device: Device
) -> list[list[Block]]:
    """Return designs without FIFOs that fit: the given one, a denser one, the fastest of all."""
    starts = [[Block.of(x.layer, x.folding, x.device) for x in blocks]]
    search = Search(options, budget, device, steady_words=False)
    interval = search.least()
    dense = None if interval is None else search.within(interval)
    fastest = [min(layer, key=lambda x: (x.cycles, x.resources.lut)) for layer in options]
    others = [fastest] if dense is None else [dense, fastest]
    return starts + [x for x in others if budget.holds(total_resources(x))]


class _LatencySearch:
    def __init__(self, options: Options, budget: Budget, ports: Ports, device: Device) -> None:
        self.options, self.budget, self.ports, self.device = options, budget, ports, device
        self.events = 0

    def descend(self, blocks: list[Block]) -> list[Block]:
        """Give one layer after the other the folding that costs least, until none gains."""
        best = self.cost(blocks)
        improved = True
        while improved:
            improved = False
            for place in range(len(blocks)):
                for trial in self._others(blocks, place):
                    if self.events >= MOST_EVENTS:
                        return blocks
                    cost = self.cost(trial)
                    if cost < best:
                        blocks, best, improved = trial, cost, True
        return blocks

    def cost(self, blocks: Sequence[Block]) -> float:
        """Return the latency with FIFOs without limit, longer where many LUTs slow the clock."""
        used, device = total_resources(blocks), self.device
        shares = np.array([used.lut / device.lut]), np.array([used.bram / max(1, device.bram)])
        [full] = fullness(*shares, long_wires=device.long_wires)
        return self._latency(blocks) * (1 + FULL_WEIGHT * float(full))

    def _others(self, blocks: Sequence[Block], place: int) -> Iterator[list[Block]]:
        """Yield designs that fit, with each option of a layer."""
        others = [*blocks[:place], *blocks[place + 1 :]]
        left = self.budget.less(total_resources(others))
        for option in self.options[place]:
            if left.holds(option.resources):
                yield [*blocks[:place], option, *blocks[place + 1 :]]

    def _latency(self, blocks: Sequence[Block]) -> int:
        unlimited = [
            block.with_fifos([UNBOUNDED] * len(block.fifos)) if block.needs_fifos else block
            for block in blocks
        ]
        network = Network(unlimited, *self.ports, lockstep=True)
        latency = network.run(1).latency
        self.events += network.events
        return latency
