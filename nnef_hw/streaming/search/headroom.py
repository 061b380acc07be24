"""Headroom says what it would take to halve the initiation interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.report.model.limits import Change, Shortage
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.budget import Budget, total_resources
from nnef_hw.streaming.foldings.plan import LayerGraph, StreamingPlan
from nnef_hw.streaming.foldings.resources import usable_luts
from nnef_hw.streaming.search.options import useful_options
from nnef_hw.streaming.search.search import Search

__all__ = ["Headroom", "Limit", "find_headroom"]

PLENTY = 1 << 40


@dataclass(frozen=True, slots=True)
class Limit:
    """A layer that no folding makes fast enough.

    Parameters
    ----------
    name
        Name of the layer.
    cycles
        Cycles per frame, with the fastest folding.
    """

    name: str
    cycles: int


@dataclass(frozen=True, slots=True)
class Headroom:
    """The next faster design, and the limits that keep it from being built.

    Parameters
    ----------
    wanted
        Half the interval; 1 of 1, which is the least.
    cycles
        What the slowest layer can come to: that, or more if there are limits.
    limits
        Layers that no folding makes as fast as wanted.
    changes
        Layers that need another folding for ``cycles``.
    multipliers, resources
        Multipliers and resources of the whole design with these changes; FIFOs stay as they are.
    lacking
        Resources of which the device does not have enough for that.
    """

    wanted: int
    cycles: int
    limits: tuple[Limit, ...]
    changes: tuple[Change, ...]
    multipliers: int
    resources: Resources
    lacking: tuple[Shortage, ...]


def find_headroom(plan: StreamingPlan, network: LayerGraph, device: Device) -> Headroom:
    """Fold the layers that take more than half the interval again, on a device without end.

    Only its DSP blocks stay as many as they are: logic multiplies where they run out.
    """
    wanted = max(1, plan.interval // 2)
    layers = network.widened(plan.lanes).layers
    options = {
        block.tensor: useful_options(layer, device)
        for block, layer in zip(plan.blocks, layers, strict=True)
        if block.cycles > wanted
    }
    fastest = {tensor: min(b.cycles for b in blocks) for tensor, blocks in options.items()}
    cycles = max([wanted, *fastest.values()])
    kept = [block for block in plan.blocks if block.cycles <= cycles]
    slow = [block for block in plan.blocks if block.cycles > cycles]
    folded = _fold([options[block.tensor] for block in slow], kept, cycles, device)
    changed = [new.with_fifos(old.fifos) for old, new in zip(slow, folded, strict=True)]
    resources = total_resources([*kept, *changed]) + plan.link
    usable = {
        "lut": usable_luts(device, plan.resources.lut),
        "dsp": device.dsp,
        "bram": device.bram,
    }
    return Headroom(
        wanted=wanted,
        cycles=cycles,
        limits=tuple(
            Limit(block.name, fastest[block.tensor])
            for block in plan.blocks
            if fastest.get(block.tensor, 0) > wanted
        ),
        changes=tuple(
            Change(old.name, old.multipliers, new.multipliers)
            for old, new in zip(slow, changed, strict=True)
        ),
        multipliers=sum(block.multipliers for block in [*kept, *changed]),
        resources=resources,
        lacking=tuple(
            Shortage(name, getattr(resources, name), most)
            for name, most in usable.items()
            if getattr(resources, name) > most
        ),
    )


def _fold(
    options: Sequence[Sequence[Block]], kept: Sequence[Block], cycles: int, device: Device
) -> list[Block]:
    """Choose the cheapest options that are fast enough."""
    if not options:
        return []
    used = total_resources(kept)
    budget = Budget(
        lut=PLENTY, dsp=device.dsp - used.dsp, bram=PLENTY, spram=device.spram - used.spram
    )
    blocks = Search(options, budget, device, steady_words=False).within(cycles)
    assert blocks is not None, "logic can always multiply"
    return blocks
