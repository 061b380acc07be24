"""Folding solver: the smallest initiation interval that fits the board."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nnef_hw.boards import BOARDS
from nnef_hw.devices import Device, Resources, Target
from nnef_hw.errors import TargetError
from nnef_hw.ir import Graph
from nnef_hw.parts.stream import Skid
from nnef_hw.schedule.beats import BeatTimes
from nnef_hw.schedule.block import Block, layer_options, make_fifo
from nnef_hw.schedule.fifos import Ports, fifo_depths, give_fifos, shrink_fifos
from nnef_hw.schedule.lower import lower
from nnef_hw.schedule.plan import LayerGraph, Plan, queued_ports
from nnef_hw.schedule.resources import LUT_SHARE
from nnef_hw.schedule.search import Budget, Search, total_resources, useful_options

__all__ = ["border_resources", "budget_of", "schedule"]

SLACK_MARGIN = 2
TENSOR_LINK = Resources(lut=150, ff=60)
"""What one more tensor takes in the host link, but for the FIFO: 59 to 293 LUTs once placed."""
LAYER_COUNTERS = Resources(lut=105, ff=57)
"""What it takes to count what a layer does, and to read that."""


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
    link = border_resources(network, target, layer_counters)
    options = [useful_options(layer_options(layer, device)) for layer in network.layers]
    wanted = None if target_fps is None else int(clock * 1e6 / target_fps)
    ports = (network.inputs, network.outputs)
    designs: list[_Design] = []
    # A design that fills more of the device than that is slow, but better than none.
    for share in (device.lut_share, LUT_SHARE):
        if not designs:
            designs = _designs(options, budget_of(device, link, share), ports, device, wanted)
    if not designs:
        raise _misfit(graph, network, options, target, target_fps, clock, layer_counters)
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
        link=link,
        layer_counters=layer_counters,
        period=times.steady.period,
        settling=times.steady.settling,
    )


def _designs(
    options: Sequence[Sequence[Block]],
    budget: Budget,
    ports: Ports,
    device: Device,
    wanted: int | None,
) -> list[_Design]:
    """Return the designs that fit: one whose words come slowly, and a faster one without waits."""
    designs: list[_Design] = []
    for supply in (True, False):
        search = Search(options, budget, device, supply=supply)
        rough = search.best() if wanted is None else search.within(wanted)
        if rough is None:
            continue
        predicted = max(block.cycles for block in rough)
        if designs and designs[0].times.interval <= max(predicted, wanted or 0):
            break
        design = _design(search, budget, ports, device, wanted)
        if design:
            designs.append(design)
    return designs


def _design(
    search: Search, budget: Budget, ports: Ports, device: Device, wanted: int | None
) -> _Design | None:
    """Return the best design with its FIFOs; None if none fits or takes so few cycles."""
    limit = wanted
    while True:
        chosen = search.best() if limit is None else search.within(limit)
        if chosen is None:
            return None
        blocks, interval = give_fifos(chosen, ports, device)
        if interval > max(block.cycles for block in chosen):
            eased, eased_interval = give_fifos(_with_slack(chosen, device), ports, device)
            if eased_interval < interval and budget.holds(total_resources(eased)):
                blocks = eased
        used = total_resources(blocks)
        if not budget.holds(used):
            search = search.with_less(
                Resources(lut=max(0, used.lut - budget.lut), bram=max(0, used.bram - budget.bram))
            )
            continue
        blocks, times = shrink_fifos(blocks, ports, device)
        if limit is None or wanted is None or times.interval <= wanted:
            return _Design(blocks, times)
        # Bursts between layers cost some cycles more than the slowest layer: aim lower.
        limit = min(limit - 1, limit * wanted // times.interval)


def _with_slack(blocks: Sequence[Block], device: Device) -> tuple[Block, ...]:
    """Add FIFOs for the beats that come while a block takes none.

    Otherwise a layer before it that has no such cycles to lose does lose some.
    """
    interval = max(block.cycles for block in blocks)
    # Most cycles that a layer takes of those between a stream and the arrays before it.
    supply: dict[str, int] = {}
    eased = []
    for block in blocks:
        before = max(supply.get(source.tensor, 0) for source in block.sources)
        supply[block.tensor] = max(block.cycles, 0 if block.multipliers else before)
        image = block.layer.image
        if image and block.pause and before > 0 and before + block.pause > interval:
            beats = -(-block.pause * image.beats // interval)
            depth = fifo_depths(block, 0, beats + SLACK_MARGIN, device)[-1]
            block = block.with_fifos([depth])
        eased.append(block)
    return tuple(eased)


def budget_of(device: Device, link: Resources, share: float) -> Budget:
    """Return what the host link leaves of a device, of whose LUTs that share may be used."""
    return Budget(
        lut=int(device.lut * share) - link.lut,
        dsp=device.dsp,
        bram=device.bram - link.bram,
        spram=device.spram,
    )


def border_resources(
    network: LayerGraph, target: Target, layer_counters: bool = False
) -> Resources:
    """Host link and the skid buffers at the accelerator's border."""
    ports = (*network.inputs, *network.outputs)
    link = Resources(lut=target.link_lut, ff=target.link_lut // 2, bram=target.link_bram)
    if layer_counters:
        link += sum([LAYER_COUNTERS] * len(network.layers), Resources())
    if target.link_lut:
        for port in queued_ports(network.inputs, network.outputs):
            queue = make_fifo(port.bits, port.signed, port.queue_depth, port.beats, target.device)
            link += queue.resources(target.device) + TENSOR_LINK
    return sum((Skid(bits=port.bits + 1).resources(target.device) for port in ports), link)


def _misfit(
    graph: Graph,
    network: LayerGraph,
    options: Sequence[Sequence[Block]],
    target: Target,
    target_fps: float | None,
    clock: float,
    layer_counters: bool,
) -> TargetError:
    """Say with numbers why nothing fits, and what would."""
    device = target.device
    link = border_resources(network, target, layer_counters)
    budget = budget_of(device, link, LUT_SHARE)
    smallest = [min(layer, key=lambda b: _least_memory(b, device)) for layer in options]
    weight_bytes = sum(
        -(-layer.weights_of_model * layer.weight_bits // 8) for layer in network.layers
    )
    floor = max(min(block.cycles for block in layer) for layer in options)
    if target_fps is not None and Search(options, budget, device, supply=False).feasible:
        return TargetError(
            f"model {graph.name!r} does not reach {target_fps:g} inferences/s on {target.name} "
            f"at {clock:g} MHz; no folding that fits takes so few cycles",
            remedy=f"ask for less; {clock * 1e6 / floor:.0f} is the most any folding would give",
        )
    used = total_resources(smallest)
    fitting = _boards_that_fit(network, target, layer_counters)
    where = f"it fits {', '.join(fitting)}" if fitting else "no board known here is big enough"
    fifos = ", before the FIFOs between its branches" if budget.holds(used) else ""
    return TargetError(
        f"model {graph.name!r} does not fit {target.name} ({device.name}): it needs "
        f"{weight_bytes} bytes of weights ({weight_bytes / 1000:.0f} KB) and has "
        f"{device.ram_bytes} bytes of block RAM ({device.ram_bytes / 1000:.0f} KB); the smallest "
        f"folding takes {used.bram} of {budget.bram} block RAMs and {used.lut} of "
        f"{budget.lut} LUTs left beside the host link{fifos}",
        remedy=f"use a bigger board ({where}), fewer weights, or narrower ones",
    )


def _boards_that_fit(network: LayerGraph, refused: Target, layer_counters: bool) -> list[str]:
    """Name the boards that a network fits, given one that it does not."""
    enough: list[Device] = []
    too_small = [refused.device]
    # What fits a device fits a larger one of its family; the largest tells if any is enough.
    first, *others = sorted(BOARDS, key=lambda board: -board.device.lut)
    for target in (first, *reversed(others)):
        device = target.device
        if any(map(device.is_within, too_small)) or any(d.is_within(device) for d in enough):
            continue
        (enough if _fits(network, target, layer_counters) else too_small).append(device)
    return [b.name for b in BOARDS if any(d.is_within(b.device) for d in enough)]


def _fits(network: LayerGraph, target: Target, layer_counters: bool) -> bool:
    device = target.device
    options = [layer_options(layer, device) for layer in network.layers]
    link = border_resources(network, target, layer_counters)
    budget = budget_of(device, link, LUT_SHARE)
    return Search(options, budget, device, supply=False).feasible


def _least_memory(block: Block, device: Device) -> float:
    used = block.resources
    return used.bram / device.bram + 0.02 * used.lut / device.lut
