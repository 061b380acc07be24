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
from nnef_hw.streaming.search.lanes import common_codes, equally_wide, takes_lanes
from nnef_hw.streaming.search.misfit import ARCH
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.search import Search, fullness

__all__ = ["check_latency", "soonest"]

MOST_EVENTS = 8_000_000
"""Simulated events after which no more foldings are tried: half a minute."""
MOST_WIDER_EVENTS = 4 * MOST_EVENTS
"""Simulated events after which no more streams of several codes per beat are tried."""
OPTION_EVENTS = 10
"""Events in whose time an option of a layer is made."""
MOST_TRIALS = 3
"""Searches with more room for FIFOs, where they did not fit."""
FULL_WEIGHT = 0.1
"""By which share a latency counts more in a device that is full by 1: by a third of its LUTs."""

MOST_LANES = 16
"""Most codes of a beat that is tried."""

Options = Sequence[Sequence[Block]]


def soonest(
    blocks: tuple[Block, ...],
    times: BeatTimes,
    network: LayerGraph,
    target: Target,
    layer_counters: bool,
) -> tuple[tuple[Block, ...], BeatTimes]:
    """Return the design whose lone frame passes in the fewest cycles, and when its beats move.

    It is the design that is given, if none is faster. Streams between layers may be wider than in
    that; those at the border are as they are.
    """
    device, ports = target.device, (network.inputs, network.outputs)
    link = border_resources(network, target, layer_counters)
    budget = budget_of(device, link, LUT_SHARE)
    options = network_options(network, device)
    queues = queue_resources(blocks, device)
    for _ in range(MOST_TRIALS):
        starts = _starts(blocks, options, budget.less(queues), device)
        search = _LatencySearch(options, budget.less(queues), ports, device, MOST_EVENTS)
        found = min(map(search.descend, starts), key=search.cost)
        if search.has_time:
            found = _widened(found, network, target, search)
        sized = give_fifos(found, ports, device)
        if budget.holds(total_resources(sized.blocks)):
            sooner, passing = shrink_fifos(sized, ports, device)
            return (sooner, passing) if passing.latency < times.latency else (blocks, times)
        queues = queue_resources(sized.blocks, device)
    return blocks, times


def _widened(
    blocks: list[Block], network: LayerGraph, target: Target, search: _LatencySearch
) -> list[Block]:
    """Return blocks with some streams of several codes per beat, where that pays.

    Those that layers make equally wide are tried together. Events of all trials count together.
    """
    left = MOST_WIDER_EVENTS
    lanes = {port.tensor: port.lanes for port in (*network.inputs, *network.outputs)}
    border = set(lanes)
    lanes |= {layer.tensor: layer.result_lanes for layer in network.layers}
    best = search.cost(blocks)
    order = {layer.tensor: n for n, layer in enumerate(network.layers)}
    inner_streams = (x for x in equally_wide(network) if not x & border)
    for streams in sorted(inner_streams, key=lambda x: min(order[name] for name in x)):
        found, chosen = blocks, 1
        for count in _widths(common_codes(network, streams)):
            if left <= 0:
                return found
            wide = network.widened(lanes | dict.fromkeys(streams, count))
            options = network_options(wide, target.device) if takes_lanes(wide, target) else []
            if not options or not all(options):
                continue
            places = [n for n, x in enumerate(wide.layers) if x is not blocks[n].layer]
            left -= OPTION_EVENTS * sum(map(len, options))
            inner = search.with_options(options, left)
            start = inner.started(blocks, places)
            if start is None:
                continue
            trial = inner.descend(start, places)
            left -= inner.events
            cost = search.cost(trial)
            if cost < best:
                found, best, chosen = trial, cost, count
        if chosen > 1:
            blocks, lanes = found, lanes | dict.fromkeys(streams, chosen)
    return blocks


def _widths(channels: int) -> list[int]:
    """Return the codes per beat that are tried for so many channels."""
    return [n for n in range(2, MOST_LANES + 1) if channels % n == 0]


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
    def __init__(
        self, options: Options, budget: Budget, ports: Ports, device: Device, most: int
    ) -> None:
        self.options, self.budget, self.ports, self.device = options, budget, ports, device
        self.events, self.most = 0, most

    def with_options(self, options: Options, left: int) -> _LatencySearch:
        """Return the same search among other options, for which so many events are left."""
        most = min(left, MOST_EVENTS)
        return _LatencySearch(options, self.budget, self.ports, self.device, most)

    @property
    def has_time(self) -> bool:
        """Whether more foldings are tried."""
        return self.events < self.most

    def started(self, blocks: Sequence[Block], places: Sequence[int]) -> list[Block] | None:
        """Return blocks with the fastest options that fit in some places; None if none do."""
        trial = list(blocks)
        left = self.budget.less(
            total_resources([x for n, x in enumerate(blocks) if n not in places])
        )
        for place in places:
            fitting = [x for x in self.options[place] if left.holds(x.resources)]
            if not fitting:
                return None
            trial[place] = min(fitting, key=lambda x: (x.cycles, x.resources.lut))
            left = left.less(trial[place].resources)
        return trial

    def descend(self, blocks: list[Block], places: Sequence[int] | None = None) -> list[Block]:
        """Give one layer after the other, or of some, the folding that costs least.

        Until none gains.
        """
        places = range(len(blocks)) if places is None else places
        best = self.cost(blocks)
        improved = True
        while improved:
            improved = False
            for place in places:
                for trial in self._others(blocks, place):
                    if not self.has_time:
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
