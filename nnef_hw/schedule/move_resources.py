"""Resources of the components that move codes."""

from __future__ import annotations

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.schedule.plan import Block, Resources

__all__ = ["move_resources"]

_LUTS = {
    "ecp5": {"depth_to_space": 2.5, "pad": 2.6, "slice": 2.6, "transpose": 3.0, "upsample": 3.0},
    "ice40": {"depth_to_space": 2.2, "pad": 2.2, "slice": 2.2, "transpose": 2.5, "upsample": 2.5},
}
"""LUTs per bit of a counter or address."""

_COMPARED = {"ecp5": 5.0, "ice40": 3.0}
"""LUTs per bit of a position that is compared with both ends of the image."""

_ADDRESSES = {"depth_to_space": 4, "transpose": 4, "upsample": 6}
"""Counters as wide as an address of the memory."""


def move_resources(block: Block, device: Device) -> Resources:
    """Estimate the component of a block that moves codes; block RAMs are exact."""
    counters = _counter_bits(block)
    luts = _LUTS[device.family][block.kind] * counters
    luts += _COMPARED[device.family] * _compared_bits(block)
    if not block.depth:
        return Resources(lut=round(luts), ff=counters)
    return Resources(
        lut=round(luts),
        ff=counters + block.x_bits + 4,
        bram=tile_memory(device.ram, block.depth, block.x_bits).count,
    )


def _counter_bits(block: Block) -> int:
    if block.kind == "slice":
        turn = sum(block.runs)
        return _bits(turn) + _bits(sum(map(bool, block.runs))) + _bits(block.cycles // turn)
    window = block.window
    assert window is not None
    place = (window.padded_height, window.padded_width, window.channel_blocks)
    addresses = _ADDRESSES.get(block.kind, 0) * _bits(block.depth)
    factors = () if block.kind == "transpose" else block.factors
    return sum(map(_bits, (*place, *factors))) + addresses


def _compared_bits(block: Block) -> int:
    window = block.window
    if window is None:
        return 0
    extents = (window.padded_height, window.padded_width)
    return sum(
        _bits(extent) for extent, pair in zip(extents, window.padding, strict=True) if any(pair)
    )


def _bits(count: int) -> int:
    """Width of a counter of ``count`` states."""
    return max(0, count - 1).bit_length()
