"""Folding solver: the smallest initiation interval that fits the board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

from nnef_hw.errors import TargetError
from nnef_hw.ir import Graph
from nnef_hw.schedule.beats import simulate_beats, size_fifos
from nnef_hw.schedule.layers import ConvLayer, DepthwiseLayer, LayerGraph
from nnef_hw.schedule.lower import lower
from nnef_hw.schedule.options import layer_options
from nnef_hw.schedule.plan import Block, Plan, Port, Resources
from nnef_hw.schedule.resources import LUT_SHARE, block_resources, port_resources
from nnef_hw.schedule.targets import TARGETS, Device, Target

__all__ = ["schedule"]

MULTIPLIER_LOAD = 0.003
# Weights of (LUT, DSP, block RAM) shares when options are compared; each finds other designs.
PREFERENCES = tuple(
    (lut, dsp, bram)
    for lut, dsp, bram in product((0.02, 0.3, 1.0), repeat=3)
    if max(lut, dsp, bram) == 1.0
)


@dataclass(frozen=True, slots=True)
class _Budget:
    """What the layers may use together."""

    lut: int
    dsp: int
    bram: int

    def holds(self, used: Resources) -> bool:
        return used.lut <= self.lut and used.dsp <= self.dsp and used.bram <= self.bram

    def overrun(self, used: Resources) -> Resources | None:
        """Return by how much LUTs and block RAMs do not suffice, None if they do."""
        if self.holds(used):
            return None
        return Resources(lut=max(0, used.lut - self.lut), bram=max(0, used.bram - self.bram))

    def less(self, other: Resources) -> _Budget:
        return replace(self, lut=self.lut - other.lut, bram=self.bram - other.bram)


def schedule(
    graph: Graph, target: Target, *, clock_mhz: float | None = None, target_fps: float | None = None
) -> Plan:
    """Choose folding, memories and multipliers for every layer of a fixed graph.

    Minimises the initiation interval; with ``target_fps`` it takes the smallest design that reaches
    it at the clock instead.

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
    link = _border_resources(network, target)
    options = [layer_options(layer, device) for layer in network.layers]
    budget = _budget(device, link)
    wanted = None if target_fps is None else int(clock * 1e6 / target_fps)
    input_port, output_port = _ports(network)
    limit = wanted
    without_fifos = budget
    while True:
        chosen = _solve(options, without_fifos, device, limit)
        if chosen is None:
            raise _misfit(graph, network, options, budget, target, target_fps, clock)
        blocks = _with_fifos(chosen, input_port, output_port, device)
        overrun = budget.overrun(_total(blocks))
        if overrun:
            without_fifos = without_fifos.less(overrun)
            continue
        times = simulate_beats(blocks, input_port, output_port)
        if wanted is None or limit is None or times.interval <= wanted:
            break
        # Bursts between layers cost some cycles more than the slowest layer: aim lower.
        limit = min(limit - 1, limit * wanted // times.interval)
    return Plan(
        model=graph.name,
        board=target.name,
        device=device.name,
        clock_mhz=clock,
        input=input_port,
        output=output_port,
        blocks=blocks,
        interval=times.interval,
        latency=times.latency,
        link=link,
    )


def _with_fifos(
    chosen: Sequence[Block], input_port: Port, output_port: Port, device: Device
) -> tuple[Block, ...]:
    """Add the FIFOs in front of blocks with several operands."""
    if all(len(block.sources) < 2 for block in chosen):
        return tuple(chosen)
    blocks = size_fifos(chosen, input_port, output_port)
    return tuple(replace(block, resources=block_resources(block, device)) for block in blocks)


def _budget(device: Device, link: Resources) -> _Budget:
    """Return what the host link leaves of a device."""
    return _Budget(
        lut=int(device.lut * LUT_SHARE) - link.lut,
        dsp=device.dsp,
        bram=device.bram - link.bram,
    )


def _ports(network: LayerGraph) -> tuple[Port, Port]:
    first, final = network.input_tensor, network.output_tensor
    assert first.qtype is not None
    assert final.qtype is not None
    return (
        Port(first.name, network.input_image, first.qtype.bits, first.qtype.signed),
        Port(final.name, network.output_image, final.qtype.bits, final.qtype.signed),
    )


def _border_resources(network: LayerGraph, target: Target) -> Resources:
    """Host link and the skid buffers at the accelerator's border."""
    ports = _ports(network)
    link = Resources(lut=target.link_lut, ff=target.link_lut // 2, bram=target.link_bram)
    return sum((port_resources(port.bits) for port in ports), link)


def _solve(
    options: Sequence[Sequence[Block]], budget: _Budget, device: Device, limit: int | None
) -> list[Block] | None:
    """Return the cheapest blocks at the least feasible interval (or at ``limit``), or None."""
    costs = sorted({block.cycles for layer in options for block in layer})
    floor = max(min(block.cycles for block in layer) for layer in options)
    if limit is not None:
        return _choose(options, limit, budget, device) if limit >= floor else None
    candidates = [cost for cost in costs if cost >= floor]
    low, high = 0, len(candidates) - 1
    best = _choose(options, candidates[high], budget, device)
    while best is not None and low < high:
        middle = (low + high) // 2
        found = _choose(options, candidates[middle], budget, device)
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best


def _choose(
    options: Sequence[Sequence[Block]], interval: int, budget: _Budget, device: Device
) -> list[Block] | None:
    """Pick one option per layer within the interval: of all preferences, the one with most room."""
    allowed = [[block for block in layer if block.cycles <= interval] for layer in options]
    best: list[Block] | None = None
    best_load = 0.0
    for weights in PREFERENCES:
        chosen = [min(layer, key=lambda b: _cost(b, weights, device)) for layer in allowed]
        chosen = _relieve_dsp(chosen, allowed, budget, device, weights)
        used = _total(chosen)
        if not budget.holds(used):
            continue
        # Multipliers in DSP blocks are cheap, idle ones are not.
        load = _load(used, (1.0, 0.1, 1.0), device)
        load += MULTIPLIER_LOAD * sum(block.multipliers for block in chosen)
        if best is None or load < best_load:
            best, best_load = chosen, load
    return best


def _load(resources: Resources, weights: tuple[float, float, float], device: Device) -> float:
    lut, dsp, bram = weights
    return (
        lut * resources.lut / device.lut
        + dsp * resources.dsp / device.dsp
        + bram * resources.bram / device.bram
    )


def _cost(block: Block, weights: tuple[float, float, float], device: Device) -> float:
    return _load(block.resources, weights, device) + MULTIPLIER_LOAD * block.multipliers


def _relieve_dsp(
    chosen: list[Block],
    allowed: Sequence[Sequence[Block]],
    budget: _Budget,
    device: Device,
    weights: tuple[float, float, float],
) -> list[Block]:
    """Move layers to LUT multipliers, fewest LUTs first, until the DSP blocks suffice."""
    moved = list(chosen)
    while _total(moved).dsp > budget.dsp:
        alternatives = []
        for n, block in enumerate(moved):
            others = [b for b in allowed[n] if b.resources.dsp < block.resources.dsp]
            if others:
                other = min(others, key=lambda b: _load(b.resources, weights, device))
                saved = block.resources.dsp - other.resources.dsp
                alternatives.append(((other.resources.lut - block.resources.lut) / saved, n, other))
        if not alternatives:
            break
        _, index, other = min(alternatives, key=lambda entry: entry[:2])
        moved[index] = other
    return moved


def _total(blocks: Iterable[Block]) -> Resources:
    return sum((block.resources for block in blocks), Resources())


def _misfit(
    graph: Graph,
    network: LayerGraph,
    options: Sequence[Sequence[Block]],
    budget: _Budget,
    target: Target,
    target_fps: float | None,
    clock: float,
) -> TargetError:
    """Say with numbers why nothing fits, and what would."""
    device = target.device
    smallest = [
        min(layer, key=lambda b: _load(b.resources, (0.02, 0.02, 1.0), device)) for layer in options
    ]
    weight_bytes = sum(
        -(-layer.parameters * layer.weight_bits // 8)
        for layer in network.layers
        if isinstance(layer, ConvLayer | DepthwiseLayer)
    )
    floor = max(min(block.cycles for block in layer) for layer in options)
    if target_fps is not None and _solve(options, budget, device, None) is not None:
        return TargetError(
            f"model {graph.name!r} does not reach {target_fps:g} inferences/s on {target.name} "
            f"at {clock:g} MHz; no folding that fits takes so few cycles",
            remedy=f"ask for less; {clock * 1e6 / floor:.0f} is the most any folding would give",
        )
    used = _total(smallest)
    fitting = [other.name for other in TARGETS if other is not target and _fits(network, other)]
    where = f"it fits {', '.join(fitting)}" if fitting else "no board known here is big enough"
    return TargetError(
        f"model {graph.name!r} does not fit {target.name} ({device.name}): it needs "
        f"{weight_bytes} bytes of weights ({weight_bytes / 1000:.0f} KB) and has "
        f"{device.ram_bytes} bytes of block RAM ({device.ram_bytes / 1000:.0f} KB); the smallest "
        f"folding takes {used.bram} of {budget.bram} block RAMs and {used.lut} of "
        f"{budget.lut} LUTs left beside the host link",
        remedy=f"use a bigger board ({where}), fewer weights, or narrower ones",
    )


def _fits(network: LayerGraph, target: Target) -> bool:
    device = target.device
    options = [layer_options(layer, device) for layer in network.layers]
    budget = _budget(device, _border_resources(network, target))
    return _solve(options, budget, device, None) is not None
