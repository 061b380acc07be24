"""The size of the array: the fastest engine that fits a target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

from nnef_hw.engine.layers.constant import LookupLayer
from nnef_hw.engine.layers.layer import Shape
from nnef_hw.engine.layers.network import Network, lower
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.sizes import sizes
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.timing.residency import feeds
from nnef_hw.errors import ShortageError, TargetError
from nnef_hw.hardware.devices import Device, Resources, Target
from nnef_hw.ir import Graph
from nnef_hw.parts.engine.contraction import MOST_LUT_RAM_WORDS, Matrices
from nnef_hw.parts.engine.residual import TensorSums

__all__ = ["ARCH", "has_room", "schedule_engine", "with_room"]

ARCH = "engine"
"""Name of the architecture."""

RINGS = (1024, 512, 256, 128)
"""Words of weights that may come ahead, where they come from a memory."""
LONG_FRAME = 1 << 20
"""Words of a frame that takes seconds to plan."""
NEAR_RATE = 1.05
"""Cycles per word of such a frame below which a memory is read as fast as it can be.

Rings that are less deep are not tried then.
"""
RESULTS = (1, 2, 4, 8, 16)
"""Results that may leave per cycle, at most the lanes, one by one where single-port RAM is used."""
UNIT_PACES = (2, 4, 8, 16)
"""Cycles per code that units may take, instead of one, which have fewer stages then."""
RESULT_CYCLES = {4: 24.0, 8: math.inf}
"""Cycles in which a result of a small array may leave, where LUTs are short: up to a clock.

A larger array has more results per pass, which would take as long as with fewer rows. With 4 cycles
factors of 18 bits have 6 in a cycle: their adders, one behind the other, reach 25 MHz on a UP5K.
Digits of arrays of 2x2 and 4x2 are no longer than that: of ``6 * 25 / MHz`` bits at most.
"""
LEAST_GAIN = 0.97
"""How many times as many cycles twice as many results, or pixels in units, may take, at most."""
_NAMES = {"lut": "LUTs", "dsp": "DSP blocks", "bram": "block RAMs", "spram": "single-port RAMs"}
_LEAST_PRODUCTS = 16
MOST_CROWDED = 1.1
"""How many times as many cycles are given for room in the device, at most."""
WORTH_LOGIC = 1.05
"""How many times as many cycles are given for fewer multipliers in logic, at most."""
LUT_SHARE = 0.95
"""Share of the device's LUTs that placement can be trusted to use."""


def schedule_engine(
    graph: Graph,
    target: Target,
    *,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    batch: int = 1,
) -> EnginePlan:
    """Choose the array with the fewest cycles, or the smallest one for a frame rate.

    It computes ``batch`` frames together.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the engine does not run the network.
    TargetError
        If no array fits, or none is fast enough.
    """
    network = lower(graph, target.device)
    # Of what a head takes few arrays leave enough.
    is_small = target_fps is not None or any(x.head for x in network.sources)
    plans = list(_plans(network, target, clock_mhz, batch, small=is_small))
    fitting = [plan for plan in plans if not list(_short(plan.resources, target.device))]
    if not fitting:
        raise _misfit(plans, target)
    fitting = _frugal(_comfortable(fitting, target.device), target.device)
    best = min(fitting, key=lambda plan: (plan.interval, plan.multipliers, _together(plan)))
    if target_fps is None:
        return best
    wanted = int(best.clock_mhz * 1e6 / target_fps)
    enough = [plan for plan in fitting if plan.interval <= wanted]
    if not enough:
        raise ShortageError(
            f"model {graph.name!r} does not reach {target_fps:g} inferences/s on {target.name} at "
            f"{best.clock_mhz:g} MHz ({wanted:,} cycles each)",
            ARCH,
            f"no array that fits takes fewer than {best.interval:,} cycles",
        )
    return min(enough, key=lambda plan: (plan.multipliers, plan.resources.lut, plan.interval))


def _together(plan: EnginePlan) -> int:
    """Return how many results leave per cycle."""
    return plan.design.shape.results


def _comfortable(fitting: list[EnginePlan], device: Device) -> list[EnginePlan]:
    """Return the plans that leave placement room, if one of them is nearly as fast as any.

    A design that fills more of the device has a slower clock, but not by so much.
    """
    most = device.lut * device.lut_share
    found = [plan for plan in fitting if plan.resources.lut <= most]
    least = min(plan.interval for plan in fitting)
    is_near = any(plan.interval <= MOST_CROWDED * least for plan in found)
    return found if is_near else fitting


def _frugal(fitting: list[EnginePlan], device: Device) -> list[EnginePlan]:
    """Return the plans with no more multipliers in logic than one that is nearly the fastest.

    Only of a device that has them beside DSP blocks: each takes a hundred LUTs, which slow down
    the clock.
    """
    if not device.mixes_products:
        return fitting
    least = min(plan.interval for plan in fitting)
    near = (plan for plan in fitting if plan.interval <= WORTH_LOGIC * least)
    most = min(plan.design.engine.array.in_logic for plan in near)
    return [plan for plan in fitting if plan.design.engine.array.in_logic <= most]


def _plans(
    network: Network,
    target: Target,
    clock_mhz: float | None,
    batch: int = 1,
    *,
    small: bool = False,
) -> Iterator[EnginePlan]:
    """Yield engines of every size, with as many results per cycle as save cycles."""
    device = target.device
    for size in sizes(network, device, small=small):
        least: int | None = None
        ways = 1
        for results in RESULTS if not device.spram else RESULTS[:1]:
            if results > size.lanes:
                break
            shape = size._replace(results=results)
            plans = list(_with_shape(network, shape, target, clock_mhz, batch, ways))
            fitting = [plan for plan in plans if not list(_short(plan.resources, device))]
            fastest = min(fitting, key=lambda plan: plan.interval, default=None)
            is_worth = fastest and (least is None or fastest.interval <= LEAST_GAIN * least)
            if fastest is None or not is_worth:
                yield from plans if least is None else ()
                break
            yield from plans
            # What is fast beside few results is worth as much beside more, or there is no room.
            least, ways = fastest.interval, max(1, fastest.design.unit_ways // 2)


def _with_shape(
    network: Network, size: Shape, target: Target, clock_mhz: float | None, batch: int, ways: int
) -> Iterator[EnginePlan]:
    """Yield engines of a size; where LUTs are short, with fewer rows that slide, too.

    Parameters
    ----------
    ways
        Pixels that pass units at once, at least if there is room for so many.
    """
    shape: Shape | None = size
    while shape is not None:
        loaded = target.loads_program
        design = Design(network, shape, target.device, batch=batch, is_loaded=loaded)
        plans = list(_with_units(design.changed(unit_ways=ways), target, clock_mhz))
        yield from plans
        if size.rows * size.lanes <= _LEAST_PRODUCTS and size.results == 1:
            yield from _with_slow_results(design, plans, target, clock_mhz)
        rows = design.program.slide_rows
        is_crowded = _is_crowded(plans, target.device)
        shape = shape._replace(sliding=rows - 1) if rows > 1 and is_crowded else None


def _with_slow_results(
    design: Design, plans: Sequence[EnginePlan], target: Target, clock_mhz: float | None
) -> Iterator[EnginePlan]:
    """Yield a design whose results leave cycles apart, if LUTs are short in all that is faster.

    In ``plans`` they leave one by one. An array of fewer products is for few LUTs in any case.
    """
    device, clock = target.device, clock_mhz or target.clock_mhz
    is_small = design.shape.rows * design.shape.lanes < _LEAST_PRODUCTS
    for cycles in (cycles for cycles, fastest in RESULT_CYCLES.items() if clock <= fastest):
        # Where units take the more cycles the fewer LUTs there are, room for them is worth some.
        has_room = not design.program.units.peers and any(_fits(plan, device) for plan in plans)
        if not is_small and (has_room or not _is_crowded(plans, device)):
            return
        engine = (slow := design.changed(result_cycles=cycles)).engine
        is_quick = not is_small or engine.requantizer.digit_bits * clock <= 6 * 25
        if is_quick and all(x.is_in_time(engine) for x in (engine.find(TensorSums),) if x):
            yield from (plans := list(_with_units(slow, target, clock_mhz)))


def _with_units(design: Design, target: Target, clock_mhz: float | None) -> Iterator[EnginePlan]:
    """Yield a design with units through which as many pixels pass at once as saves cycles.

    Where LUTs are short, with units that take more cycles per code.
    """
    device, ways = target.device, design.unit_ways
    plans = list(_packed(design, target, clock_mhz))
    yield from plans
    if not design.program.units.peers:
        return
    if _is_crowded(plans, device):
        for pace in UNIT_PACES if ways == 1 else (1, *UNIT_PACES):
            slower = design.changed(unit_ways=1, unit_pace=pace)
            plans = list(_packed(slower, target, clock_mhz))
            yield from plans
            if not _is_crowded(plans, device):
                return
        return
    least = min(plan.interval for plan in plans)
    while 2 * ways <= design.shape.lanes:
        ways *= 2
        plans = list(_packed(design.changed(unit_ways=ways), target, clock_mhz))
        fitting = [plan.interval for plan in plans if not list(_short(plan.resources, device))]
        if not fitting or min(fitting) > LEAST_GAIN * least:
            return
        yield from plans
        least = min(fitting)


def _is_crowded(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether any of these plans leaves too few LUTs for placement."""
    return any(plan.resources.lut > device.lut * device.lut_share for plan in plans)


def _packed(design: Design, target: Target, clock_mhz: float | None) -> Iterator[EnginePlan]:
    """Yield a design with both ways to keep weights, and all to feed it.

    Where anything is short, with matrices behind the weights, if all of these are in block RAM;
    where block RAMs alone are, in LUT RAM, too.
    """
    plans = [x for own in packings(design) for x in _fed(own, target, clock_mhz)]
    yield from plans
    may_share = design.engine.has(Matrices) and not design.is_loaded
    if may_share and not any(_fits(plan, target.device) for plan in plans):
        for own in packings(design.changed(dense=True)):
            yield EnginePlan.of(own, target, clock_mhz)
    if _wants_lut_ram(plans, target.device):
        own = design.changed(lut_matrices=True)
        yield from (x for y in packings(own) for x in _fed(y, target, clock_mhz))


def _fits(plan: EnginePlan, device: Device) -> bool:
    """Whether a device has all that a plan takes."""
    return not list(_short(plan.resources, device))


def _wants_lut_ram(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether designs lack block RAMs alone, of which matrices need not take any."""
    matrices = [plan.design.engine.find(Matrices) for plan in plans]
    are_deep = all(found is None or found.words > MOST_LUT_RAM_WORDS for found in matrices)
    if are_deep or not device.family.has_lut_ram:
        return False
    lacks = [{name for name, *_ in _short(plan.resources, device)} for plan in plans]
    return {"bram"} in lacks and set() not in lacks


def packings(design: Design) -> Iterator[Design]:
    """Yield a design with a byte for each weight, and one with two in a byte if any are so small.

    Of engines that are as fast the first one is taken, which has fewer LUTs.
    """
    yield design
    if any(layer.has_narrow_weights for layer in design.layers):
        yield design.changed(packs_weights=True)


def _fed(design: Design, target: Target, clock_mhz: float | None) -> Iterator[EnginePlan]:
    """Yield the ways to feed an engine: all in block RAM, or from a memory."""

    def fits(design: Design) -> bool:
        return EnginePlan.of(design, target, clock_mhz).resources.bram <= target.device.bram

    yield EnginePlan.of(design, target, clock_mhz)
    for store in stores(target, clock_mhz or target.clock_mhz):
        is_long = _has_long_tables(design)
        own = design.changed(
            store=store, keeps_tables=is_long and not store.finds_rows,
            addresses_tables=is_long and store.finds_rows,
        )  # fmt: skip
        plans = list(_rings(own, target, clock_mhz))
        fitting = [plan for plan in plans if not list(_short(plan.resources, target.device))]
        # Of those that do not fit, the one that lacks least.
        yield from fitting or plans[-1:]
        for plan in fitting:
            for kept in islice(feeds(plan.design, fits), 1, None):
                yield EnginePlan.of(kept, target, clock_mhz)


def _has_long_tables(design: Design) -> bool:
    """Whether no ring has room for a table, of which an integer chooses a row."""
    tables = (layer for layer in design.layers if isinstance(layer, LookupLayer))
    longest = max((table.weight_words(design.shape) for table in tables), default=0)
    return longest > RINGS[0] and design.batch == 1


def _rings(design: Design, target: Target, clock_mhz: float | None) -> Iterator[EnginePlan]:
    """Yield engines whose program comes from a memory, the deepest ring first.

    It is not always the fastest: the ring decides into which parts layers are divided.
    """
    assert design.store is not None
    for words in RINGS:
        with_ring = design.changed(ring_words=words)
        try:
            if not design.store.fits(with_ring.packets.image_words):
                continue
            with_ring = with_room(with_ring, target, clock_mhz)
        except TargetError:
            return
        packets = with_ring.packets
        if design.store.fits(packets.image_words):
            plan = EnginePlan.of(with_ring, target, clock_mhz)
            yield plan
            is_long = packets.frame_words >= LONG_FRAME
            if is_long and plan.interval <= NEAR_RATE * packets.frame_words * packets.beat_cycles:
                return


def with_room(design: Design, target: Target, clock_mhz: float | None) -> Design:
    """Return the design with as few layers frame by frame as it takes for a batch to have room.

    The first layers' tensors are large, and their weights few.
    """
    plan = EnginePlan.of(design, target, clock_mhz)
    spare = target.device.bram - plan.resources.bram + design.placement.code_blocks
    placement = design.placement
    if design.batch == 1 or placement.banks is not None or placement.code_blocks <= spare:
        return design
    trials = (design.changed(frame_by_frame=n) for n in range(1, len(design.layers)))
    return next((trial for trial in trials if trial.placement.code_blocks <= spare), design)


def has_room(graph: Graph, target: Target) -> bool:
    """Whether a target has memory for the weights of a fixed graph, in an array of some shape."""
    network = lower(graph, target.device)
    if any(stores(target, target.clock_mhz)):
        return True
    tried = sizes(network, target.device)
    designs = [own for x in tried for own in packings(Design(network, x, target.device))]
    engines = [design.engine for design in designs]
    counts = [engine.supply.weight_memories(engine)[0].count for engine in engines]
    return min(counts) <= target.device.bram


def _short(used: Resources, device: Device) -> Iterator[tuple[str, int, int]]:
    """Yield the resources that do not suffice: name, wanted and what a design can use."""
    for name in _NAMES:
        wanted, usable = getattr(used, name), getattr(device, name)
        if name == "lut":
            usable = int(usable * LUT_SHARE)
        if wanted > usable:
            yield name, wanted, usable


def _misfit(plans: list[EnginePlan], target: Target) -> ShortageError:
    """Say which resources the array would take that lacks least."""

    def excess(plan: EnginePlan) -> float:
        short = _short(plan.resources, target.device)
        return max(wanted / max(usable, 1) for _, wanted, usable in short)

    plan = min(plans, key=excess)
    design = plan.design
    reasons = [
        f"{wanted:,} {_NAMES[name]} of {usable:,}"
        + (f" ({LUT_SHARE:.0%} of all) that can be placed" if name == "lut" else "")
        for name, wanted, usable in _short(plan.resources, target.device)
    ]
    kept = []
    if not design.ring_words:
        kept.append(f"{sum(layer.weight_bytes for layer in design.layers):,} bytes of weights")
    if not design.engine.codes.single_port:
        size, layer = design.placement.peak
        frames = f" of {design.batch} frames" if design.batch > 1 else ""
        kept.append(f"{size:,} bytes of codes{frames}, as layer {layer!r} runs,")
    why = f"; {' and '.join(kept)} are kept in block RAM" if kept else ""
    ram = target.device.single_port
    if ram and not design.engine.codes.single_port:
        banks = target.device.spram * ram.depth * ram.width // 8
        why += f"; its single-port RAMs hold {banks:,}, half of them what a layer reads"
    return ShortageError(
        f"model {plan.model!r} does not fit {target.name} ({target.device.name})",
        ARCH,
        f"an array of {design.shape.rows} x {design.shape.lanes} takes "
        f"{' and '.join(reasons)}{why}",
    )
