"""Resources of the components that move codes."""

from __future__ import annotations

from nnef_hw.blockram import tile_memory
from nnef_hw.schedule.plan import Block, Resources
from nnef_hw.schedule.targets import Device

__all__ = ["move_resources"]

_LUTS = {
    "depth_to_space": (3.0, 20), "pad": (3.0, 8), "slice": (3.0, 6), "upsample": (3.0, 20),
}  # fmt: skip
"""LUTs per bit of a counter, and those of the rest."""


def move_resources(block: Block, device: Device) -> Resources:
    """Estimate the component of a block that moves codes."""
    counters, registers, bram = _counters(block), 0, 0
    if block.depth:
        bram = tile_memory(device.ram, block.depth, block.x_bits).count
        registers = block.x_bits + 4
    per_bit, fixed = _LUTS[block.kind]
    luts = per_bit * counters + fixed
    if block.kind == "pad":
        luts += block.x_bits
    return Resources(lut=round(luts), ff=counters + registers, bram=bram)


def _counters(block: Block) -> int:
    """Bits of all counters and addresses."""
    if block.kind == "slice":
        turns = block.cycles // sum(block.runs)
        return _bits(sum(block.runs)) + 2 + _bits(turns)
    window = block.window
    assert window is not None
    place = (window.padded_height, window.padded_width, window.channel_blocks)
    addresses = 6 * _bits(block.depth) if block.depth else 0
    return sum(map(_bits, (*place, *block.factors))) + addresses


def _bits(count: int) -> int:
    """Width of a counter of ``count`` states."""
    return (count - 1).bit_length()
