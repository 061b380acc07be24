"""The size of the array: the fastest engine that fits a target."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.network.network import Network
from nnef_hw.engine.planning.feeding import held, is_at_rate, packings, streamed
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.shortage import fits_device, is_hopeless, misfit, short
from nnef_hw.engine.planning.sizes import sizes
from nnef_hw.engine.program.design import Design
from nnef_hw.errors import ShortageError
from nnef_hw.hardware.devices import Device, Target
from nnef_hw.ir import Graph
from nnef_hw.parts.engine.contraction import MOST_LUT_RAM_WORDS, Matrices
from nnef_hw.parts.engine.residual import TensorSums

__all__ = ["ARCH", "has_room", "schedule_engine"]

ARCH = "engine"
"""Name of the architecture."""

NEARLY_FITS = 1.25
"""How many times a device's block RAMs a design may take that memories without gaps make fit."""
RESULTS = (1, 2, 4, 8, 16)
"""Results that may leave per cycle, at most the lanes, one by one where single-port RAM is used."""
UNIT_PACES = (2, 4, 8, 16)
"""Cycles per code that units may take, instead of one, which have fewer stages then."""
WORD_PACES = (1, 2, 4)
"""Cycles per word that units may take, where that is more than a code per cycle."""
RESULT_CYCLES = {4: 24.0, 8: math.inf}
"""Cycles in which a result of a small array may leave, where LUTs are short: up to a clock.

A larger array has more results per pass, which would take as long as with fewer rows. With 4 cycles
factors of 18 bits have 6 in a cycle: their adders, one behind the other, reach 25 MHz on a UP5K.
Digits of arrays of 2x2 and 4x2 are no longer than that: of ``6 * 25 / MHz`` bits at most.
"""
LEAST_GAIN = 0.97
"""How many times as many cycles twice as many results, or pixels in units, may take, at most."""
_LEAST_PRODUCTS = 16
MOST_CROWDED = 1.1
"""How many times as many cycles are given for room in the device, at most."""
WORTH_LOGIC = 1.05
"""How many times as many cycles are given for fewer multipliers in logic, at most."""


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
    plans = list(_Search(network, target, clock_mhz, batch).plans(small=is_small))
    fitting = [plan for plan in plans if fits_device(plan, target.device)]
    if not fitting:
        raise misfit(plans, target)
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


class _Search:
    """The engines that are tried for a network on a target.

    Parameters
    ----------
    network, target, clock_mhz, batch
        What is computed, where, at which clock, and how many frames together.

    Attributes
    ----------
    fastest
        Cycles of the fastest engine so far that fits; infinite if there is none.
    at_rate
        Whether an engine's long frame comes from a memory as fast as that can be read. A larger
        array gains nothing then, unless all is in block RAM.
    lacking
        Ways to hold all in block RAM that lacked much room where another way had it. A larger array
        has wider memories, so none of these has room there; but fewer gaps in them, perhaps.
    small
        Whether small engines are tried first, since a rate is given: nothing bounds others then.
    """

    def __init__(
        self, network: Network, target: Target, clock_mhz: float | None, batch: int
    ) -> None:
        self.network, self.target, self.clock_mhz, self.batch = network, target, clock_mhz, batch
        self.fastest = math.inf
        self.at_rate = False
        self.lacking: set[_Holding] = set()
        self.small = False

    def _fits(self, plan: EnginePlan) -> bool:
        return fits_device(plan, self.target.device)

    def _note(self, plans: Sequence[EnginePlan]) -> None:
        """Note the fastest of the plans that fit, and what they take less of than others.

        Nothing of it where a rate is given: what a smaller array shows is then no bound.
        """
        if self.small:
            return
        fitting = [plan for plan in plans if self._fits(plan)]
        self.fastest = min([self.fastest, *(plan.interval for plan in fitting)])
        if any(not plan.design.ring_words for plan in fitting):
            most = NEARLY_FITS * self.target.device.bram
            alone = [plan for plan in plans if not plan.design.ring_words]
            roomy = {_holding(x.design) for x in alone if x.resources.bram <= most}
            self.lacking |= {_holding(x.design) for x in alone} - roomy

    def plans(self, *, small: bool) -> Iterator[EnginePlan]:
        """Yield engines of every size, with as many results per cycle as save cycles."""
        device, self.small = self.target.device, small
        tried = sizes(self.network, device, small=small)
        smallest = min(tried, key=lambda size: size.lanes)
        design = Design(self.network, smallest, device)
        if is_hopeless(_sparing(design) or design, self.target):
            tried = (smallest,)
        for size in tried:
            least: int | None = None
            ways = 1
            for results in RESULTS if not device.spram else RESULTS[:1]:
                if results > size.lanes:
                    break
                plans = list(self._with_shape(size._replace(results=results), ways))
                fitting = [plan for plan in plans if self._fits(plan)]
                fastest = min(fitting, key=lambda plan: plan.interval, default=None)
                is_worth = fastest and (least is None or fastest.interval <= LEAST_GAIN * least)
                if fastest is None or not is_worth:
                    yield from plans if least is None else ()
                    break
                yield from plans
                self.at_rate = not small and (self.at_rate or any(map(is_at_rate, fitting)))
                # What is fast beside few results is worth as much beside more, or has no room.
                least, ways = fastest.interval, max(1, fastest.design.unit_ways // 2)

    def _with_shape(self, size: Shape, ways: int) -> Iterator[EnginePlan]:
        """Yield engines of a size; where LUTs are short, with fewer rows that slide, too.

        Parameters
        ----------
        ways
            Pixels that pass units at once, at least if there is room for so many.
        """
        shape: Shape | None = size
        device, loaded = self.target.device, self.target.loads_program
        while shape is not None:
            design = Design(self.network, shape, device, batch=self.batch, is_loaded=loaded)
            plans = list(self._with_units(design.changed(unit_ways=ways)))
            yield from plans
            if size.rows * size.lanes <= _LEAST_PRODUCTS and size.results == 1:
                yield from self._with_slow_results(design, plans)
            rows = design.program.slide_rows
            is_crowded = _is_crowded(plans, device)
            shape = shape._replace(sliding=rows - 1) if rows > 1 and is_crowded else None

    def _with_slow_results(
        self, design: Design, plans: Sequence[EnginePlan]
    ) -> Iterator[EnginePlan]:
        """Yield a design whose results leave cycles apart, if LUTs are short in all that is faster.

        In ``plans`` they leave one by one. An array of fewer products is for few LUTs in any case.
        """
        device, clock = self.target.device, self.clock_mhz or self.target.clock_mhz
        is_small = design.shape.rows * design.shape.lanes < _LEAST_PRODUCTS
        for cycles in (cycles for cycles, fastest in RESULT_CYCLES.items() if clock <= fastest):
            # Where units take the more cycles the fewer LUTs there are, room is worth some.
            has_room = not design.program.units.peers and any(map(self._fits, plans))
            if not is_small and (has_room or not _is_crowded(plans, device)):
                return
            engine = (slow := design.changed(result_cycles=cycles)).engine
            is_quick = not is_small or engine.requantizer.digit_bits * clock <= 6 * 25
            if is_quick and all(x.is_in_time(engine) for x in (engine.find(TensorSums),) if x):
                yield from (plans := list(self._with_units(slow)))

    def _with_units(self, design: Design) -> Iterator[EnginePlan]:
        """Yield a design with as many pixels in units at once as saves cycles, of codes or words.

        Where LUTs are short, with units that take more cycles per code.
        """
        device, ways = self.target.device, design.unit_ways
        plans = list(self._packed(design))
        yield from plans
        if _lacks_block_ram(plans, device) and (sparing := _sparing(design)):
            design = sparing
            plans = list(self._packed(design))
            yield from plans
        if not design.program.units.peers or _lacks_block_ram(plans, device):
            return
        if _is_crowded(plans, device):
            for pace in UNIT_PACES if ways == 1 else (1, *UNIT_PACES):
                plans = list(self._packed(design.changed(unit_ways=1, unit_pace=pace)))
                yield from plans
                if not _is_crowded(plans, device):
                    return
            return
        least = min(plan.interval for plan in plans)
        yield from self._more_at_once(design, least)
        yield from self._taking_words(design)

    def _more_at_once(self, design: Design, least: int) -> Iterator[EnginePlan]:
        """Yield a design with more and more pixels in units at once, while that saves cycles.

        Parameters
        ----------
        least
            Those that it takes itself.
        """
        ways = design.unit_ways
        while 2 * ways <= design.shape.lanes:
            ways *= 2
            plans = list(self._packed(design.changed(unit_ways=ways)))
            fitting = [plan.interval for plan in plans if self._fits(plan)]
            if not fitting or min(fitting) > LEAST_GAIN * least:
                return
            yield from plans
            least = min(fitting)

    def _taking_words(self, design: Design) -> Iterator[EnginePlan]:
        """Yield a design whose units take words, at the least pace with room, if they may."""
        if not design.program.units.may_take_words(design.shape):
            return
        for pace in (pace for pace in WORD_PACES if 2 * pace <= design.shape.lanes):
            own = design.changed(unit_words=True, unit_ways=1, unit_pace=pace)
            plans = list(self._packed(own))
            fitting = [plan.interval for plan in plans if self._fits(plan)]
            if fitting and not _is_crowded(plans, self.target.device):
                yield from plans
                yield from self._more_at_once(own, min(fitting))
                return

    def _packed(self, design: Design) -> Iterator[EnginePlan]:
        """Yield a design with both ways to keep weights, and all to feed it.

        Where anything is short, with matrices behind the weights, if all of these are in block RAM;
        where block RAMs alone are, in LUT RAM, too.
        """
        device, fast = self.target.device, 0.0 if self.at_rate else self.fastest
        plans: list[EnginePlan] = []
        for own in packings(design):
            alone = self._alone(own)
            if not self.small:
                fast = min([fast, *(plan.interval for plan in alone if self._fits(plan))])
            plans += [*alone, *streamed(own, self.target, self.clock_mhz, fast)]
        may_share = design.engine.has(Matrices) and not design.is_loaded
        if may_share and _wants_density(plans, device):
            plans += [x for own in packings(design.changed(dense=True)) for x in self._alone(own)]
        if _wants_lut_ram(plans, device):
            for own in packings(design.changed(lut_matrices=True)):
                plans += [*self._alone(own), *streamed(own, self.target, self.clock_mhz, fast)]
        self._note(plans)
        yield from plans

    def _alone(self, design: Design) -> list[EnginePlan]:
        """Return engines with all in block RAM, held in the ways that may have room."""
        ways = (own for own in held(design) if _holding(own) not in self.lacking)
        return [EnginePlan.of(own, self.target, self.clock_mhz) for own in ways]


class _Holding(NamedTuple):
    """A way to hold all in block RAM: choices of a design."""

    packs_weights: bool
    short_weights: bool
    keeps_matrices: bool
    fills_tables: bool


def _holding(design: Design) -> _Holding:
    return _Holding(
        packs_weights=design.packs_weights, short_weights=design.short_weights,
        keeps_matrices=design.keeps_matrices, fills_tables=design.fills_tables,
    )  # fmt: skip


def _sparing(design: Design) -> Design | None:
    """Return the design with fewer words of codes, if there is one, whose layers take longer."""
    own = design.changed(head_by_head=True, splits_pixels=True, single_copy=True)
    words, fewer = (
        placement.memory[1] + placement.other_words
        for placement in (design.placement, own.placement)
    )
    return own if fewer < words else None


def _lacks_block_ram(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether all of these plans lack block RAMs, which other units do not save."""
    return all(plan.resources.bram > device.bram for plan in plans)


def _is_crowded(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether any of these plans leaves too few LUTs for placement."""
    return any(plan.resources.lut > device.lut * device.lut_share for plan in plans)


def _wants_density(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether memories without gaps may make a design fit: none does, or one in block RAM nearly.

    That one would be faster than one that waits for a memory.
    """
    if not any(fits_device(plan, device) for plan in plans):
        return True
    alone = (plan for plan in plans if not plan.design.ring_words)
    least = min(plan.resources.bram for plan in alone)
    return device.bram < least <= NEARLY_FITS * device.bram


def _wants_lut_ram(plans: Sequence[EnginePlan], device: Device) -> bool:
    """Whether designs lack block RAMs alone, of which matrices need not take any."""
    matrices = [plan.design.engine.find(Matrices) for plan in plans]
    are_deep = all(found is None or found.words > MOST_LUT_RAM_WORDS for found in matrices)
    if are_deep or not device.family.has_lut_ram:
        return False
    lacks = [{name for name, *_ in short(plan.resources, device)} for plan in plans]
    return {"bram"} in lacks and set() not in lacks


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
