"""A budget says how much of a device the layers of a network may use, beside the host link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nnef_hw.architecture.architecture import border_queues
from nnef_hw.hardware.devices import Device, Resources, Target
from nnef_hw.parts.streams.stream import Skid
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.plan import LayerGraph

__all__ = [
    "Budget",
    "border_resources",
    "budget_of",
    "largest",
    "queue_resources",
    "total_resources",
]

LAYER_COUNTERS = Resources(lut=105, ff=57)
"""What it takes to count what a layer does, and to read that."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Resources that the layers may use together."""

    lut: int
    dsp: int
    bram: int
    spram: int

    def holds(self, used: Resources) -> bool:
        """Whether that much may be used."""
        return (
            used.lut <= self.lut
            and used.dsp <= self.dsp
            and used.bram <= self.bram
            and used.spram <= self.spram
        )

    def less(self, used: Resources) -> Budget:
        """Return the resources that are left."""
        return Budget(
            self.lut - used.lut,
            self.dsp - used.dsp,
            self.bram - used.bram,
            self.spram - used.spram,
        )


def budget_of(device: Device, link: Resources, share: float) -> Budget:
    """Return the resources that the host link leaves of a device, with that share of its LUTs."""
    return Budget(
        lut=int(device.lut * share) - link.lut,
        dsp=device.dsp,
        bram=device.bram - link.bram,
        spram=device.spram,
    )


def largest(devices: Sequence[Device], times: int = 1) -> Device:
    """Return a device of a family with as much of everything as any of several, or a multiple.

    What folds a layer for one of them folds it for this one.
    """
    most = {
        name: times * max(getattr(device, name) for device in devices)
        for name in ("lut", "dsp", "bram", "spram")
    }
    return replace(devices[0], **most)


def border_resources(
    network: LayerGraph, target: Target, layer_counters: bool = False
) -> Resources:
    """Host link and the skid buffers at the accelerator's border."""
    ports = (*network.inputs, *network.outputs)
    link = Resources(lut=target.link_lut, ff=target.link_ff, bram=target.link_bram)
    if layer_counters:
        link += sum([LAYER_COUNTERS] * len(network.layers), Resources())
    link += border_queues(network.inputs, network.outputs, target)
    return sum((Skid(bits=port.payload_bits).resources(target.device) for port in ports), link)


def total_resources(blocks: Sequence[Block]) -> Resources:
    """Return the resources that blocks use together."""
    return Resources.total(block.resources for block in blocks)


def queue_resources(blocks: Sequence[Block], device: Device) -> Resources:
    """Return the resources of all FIFOs in front of blocks."""
    return sum(
        (
            replace(block, device=device).fifo(n).resources(device)
            for block in blocks
            for n, depth in enumerate(block.fifos)
            if depth
        ),
        Resources(),
    )
