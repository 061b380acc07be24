"""Folding solver: the smallest initiation interval that fits the board."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from nnef_hw.devices import Device, Resources, Target
from nnef_hw.ir import Graph
from nnef_hw.streaming.beats import BeatTimes
from nnef_hw.streaming.block import Block
from nnef_hw.streaming.budget import (
    Budget,
    border_resources,
    budget_of,
    queue_resources,
    total_resources,
)
from nnef_hw.streaming.fifos import Ports, Sized, fifo_depths, give_fifos, shrink_fifos
from nnef_hw.streaming.lanes import wider
from nnef_hw.streaming.loop_search import shorten_loops
from nnef_hw.streaming.lower import lower
from nnef_hw.streaming.misfit import Misfit
from nnef_hw.streaming.options import network_options
from nnef_hw.streaming.plan import LayerGraph, Plan
from nnef_hw.streaming.resources import LUT_SHARE
from nnef_hw.streaming.search import Search

__all__ = ["schedule"]

SLACK_MARGIN = 2
MOST_TRIALS = 3
"""Designs with shorter loops whose FIFOs are tried."""


_Simulated = dict[Hashable, Sized]
"""Blocks with their FIFOs, by what of the blocks alone matters to when items move."""


class _Design(NamedTuple):
    """Blocks with their FIFOs, and what the simulation of their beats gave."""

    blocks: tuple[Block, ...]
    times: BeatTimes


def schedule(
    graph: Graph,
    target: Target,
    *,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    layer_counters: bool = False,
) -> Plan:
    """Choose folding, memories and multipliers for every layer of a fixed graph.

    Minimises the initiation interval; with ``target_fps`` it takes the smallest design that reaches
    it at the clock instead. ``layer_counters`` have to fit as well.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the network cannot be streamed.
    TargetError
        If no folding fits the board, or none is fast enough.
    """
    network = lower(graph)
    device = target.device
    clock = clock_mhz or target.clock_mhz
    options = network_options(network, device)
    wanted = None if target_fps is None else int(clock * 1e6 / target_fps)
    designs = _that_fit(network, target, layer_counters, options, wanted)
    # What streams of one code per beat are too slow for takes wider ones.
    for wide in wider(network, target, wanted) if wanted and not designs else ():
        designs = _that_fit(wide.network, target, layer_counters, wide.options, wanted)
        if designs:
            network = wide.network
            break
    if not designs:
        misfit = Misfit(graph.name, network, target, layer_counters, options)
        if target_fps is not None and misfit.feasible:
            raise misfit.too_slow(target_fps, clock)
        designs = [_smallest(misfit, (network.inputs, network.outputs))]
    blocks, times = min(designs, key=lambda design: design.times.interval)
    assert times.steady is not None
    return Plan(
        model=graph.name,
        board=target.name,
        device=device.name,
        clock_mhz=clock,
        inputs=network.inputs,
        outputs=network.outputs,
        blocks=blocks,
        interval=times.interval,
        latency=times.latency,
        period=times.steady.period,
        settling=times.steady.settling,
        link=border_resources(network, target, layer_counters),
        layer_counters=layer_counters,
    )


def _that_fit(
    network: LayerGraph,
    target: Target,
    layer_counters: bool,
    options: Sequence[Sequence[Block]],
    wanted: int | None,
) -> list[_Design]:
    """Return the designs of these options that fit, of one share of the LUTs or else a larger one.

    A design that fills more of the device than its share is slow, but better than none.
    """
    device, ports = target.device, (network.inputs, network.outputs)
    link = border_resources(network, target, layer_counters)
    for share in (device.lut_share, LUT_SHARE):
        designs = _designs(options, budget_of(device, link, share), ports, device, wanted)
        if designs:
            return designs
    return []


def _designs(
    options: Sequence[Sequence[Block]],
    budget: Budget,
    ports: Ports,
    device: Device,
    wanted: int | None,
) -> list[_Design]:
    """Return the designs that fit: one whose words come slowly, and a faster one without waits."""
    designs: list[_Design] = []
    simulated: _Simulated = {}
    for steady_words in (True, False):
        search = Search(options, budget, device, steady_words=steady_words)
        unqueued = search.best() if wanted is None else search.within(wanted)
        if unqueued is None:
            continue
        predicted = max(block.cycles for block in unqueued)
        if designs and designs[0].times.interval <= max(predicted, wanted or 0):
            break
        design = _design(search, budget, ports, device, wanted, simulated)
        if design:
            designs.append(design)
    return designs


def _shortened(
    design: _Design,
    options: Sequence[Sequence[Block]],
    budget: Budget,
    ports: Ports,
    device: Device,
    enough: int | None,
) -> _Design:
    """Return a faster design, if a loop bounds this one's interval and there is one that fits.

    One whose interval is ``enough`` does.
    """
    slowest = max(block.cycles for block in design.blocks)
    is_looped = any(block.closes_loop for block in design.blocks)
    if not is_looped or design.times.interval <= max(enough or 0, slowest):
        return design
    queues = queue_resources(design.blocks, device)
    for _ in range(MOST_TRIALS):
        blocks = shorten_loops(design.blocks, options, queues, budget, ports, device, enough)
        if blocks is None:
            break
        sized = give_fifos(_with_pause_fifos(blocks, device), ports, device)
        used = total_resources(sized.blocks)
        if budget.holds(used):
            shorter = _Design(*shrink_fifos(sized, ports, device))
            return min(design, shorter, key=lambda design: design.times.interval)
        queues = queue_resources(sized.blocks, device)
    return design


def _smallest(misfit: Misfit, ports: Ports) -> _Design:
    """Return the design with the fewest block RAMs.

    Raises
    ------
    TargetError
        If it does not fit, or no layers do.
    """
    if not misfit.feasible:
        raise misfit.error()
    sized = give_fifos(misfit.smallest(), ports, misfit.device)
    blocks, times = shrink_fifos(sized, ports, misfit.device)
    if not misfit.budget.holds(total_resources(blocks)):
        raise misfit.error(blocks)
    return _Design(blocks, times)


def _design(
    search: Search,
    budget: Budget,
    ports: Ports,
    device: Device,
    wanted: int | None,
    simulated: _Simulated,
) -> _Design | None:
    """Return the best design with its FIFOs; None if none fits or takes so few cycles.

    ``simulated`` keeps the results of simulations.
    """
    limit = wanted
    while True:
        chosen = search.best() if limit is None else search.within(limit)
        if chosen is None:
            return None
        sized = _with_fifos(_with_pause_fifos(chosen, device), ports, device, simulated)
        if not budget.holds(total_resources(sized.blocks)):
            sized = _with_fifos(tuple(chosen), ports, device, simulated)
        used = total_resources(sized.blocks)
        if not budget.holds(used):
            search = search.with_less(
                Resources(lut=max(0, used.lut - budget.lut), bram=max(0, used.bram - budget.bram))
            )
            continue
        design = _Design(*shrink_fifos(sized, ports, device))
        design = _shortened(design, search.options, budget, ports, device, wanted)
        interval = design.times.interval
        if limit is None or wanted is None or interval <= wanted:
            return design
        # Bursts between layers cost some cycles more than the slowest layer: aim lower.
        limit = min(limit - 1, limit * wanted // interval)


def _with_fifos(
    blocks: tuple[Block, ...], ports: Ports, device: Device, simulated: _Simulated
) -> Sized:
    """Give blocks their FIFOs, by a simulation that is not repeated."""
    key = tuple(block.timing for block in blocks)
    if key not in simulated:
        simulated[key] = give_fifos(blocks, ports, device)
    found = simulated[key]
    pairs = zip(blocks, found.blocks, strict=True)
    return found._replace(blocks=tuple(block.with_fifos(sized.fifos) for block, sized in pairs))


def _with_pause_fifos(blocks: Sequence[Block], device: Device) -> tuple[Block, ...]:
    """Add FIFOs for the beats that come while a block takes none.

    Otherwise a layer before it that has no such cycles to lose does lose some.
    """
    interval = max(block.cycles for block in blocks)
    # Most cycles that a layer takes of those between a stream and the arrays before it.
    cycles_of: dict[str, int] = {}
    buffered = []
    for block in blocks:
        before = max(cycles_of.get(source.tensor, 0) for source in block.sources)
        cycles_of[block.tensor] = max(block.cycles, 0 if block.multipliers else before)
        image = block.layer.image
        if image and block.pause and before > 0 and before + block.pause > interval:
            beats = -(-block.pause * image.beats // (interval * block.layer.operand_lanes))
            depth = fifo_depths(block, 0, beats + SLACK_MARGIN, device)[-1]
            block = block.with_fifos([depth])
        buffered.append(block)
    return tuple(buffered)
