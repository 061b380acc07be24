"""Folding solver: the smallest initiation interval that fits the board."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import LUT_SHARE, Device, Resources, Target
from nnef_hw.ir import Graph
from nnef_hw.streaming.beats.beats import BeatTimes
from nnef_hw.streaming.beats.fifos import (
    Ports,
    Sized,
    fifo_depths,
    give_fifos,
    roomy_depth,
    shrink_fifos,
)
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import (
    Budget,
    border_resources,
    budget_of,
    queue_resources,
    total_resources,
)
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import LayerGraph, StreamingPlan
from nnef_hw.streaming.foldings.siblings import apart
from nnef_hw.streaming.search.lanes import Wide, wider
from nnef_hw.streaming.search.latency import check_latency, soonest
from nnef_hw.streaming.search.loop_search import shorten_loops
from nnef_hw.streaming.search.misfit import Misfit, weight_bits, weight_room
from nnef_hw.streaming.search.options import network_options
from nnef_hw.streaming.search.search import Search, faster_limit
from nnef_hw.streaming.search.width import Width, useful_widths

__all__ = ["schedule"]

SLACK_MARGIN = 2
MOST_TRIALS = 3
"""Designs with shorter loops whose FIFOs are tried."""

_Simulated = dict[Hashable, Sized]
"""Blocks with their FIFOs, by what of the blocks alone matters to when items move."""

_DepthOf = Callable[[Block, int, int, Device], int]
"""The depth of a FIFO for an operand that holds so many items."""


class _Setting(NamedTuple):
    """Where a design is to fit, and how many cycles it may take; None for as few as can be.

    ``simulated`` keeps the results of simulations.
    """

    budget: Budget
    ports: Ports
    device: Device
    wanted: int | None
    simulated: _Simulated


class _Design(NamedTuple):
    """Blocks with their FIFOs, and what the simulation of their beats gave."""

    blocks: tuple[Block, ...]
    times: BeatTimes

    @property
    def slowest(self) -> int:
        """Cycles that the slowest layer takes."""
        return max(block.cycles for block in self.blocks)


def schedule(
    graph: Graph,
    target: Target,
    *,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    layer_counters: bool = False,
    by_latency: bool = False,
) -> StreamingPlan:
    """Choose folding, memories and multipliers for every layer of a fixed graph.

    Minimises the initiation interval; with ``target_fps`` it takes the smallest design that reaches
    it at the clock instead. ``layer_counters`` have to fit as well. ``by_latency`` takes the least
    latency in place of the interval, and the frame rate is that of frames that wait for each other.

    Gates of recurrent cells are a layer each where these fit, otherwise one layer for all; the
    other way round with ``target_fps``.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the network cannot be streamed.
    TargetError
        If no folding fits the board, or none is fast enough.
    """
    forms = [apart(graph), graph]
    if target_fps is not None:
        forms.reverse()
    first, last = forms
    if first is not last:
        try:
            plan = _schedule(first, target, clock_mhz, target_fps, layer_counters, by_latency)
            return replace(plan, apart=first is not graph)
        except TargetError:
            pass  # the other form may do, and says what is missing if not
    plan = _schedule(last, target, clock_mhz, target_fps, layer_counters, by_latency)
    return replace(plan, apart=last is not graph)


def _schedule(
    graph: Graph,
    target: Target,
    clock_mhz: float | None,
    target_fps: float | None,
    layer_counters: bool,
    by_latency: bool,
) -> StreamingPlan:
    """Plan a fixed graph as it is."""
    clock = clock_mhz or target.clock_mhz
    network = lower(graph).at_clock(clock)
    device = target.device
    if target_fps is None:
        weight_room(target).check(graph.name, weight_bits(network), target)
    wanted = None if target_fps is None else int(clock * 1e6 / target_fps)
    layers, design = network, None
    for width in _widths(network, target, layer_counters, wanted):
        widened = _fastest(width, device, wanted)
        if design is None or (widened and widened.times.interval < design.times.interval):
            network, design = width.network, widened
        if _reaches(design, width.enough):
            break
    if not _reaches(design, wanted):
        options = network_options(layers, device)
        misfit = Misfit(graph.name, network, target, layer_counters, options)
        if target_fps is not None and misfit.feasible:
            raise misfit.too_slow(target_fps, clock, design and design.times.interval)
        design = _smallest(misfit, (network.inputs, network.outputs))
    assert design is not None
    if by_latency:
        design = _Design(*soonest(*design, network, target, layer_counters))
    blocks, times = design
    if by_latency and wanted is not None:
        check_latency(times.latency, wanted, graph.name, target, clock)
    assert times.steady is not None
    return StreamingPlan(
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


def _reaches(design: _Design | None, wanted: int | None) -> bool:
    """Whether there is a design, and if so, of few enough cycles."""
    return design is not None and (wanted is None or design.times.interval <= wanted)


def _faster(designs: Iterable[_Design | None]) -> _Design | None:
    """Return the fastest of some designs, the first of equals; None if there are none."""
    found = (design for design in designs if design is not None)
    return min(found, key=lambda design: design.times.interval, default=None)


def _widths(
    network: LayerGraph, target: Target, layer_counters: bool, wanted: int | None
) -> Iterator[Width]:
    """Yield the network with streams of every width that is worth a try, until one does.

    Where no rate is wanted, those come first with which it is fastest. For a rate, streams of one
    code per beat come first, then wider ones; and designs that are easily placed come before all
    that fill the device further.
    """
    if wanted is None:
        yield from useful_widths(network, target, layer_counters)
        return
    narrow, tried = Wide(network, network_options(network, target.device)), []
    for wide in chain([narrow], wider(network, target, wanted)):
        roomy, full = _budgets(wide.network, target, layer_counters)
        tried.append(Width(*wide, (full,), wanted))
        yield Width(*wide, (roomy,), wanted)
    yield from tried


def _budgets(network: LayerGraph, target: Target, layer_counters: bool) -> tuple[Budget, Budget]:
    """Return the budgets of a design that is easily placed, and of any that can be."""
    link = border_resources(network, target, layer_counters)
    roomy, full = (
        budget_of(target.device, link, share) for share in (target.device.stream_share, LUT_SHARE)
    )
    return roomy, full


def _fastest(width: Width, device: Device, wanted: int | None) -> _Design | None:
    """Return the best design with streams of a width, of the first budget with one.

    A design that fills more of the device than its share is slow, but better than none. Where none
    takes as few cycles as wanted, the fastest one that was tried.
    """
    ports = (width.network.inputs, width.network.outputs)
    fastest = None
    for budget in width.budgets:
        found = _of_budget(width.options, budget, ports, device, wanted)
        fastest = _faster([fastest, found])
        if _reaches(fastest, wanted):
            break
    return fastest


def _of_budget(
    options: Sequence[Sequence[Block]],
    budget: Budget,
    ports: Ports,
    device: Device,
    wanted: int | None,
) -> _Design | None:
    """Return the better one of two that fit: words come slowly to it, or all as soon as they can.

    The second is looked for if the first has waits.
    """
    fastest = None
    setting = _Setting(budget, ports, device, wanted, {})
    for steady_words in (True, False):
        search = Search(options, budget, device, steady_words=steady_words)
        unqueued = search.best() if wanted is None else search.within(wanted)
        if unqueued is None:
            continue
        predicted = max(block.cycles for block in unqueued)
        if fastest and fastest.times.interval <= max(predicted, wanted or 0):
            break
        fastest = _faster([fastest, _design(unqueued, search, setting)])
    return fastest


def _shortened(design: _Design, options: Sequence[Sequence[Block]], setting: _Setting) -> _Design:
    """Return a faster design, if a loop bounds this one's interval and there is one that fits.

    One whose interval is wanted does.
    """
    budget, ports, device, enough, _ = setting
    is_looped = any(block.closes_loop for block in design.blocks)
    if not is_looped or design.times.interval <= max(enough or 0, design.slowest):
        return design
    queues = queue_resources(design.blocks, device)
    for _ in range(MOST_TRIALS):
        blocks = shorten_loops(design.blocks, options, queues, budget, ports, device, enough)
        if blocks is None:
            break
        sized = give_fifos(_with_pause_fifos(blocks, device, _least_depth), ports, device)
        found = sized.blocks
        if budget.holds(total_resources(found)):
            shorter = _Design(*shrink_fifos(sized, ports, device))
            found = shorter.blocks
            if budget.holds(total_resources(found)):
                return min(design, shorter, key=lambda design: design.times.interval)
        queues = queue_resources(found, device)
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


def _design(chosen: Sequence[Block], search: Search, setting: _Setting) -> _Design | None:
    """Return the best design with its FIFOs, None if none fits; ``chosen`` are its layers alone.

    Bursts between layers cost some cycles more than the slowest layer: where it takes more than
    are wanted, faster layers are tried.
    """
    wanted = limit = setting.wanted
    fastest, is_first = None, True
    foldings: Sequence[Block] | None = chosen
    while foldings is not None:
        found = _queued(foldings, limit, search, setting)
        if found is None:
            break
        design, beside = found
        fastest = _faster([fastest, design])
        if wanted is None or limit is None or _reaches(design, wanted):
            break
        interval, least = design.times.interval, beside.least()
        limit = faster_limit(limit, interval, wanted, least, halfway=is_first)
        is_first = False
        foldings = search.within(limit)
    return fastest


def _queued(
    chosen: Sequence[Block], limit: int | None, search: Search, setting: _Setting
) -> tuple[_Design, Search] | None:
    """Return the best design whose layers take no more cycles than a limit, None if none fits.

    FIFOs for pauses are as small as they seem to do, or else as large as their block RAMs. Where
    they do not fit beside the foldings, smaller foldings are tried with them, and the foldings
    without. ``chosen`` are the foldings of this limit. With the design comes the search that found
    its foldings, as of :func:`_sized`.
    """
    wanted = setting.wanted
    best: tuple[_Design, Search] | None = None
    fits, tried = False, []
    for depth_of in (_least_depth, roomy_depth, None):
        if depth_of is None and fits:
            break
        # Most designs have no FIFOs for pauses that could be deeper.
        buffered = _with_pause_fifos(chosen, setting.device, depth_of)
        if [block.fifos for block in buffered] in tried:
            continue
        tried.append([block.fifos for block in buffered])
        found = _sized(limit, depth_of, search, setting)
        if found is None:
            continue
        design, beside = found
        fits = fits or beside is search
        if best is None or design.times.interval < best[0].times.interval:
            best = found
        enough = wanted or best[0].slowest
        if (fits or wanted) and best[0].times.interval <= enough:
            break
    return best


def _sized(
    limit: int | None, depth_of: _DepthOf | None, search: Search, setting: _Setting
) -> tuple[_Design, Search] | None:
    """Return the first design that fits, and the search that found its foldings.

    That is one with a smaller budget where FIFOs did not fit beside the first foldings.
    """
    budget, ports, device, *_ = setting
    while (chosen := search.best() if limit is None else search.within(limit)) is not None:
        sized = _with_fifos(_with_pause_fifos(chosen, device, depth_of), setting)
        used = total_resources(sized.blocks)
        if budget.holds(used):
            design = _Design(*shrink_fifos(sized, ports, device))
            # Joins that would wait for each other for ever have got deeper FIFOs.
            used = total_resources(design.blocks)
            if budget.holds(used):
                return _shortened(design, search.options, setting), search
        search = search.with_less(
            Resources(lut=max(0, used.lut - budget.lut), bram=max(0, used.bram - budget.bram))
        )
    return None


def _with_fifos(blocks: tuple[Block, ...], setting: _Setting) -> Sized:
    """Give blocks their FIFOs, by a simulation that is not repeated."""
    key = tuple(block.timing for block in blocks)
    if key not in setting.simulated:
        setting.simulated[key] = give_fifos(blocks, setting.ports, setting.device)
    found = setting.simulated[key]
    pairs = zip(blocks, found.blocks, strict=True)
    return found._replace(blocks=tuple(block.with_fifos(sized.fifos) for block, sized in pairs))


def _least_depth(block: Block, operand: int, items: int, device: Device) -> int:
    """Return the depth of the cheapest FIFO that holds so many items for an operand."""
    return fifo_depths(block, operand, items, device)[-1]


def _with_pause_fifos(
    blocks: Sequence[Block], device: Device, depth_of: _DepthOf | None
) -> tuple[Block, ...]:
    """Add FIFOs for the beats that come while a block takes none, if they are to have a depth.

    Otherwise a layer before it that has no such cycles to lose does lose some.
    """
    if depth_of is None:
        return tuple(blocks)
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
            block = block.with_fifos([depth_of(block, 0, beats + SLACK_MARGIN, device)])
        buffered.append(block)
    return tuple(buffered)
