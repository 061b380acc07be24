"""Resources that a device lacks for an engine, and the error that says so."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nnef_hw.engine.memory.store import stores
from nnef_hw.engine.planning.plan import EnginePlan
from nnef_hw.engine.program.design import Design
from nnef_hw.errors import ShortageError
from nnef_hw.hardware.devices import Device, Resources, Target
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.parts.engine.narrow import NARROW_BITS
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["LUT_SHARE", "fits_device", "is_hopeless", "misfit", "short"]

LUT_SHARE = 0.95
"""Share of the device's LUTs that placement can be trusted to use."""
_NAMES = {"lut": "LUTs", "dsp": "DSP blocks", "bram": "block RAMs", "spram": "single-port RAMs"}


def short(used: Resources, device: Device) -> Iterator[tuple[str, int, int]]:
    """Yield the resources that do not suffice: name, wanted and what a design can use."""
    for name in _NAMES:
        wanted, usable = getattr(used, name), getattr(device, name)
        if name == "lut":
            usable = int(usable * LUT_SHARE)
        if wanted > usable:
            yield name, wanted, usable


def fits_device(plan: EnginePlan, device: Device) -> bool:
    """Whether a device has all that a plan takes."""
    return not list(short(plan.resources, device))


def is_hopeless(design: Design, target: Target) -> bool:
    """Whether codes alone, and weights without a memory of the board, are more than all memories.

    A larger array has no fewer of them: words of fewer codes have the fewest codes that are none.

    Parameters
    ----------
    design
        One with words of as few codes as any.
    """
    device = target.device
    bits = device.bram * prod(device.ram.shapes[0])
    if device.single_port is not None:
        bits += device.spram * device.single_port.depth * device.single_port.width
    least = CODE_BITS * design.placement.peak[0]
    if not any(stores(target, target.clock_mhz)):
        least += NARROW_BITS * sum(layer.weight_bytes for layer in design.layers)
    return least > bits


def misfit(plans: list[EnginePlan], target: Target) -> ShortageError:
    """Say which resources the array would take that lacks least."""

    def excess(plan: EnginePlan) -> float:
        lacking = short(plan.resources, target.device)
        return max(wanted / max(usable, 1) for _, wanted, usable in lacking)

    plan = min(plans, key=excess)
    design = plan.design
    reasons = [
        f"{wanted:,} {_NAMES[name]} of {usable:,}"
        + (f" ({LUT_SHARE:.0%} of all) that can be placed" if name == "lut" else "")
        for name, wanted, usable in short(plan.resources, target.device)
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
    why += _caches(plan, target)
    return ShortageError(
        f"model {plan.model!r} does not fit {target.name} ({target.device.name})",
        plan.arch,
        f"an array of {design.shape.rows} x {design.shape.lanes} takes "
        f"{' and '.join(reasons)}{why}",
    )


def _caches(plan: EnginePlan, target: Target) -> str:
    """Return words for the bytes of caches in block RAM, and for how many places would fit."""
    design = plan.design
    rows = [layer for layer in design.frame_layers if layer.row is not None]
    lacking = {
        name: wanted - usable for name, wanted, usable in short(plan.resources, target.device)
    }
    if not rows or lacking.keys() != {"bram"} or design.engine.codes.single_port:
        return ""
    lanes, ram = design.shape.lanes, target.device.ram
    places = max(layer.row.count for layer in rows if layer.row is not None)
    words = sum(layer.target.words(lanes) for layer in rows)

    def blocks(count: int) -> int:
        """Return the block RAMs of codes, if caches had so many places."""
        depth = design.engine.codes.words - (places - count) * words
        return tile_memory(ram, max(2, depth), lanes * CODE_BITS).count

    most = blocks(places) - lacking["bram"]
    longest = next((count for count in range(places, 0, -1) if blocks(count) <= most), 0)
    own = f"caches take {places * words * lanes:,} bytes of them, {words * lanes:,} a place"
    if longest:
        return f"; {own}: {longest:,} places would fit, not {places:,}"
    return f"; {own}, and there is no room without them either"
