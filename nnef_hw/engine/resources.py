"""What an engine takes of a device."""

from __future__ import annotations

from nnef_hw.devices import Device, Resources, Target
from nnef_hw.engine.design import Design
from nnef_hw.parts.engine import CODE_BITS, Engine

__all__ = ["array_resources", "border_resources", "engine_resources"]

_FIXED_LUTS = 250
_RESIDUAL_LUTS = 5.4
"""Per bit of a code and of the residual's factor: two products, their sum, registers between."""
_FEED_LUTS = 300
"""Of what puts a program that comes as a stream into its memories."""


def border_resources(target: Target) -> Resources:
    """Return what the host link takes."""
    return Resources(lut=target.link_lut, ff=target.link_ff, bram=target.link_bram)


def engine_resources(design: Design) -> Resources:
    """Estimate what an engine and its tail take; DSP blocks and memories are exact."""
    tail = design.network.tail
    behind = Resources() if tail is None else tail.part.resources(design.device)
    return behind + array_resources(design)


def array_resources(design: Design) -> Resources:
    """Estimate what an engine takes without its tail."""
    engine, device = design.engine, design.device
    reader = Resources() if design.reader is None else design.reader.resources(device)
    dsp = -(-engine.multipliers // device.products_per_dsp) if engine.in_dsp else 0
    return reader + Resources(
        lut=round(_luts(engine, device)),
        ff=round(_flip_flops(engine)),
        dsp=dsp,
        bram=sum(memory.count for memory in engine.memories),
        spram=engine.spram,
    )


def _luts(engine: Engine, device: Device) -> float:
    """LUT4s, from what adders and multiplexers there are."""
    sums = engine.multipliers * engine.acc_bits
    luts = 3.0 * sums + (engine.slide_rows - 1) * engine.lanes * engine.acc_bits
    luts += (engine.lanes - 1) * engine.acc_bits + engine.lanes * engine.acc_bits
    luts += 2.0 * engine.stages * engine.digit_bits * engine.acc_bits
    if engine.residual_bits:
        luts += _RESIDUAL_LUTS * CODE_BITS * engine.residual_bits
    if not engine.in_dsp:
        luts += engine.multipliers * device.lut_multiplier
    fields = sum(engine.fields.values())
    luts += _FEED_LUTS if engine.streamed else 0
    return _FIXED_LUTS + luts + 2.0 * fields + engine.word_bits * 3.0


def _flip_flops(engine: Engine) -> float:
    sums = 2 * engine.multipliers * engine.acc_bits + engine.lanes * engine.acc_bits
    pipeline = engine.stages * (2 * engine.acc_bits + engine.factor_bits)
    address = engine.fields["write"] + 3
    delays = address * (engine.tree_levels + engine.requantizer_delay + engine.residual_delay)
    weights = engine.multipliers * CODE_BITS
    return sums + pipeline + delays + weights + 2 * sum(engine.fields.values())
