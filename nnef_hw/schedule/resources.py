"""Resource estimates: DSP blocks and block RAMs exact by construction, LUTs by formulas."""

from __future__ import annotations

from math import log2

from nnef_hw.blockram import tile_memory
from nnef_hw.schedule.plan import Block, Resources
from nnef_hw.schedule.targets import Device
from nnef_hw.window import Window

__all__ = ["LUT_SHARE", "block_resources", "port_resources"]

LUT_SHARE = 0.92
"""Share of the device's LUTs that placement can be trusted to use."""


def block_resources(block: Block, device: Device, mult_bits: int = 16) -> Resources:
    """Estimate one block."""
    total = Resources()
    if block.window is not None:
        total += _line_buffer(block, block.window, device)
    if block.lanes > 1:
        register_bits = block.x_bits * (2 * block.lanes - 1)
        total += Resources(lut=register_bits + 20, ff=register_bits + 12)
    if block.kind == "conv":
        total += _array(block, device)
    if block.kind in {"max_pool", "avg_pool"}:
        width = block.acc_bits or block.x_bits
        total += Resources(lut=3 * width + 8, ff=2 * width + 3)
    if block.interval:
        total += _requantizer(block, mult_bits)
    if block.kind == "table":
        tiles = tile_memory(device.ram, 1 << block.x_bits, block.out_bits).count
        total += Resources(lut=4, ff=2, bram=block.lanes * tiles)
    if block.kind == "argmax":
        total += Resources(lut=5 * block.x_bits, ff=3 * block.x_bits)
    if block.kind == "softmax":
        tiles = tile_memory(device.ram, max(2, block.channels), block.x_bits).count
        exponentials = tile_memory(device.ram, 1 << block.x_bits, 16).count
        total += Resources(lut=240, ff=100, bram=tiles + exponentials)
    return total


def port_resources(bits: int) -> Resources:
    """Estimate the skid buffer of a one-lane stream at the border."""
    return Resources(lut=2 * bits + 10, ff=2 * bits + 4)


def _bits(count: int) -> int:
    """Width of a counter of ``count`` states."""
    return (count - 1).bit_length()


def _line_buffer(block: Block, window: Window, device: Device) -> Resources:
    counters = (
        _bits(window.padded_height)
        + _bits(window.padded_width)
        + 2 * _bits(window.channel_blocks)
        + _bits(window.kernel[0])
        + _bits(window.kernel[1])
        + _bits(window.passes)
        + _bits(window.out_width)
        + _bits(window.out_height)
    )
    pointer = _bits(block.depth)
    bram = tile_memory(device.ram, block.depth, block.x_bits * block.lanes).count
    padded = window.words != window.beats
    lut = 1.6 * counters + 6.5 * pointer + 25 + (12 + block.x_bits * block.lanes if padded else 0)
    return Resources(lut=round(lut), ff=counters + 4 * pointer + 6, bram=bram)


def _array(block: Block, device: Device) -> Resources:
    depth = -(-block.out_channels // block.rows) * _words(block)
    lut = 45.0
    ff = 40
    dsp = bram = 0
    for first in range(0, block.rows, block.group_rows):
        rows = min(block.group_rows, block.rows - first)
        width = rows * block.lanes * block.weight_bits
        tiling = tile_memory(device.ram, depth, width)
        products = rows * block.lanes
        hop = block.x_bits * block.lanes + _bits(depth) + 3
        lut += hop
        ff += hop
        if block.weight_style == "block":
            bram += tiling.count
            lut += width * 0.67 * (tiling.rows - 1) + (_bits(tiling.rows) + tiling.rows - 1)
        else:
            lut += width * max(1.0, depth / 16 * 0.75)
        if block.in_dsp:
            dsp += -(-products // device.products_per_dsp)
        else:
            lut += products * device.lut_multiplier
            ff += products * 2 * (block.x_bits + block.weight_bits)
        tree = rows * (block.lanes - 1) * (block.x_bits + block.weight_bits + 2)
        lut += rows * (1 + block.kept_passes) * block.acc_bits + tree
        ff += rows * (1 + block.kept_passes) * block.acc_bits + tree
    return Resources(lut=round(lut), ff=ff, dsp=dsp, bram=bram)


def _words(block: Block) -> int:
    assert block.window is not None
    return block.window.pass_words


def _requantizer(block: Block, mult_bits: int) -> Resources:
    channels = block.out_channels if block.kind == "conv" else 1
    constants = block.acc_bits + mult_bits if channels > 1 else 0
    rom = constants * max(0.3, channels / 24) * (1 + 0.05 * log2(channels)) if channels > 1 else 0
    operand = block.acc_bits
    lut = rom + operand * (2.2 + block.digit_bits * 1.05) + mult_bits + 2 * block.out_bits + 30
    return Resources(lut=round(lut), ff=2 * operand + mult_bits + 3 * block.out_bits + 16)
