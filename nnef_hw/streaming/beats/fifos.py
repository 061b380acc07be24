"""Sizes of FIFOs: the cheapest with which a design is as fast as with FIFOs without limit.

The beats of the design are simulated with FIFOs that are never full. None needs more items than it
held then; whether it needs that many shows when the beats are simulated with fewer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.architecture.architecture import Port
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.streams.fifo import FIFO_REGISTERS, FifoLogs, fifo_reads
from nnef_hw.parts.streams.stream import SHALLOW_FIFO
from nnef_hw.streaming.beats.beats import BeatTimes, DeadlockError, Network
from nnef_hw.streaming.beats.steady import Steady
from nnef_hw.streaming.foldings.block import Block

__all__ = ["Ports", "Sized", "fifo_depths", "give_fifos", "roomy_depth", "shrink_fifos"]

Ports = tuple[Sequence[Port], Sequence[Port]]

FIFO_LATENCY = 3
MIN_FIFO = 2
UNBOUNDED = 1 << 40
MOST_EVENTS = 1_200_000
"""Simulated events after which no FIFO is tried with fewer items any more: seconds."""
MOST_FRAMES = 1_000
"""Frames after which a trial that is not known to be as fast is one that is not."""


class Sized(NamedTuple):
    """Blocks with FIFOs.

    Attributes
    ----------
    interval
        Cycles between frames, with FIFOs without limit.
    settled
        When the beats of these very blocks move, and how many events showed it; None if the
        interval came from other blocks: with FIFOs that they do not have.
    """

    blocks: tuple[Block, ...]
    interval: int
    settled: tuple[BeatTimes, int] | None


def give_fifos(blocks: Sequence[Block], ports: Ports, device: Device) -> Sized:
    """Give every operand of a block with several a FIFO that holds all that ever waits for another.

    So does the operand of a state, which waits for the next frame. Where one item at most waits,
    the operand needs none; nor does one that has nothing in common with the others but this block,
    since its inputs can wait. So that no input fills FIFOs with frames ahead of the others, all
    keep step.
    """
    unlimited = [
        block.with_fifos([UNBOUNDED] * len(block.fifos)) if block.needs_fifos else block
        for block in blocks
    ]
    network = Network(unlimited, *ports, lockstep=True)
    slowest = max(block.cycles for block in blocks)
    interval = network.settle(Steady(slowest, 1, None)).interval
    if not any(block.needs_fifos for block in blocks) and len(ports[0]) == 1:
        return Sized(tuple(blocks), interval, (network.settle(), network.events))
    sized = []
    for block in blocks:
        if block.needs_fifos:
            most = [
                0 if _is_bridge(blocks, block, n) else _most_items(network, block, n)
                for n in range(len(block.sources))
            ]
            block = block.with_fifos([
                fifo_depths(block, n, items, device)[-1] for n, items in enumerate(most)
            ])
        sized.append(block)
    return Sized(tuple(sized), interval, None)


def shrink_fifos(sized: Sized, ports: Ports, device: Device) -> tuple[tuple[Block, ...], BeatTimes]:
    """Make every FIFO as cheap as it can be without a cycle more per frame, or until the first.

    One of registers has as few items as it needs. One of block RAM needs all of its block RAMs, and
    has as many items as they hold.
    """
    shrinker = _Shrinker(sized, ports, device)
    # Those that hold back a branch first.
    for is_join in (True, False):
        for place, block in enumerate(sized.blocks):
            if block.needs_fifos is is_join:
                for operand in range(len(block.sources)):
                    shrinker.shrink(place, operand)
    return tuple(shrinker.blocks), shrinker.settled


class _Shrinker:
    """Tries FIFOs with fewer items, one after the other."""

    def __init__(self, sized: Sized, ports: Ports, device: Device) -> None:
        self.blocks, self.ports, self.device = list(sized.blocks), ports, device
        self.network: Network | None = None
        if sized.settled:
            self.times, self.events = sized.settled
        else:
            self.blocks, self.network = _without_deadlock(self.blocks, ports, device)
            self.times, self.events = self.network.settle(), self.network.events

    @property
    def settled(self) -> BeatTimes:
        """Beat times of the design, until the spacing of its frames' ends is final."""
        return self.times if self.network is None else self.network.settle()

    def shrink(self, place: int, operand: int) -> None:
        """Take the cheapest FIFO that is large enough; most need the block RAM they have."""
        block = self.blocks[place]
        depths = fifo_depths(block, operand, block.fifos[operand], self.device)
        low, high = 0, len(depths) - 1
        probe = high - 1
        while low < high and self.events < MOST_EVENTS:
            if self._is_enough(place, operand, depths[probe]):
                high = probe
            else:
                low = probe + 1
            probe = (low + high) // 2

    def _is_enough(self, place: int, operand: int, depth: int) -> bool:
        """Try a FIFO of that depth; keep it if the design is as fast."""
        block = self.blocks[place]
        trial = list(self.blocks)
        trial[place] = block.with_fifos([
            depth if n == operand else before for n, before in enumerate(block.fifos)
        ])
        network = Network(trial, *self.ports)
        times = _times_if_prompt(network, self.times)
        self.events += network.events
        if times is None:
            return False
        self.blocks, self.times, self.network = trial, times, network
        return True


def _without_deadlock(
    blocks: list[Block], ports: Ports, device: Device
) -> tuple[list[Block], Network]:
    """Deepen the FIFOs of joins until all frames come out.

    A branch may wait for another by items that are on their way through its blocks. None of these
    waited in a FIFO without limit; but once the first cannot leave, a block that works on several
    does not take more. With FIFOs without limit all frames come out, so deep ones are enough.
    """
    while True:
        network = Network(blocks, *ports)
        try:
            network.settle()
        except DeadlockError:
            blocks = [
                block.with_fifos([
                    fifo_depths(block, n, max(MIN_FIFO, 2 * depth), device)[-1]
                    for n, depth in enumerate(block.fifos)
                ])
                if block.needs_fifos
                else block
                for block in blocks
            ]
        else:
            return blocks, network


def _times_if_prompt(network: Network, wanted: BeatTimes) -> BeatTimes | None:
    """Return the times of a design unless it is slower than wanted."""
    try:
        if network.run(1).latency > wanted.latency:
            return None
        times = network.settle(wanted.steady, MOST_FRAMES)
    except DeadlockError:
        return None
    assert times.steady is not None
    assert wanted.steady is not None
    return times if times.steady.mean <= wanted.steady.mean else None


def fifo_depths(block: Block, operand: int, items: int, device: Device) -> list[int]:
    """List the depths worth a try for an operand, up to the first that holds so many items.

    Of those in block RAM, the largest of each number of block RAMs.
    """
    least = block.layer.least_queue(device)
    depths = [least]
    if items > least:
        depths += range(max(MIN_FIFO, least + 1), min(items, SHALLOW_FIFO) + 1)
    count = 0
    while depths[-1] < items:
        tiling = _tiling(block, operand, max(depths[-1], SHALLOW_FIFO) + 1, device)
        depth = _capacity(tiling)
        if tiling.count == count:
            depths[-1] = depth
        else:
            depths.append(depth)
        count = tiling.count
    return depths


def roomy_depth(block: Block, operand: int, items: int, device: Device) -> int:
    """Return the depth of a FIFO that holds so many items for an operand.

    In block RAM, the largest that takes no more of them.
    """
    depth = fifo_depths(block, operand, items, device)[-1]
    if depth <= SHALLOW_FIFO:
        return depth
    count = _tiling(block, operand, depth, device).count
    while (tiling := _tiling(block, operand, depth + 1, device)).count == count:
        depth = _capacity(tiling)
    return depth


def _tiling(block: Block, operand: int, depth: int, device: Device) -> Tiling:
    """Return the memory of a FIFO in block RAM."""
    bits = block.layer.operand_format(operand).bits * block.layer.lanes_of(operand)
    return tile_memory(device.ram, depth - FIFO_REGISTERS, bits)


def _capacity(tiling: Tiling) -> int:
    """Return the items of a FIFO that fills its memory."""
    return tiling.rows * tiling.tile_depth + FIFO_REGISTERS


def _is_bridge(blocks: Sequence[Block], block: Block, operand: int) -> bool:
    """Whether an operand's stream is all that joins what is before it with the rest."""
    leaders: dict[str, str] = {}

    def leader(tensor: str) -> str:
        while tensor in leaders:
            tensor = leaders[tensor]
        return tensor

    for other in blocks:
        for n, source in enumerate(other.sources):
            ends = leader(source.tensor), leader(other.tensor)
            if (other.tensor, n) != (block.tensor, operand) and ends[0] != ends[1]:
                leaders[ends[0]] = ends[1]
    return leader(block.sources[operand].tensor) != leader(block.tensor)


def _most_items(network: Network, block: Block, operand: int) -> int:
    """Most items that ever waited in front of an operand for another; 0 if it needs no FIFO.

    One item that waits can be held by what gives it, unless that is a fork, which the other
    operand may wait for.
    """
    fifo = network.fifos[block.tensor, operand]
    others = [network.fifos[block.tensor, n] for n in range(len(block.sources)) if n != operand]
    forked = block.sources[operand].tensor in network.unregistered
    blocks = forked and any(_waits_for_later(fifo, other) for other in others)
    if not blocks and _most_inside(_arrivals(fifo), fifo.sent.times) <= 1:
        return 0
    stored = _most_inside(fifo.written.times, fifo_reads(fifo.written, fifo.moved))
    # what never stops without FIFOs is frames ahead of a block that is slow itself
    most = block.layer.most_queue(operand)
    return stored + FIFO_REGISTERS if most is None else min(stored, most) + FIFO_REGISTERS


def _arrivals(fifo: FifoLogs) -> list[int]:
    """Return when each item would come first to where it is departures."""
    return [time + FIFO_LATENCY for time in fifo.written.times]


def _waits_for_later(fifo: FifoLogs, other: FifoLogs) -> bool:
    """Whether an item waits until one was departures from another FIFO that came there later."""
    arrivals, departures = _arrivals(other), other.sent.times
    # A state gives codes of the next frame, which nothing has taken yet.
    for arrival, end in zip(_arrivals(fifo), fifo.sent.times, strict=False):
        later = bisect_right(arrivals, arrival)
        if later < len(departures) and departures[later] <= end:
            return True
    return False


def _most_inside(entered: ArrayLike, departed: ArrayLike) -> int:
    """Most items at a time between where they enter and where they leave, in cycles each."""
    before = np.searchsorted(departed, entered, "left")
    return int((np.arange(1, len(before) + 1) - before).max())
