"""Resources of a device that an engine takes."""

from __future__ import annotations

from nnef_hw.engine.program.design import Design
from nnef_hw.hardware.devices import Resources, Target

__all__ = ["array_resources", "border_resources", "engine_resources"]


def border_resources(target: Target) -> Resources:
    """Return the resources of the host link."""
    return Resources(lut=target.link_lut, ff=target.link_ff, bram=target.link_bram)


def engine_resources(design: Design) -> Resources:
    """Estimate what an engine, its heads and its tails take; DSP blocks and memories are exact."""
    heads = (source.head for source in design.network.sources)
    tails = (sink.tail for sink in design.network.sinks)
    around = (x.part.resources(design.device) for x in (*heads, *tails) if x is not None)
    return Resources.total(around) + array_resources(design)


def array_resources(design: Design) -> Resources:
    """Estimate what an engine takes without its heads and tails."""
    reader, own = design.packets.reader, design.engine.resources(design.device)
    return own if reader is None else reader.resources(design.device) + own
