"""Ways to feed an engine: all in block RAM, or its program from a memory of the board."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

from nnef_hw.engine.layers.constant import LookupLayer
from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.planning.shortage import fits_device
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.timing.residency import feeds
from nnef_hw.errors import TargetError
from nnef_hw.hardware.devices import Target
from nnef_hw.parts.engine.contraction import Matrices

__all__ = ["held", "is_at_rate", "packings", "rings", "streamed", "with_room"]

RINGS = (1024, 512, 256, 128)
"""Words of weights that may come ahead, where they come from a memory."""
LONG_FRAME = 1 << 17
"""Words of a frame that takes seconds to plan."""
NEAR_RATE = 1.05
"""Cycles per word of such a frame below which a memory is read as fast as it can be.

Rings that are less deep are not tried then.
"""


def packings(design: Design) -> Iterator[Design]:
    """Yield a design with a byte for each weight, and one with two in a byte if any are so small.

    Of engines that are as fast the first one is taken, which has fewer LUTs.
    """
    yield design
    if any(layer.has_narrow_weights for layer in design.layers):
        yield design.changed(packs_weights=True)


def held(design: Design) -> Iterator[Design]:
    """Yield designs with all in block RAM: as it is, with short words, with caches in their places.

    Words of weights are short where some weights are halves of a byte, and others need no more.
    Caches stay among the array's weights then, unless matrices are in LUT RAM; and tables come with
    the bitstream. It is not for a program that a processor writes as a whole.
    """
    yield design
    if _may_be_short(design):
        yield design.changed(packs_weights=False, short_weights=True)
    chooses = any(x.row is not None or isinstance(x, LookupLayer) for x in design.layers)
    if chooses and design.batch == 1 and not design.is_loaded:
        yield design.changed(keeps_matrices=not design.lut_matrices, fills_tables=True)


def _may_be_short(design: Design) -> bool:
    """Whether words of weights may be short, and two in a byte are an alternative."""
    if not design.packs_weights or design.is_loaded or design.engine.has(Matrices):
        return False
    shape = design.shape
    return all(x.has_short_weights for x in design.layers if x.weight_words(shape))


def streamed(
    design: Design, target: Target, clock_mhz: float | None, fast: float = math.inf
) -> Iterator[EnginePlan]:
    """Yield engines for a design whose program comes from a memory of the board.

    No memory is read where that alone takes more than ``fast`` cycles.
    """

    def fits(design: Design) -> bool:
        return EnginePlan.of(design, target, clock_mhz).resources.bram <= target.device.bram

    if not fast:
        return
    for store in stores(target, clock_mhz or target.clock_mhz):
        is_long = _has_long_tables(design)
        own = design.changed(
            store=store, keeps_tables=is_long and store.rows is None,
            addresses_tables=is_long and store.rows is not None,
        )  # fmt: skip
        plans = list(rings(own, target, clock_mhz, fast))
        if not plans:
            continue
        fitting = [plan for plan in plans if fits_device(plan, target.device)]
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


def rings(
    design: Design, target: Target, clock_mhz: float | None, fast: float
) -> Iterator[EnginePlan]:
    """Yield engines whose program comes from a memory, the deepest ring first.

    It is not always the fastest: the ring decides into which parts layers are divided. None is
    tried of which the memory alone takes more than ``fast`` cycles.
    """
    assert design.store is not None
    for words in RINGS:
        with_ring = design.changed(ring_words=words)
        try:
            packets = with_ring.packets
            if not design.store.fits(packets.image_words):
                continue
            if packets.frame_words * packets.beat_cycles > fast:
                return
            with_ring = with_room(with_ring, target, clock_mhz)
        except TargetError:
            return
        packets = with_ring.packets
        if design.store.fits(packets.image_words):
            plan = EnginePlan.of(with_ring, target, clock_mhz)
            yield plan
            if fits_device(plan, target.device) and is_at_rate(plan):
                return


def is_at_rate(plan: EnginePlan) -> bool:
    """Whether a long frame comes from a memory nearly as fast as it can."""
    packets, is_streamed = plan.design.packets, plan.design.ring_words > 0
    if not is_streamed or packets.frame_words < LONG_FRAME:
        return False
    return plan.batch_cycles <= NEAR_RATE * packets.frame_words * packets.beat_cycles


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
