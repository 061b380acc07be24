"""Every way to fold a convolution onto an array that sums over taps: one channel at a time."""

from __future__ import annotations

from dataclasses import replace

from nnef_hw.devices import Device
from nnef_hw.schedule.folding import (
    foldings,
    multiplier_options,
    new_block,
    requantizers,
    with_depths,
)
from nnef_hw.schedule.layers import ConvLayer, DepthwiseLayer
from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.resources import block_resources
from nnef_hw.window import Window

__all__ = ["depthwise_options", "dot_options"]

MAX_TAPS = 128


def depthwise_options(layer: DepthwiseLayer, device: Device) -> list[Block]:
    """List the arrays that could run a depthwise convolution.

    Taps come one by one from a line buffer, or all at once from a banked one.
    """
    options = []
    channels = layer.window.channel_blocks
    for lanes in foldings(channels):
        blocks = -(-channels // lanes)
        window = replace(layer.window, channel_blocks=blocks, passes=blocks)
        for lines, taps in ((0, 1), (_lines(window), window.taps)):
            block = new_block(
                layer, "depthwise", channels=channels, out_channels=channels, window=window,
                rows=1, group_rows=1, lanes=lanes, taps=taps, lines=lines,
                weight_delay=device.weight_delay, queued_sums=device.long_wires,
                weight_bits=layer.weight_bits, acc_bits=layer.acc_bits, macs=layer.macs,
                multipliers=lanes * taps,
            )  # fmt: skip
            options += _arithmetic_options(block, window, layer, device)
    return options


def dot_options(layer: ConvLayer, device: Device) -> list[Block]:
    """List the arrays that give one output channel per cycle: for few channels and many taps."""
    window = replace(layer.window, channel_blocks=1, passes=layer.out_channels)
    taps = window.taps * layer.in_channels
    if window.taps == 1 or taps > MAX_TAPS:
        return []
    block = new_block(
        layer, "dot", channels=layer.in_channels, out_channels=layer.out_channels, window=window,
        rows=1, group_rows=1, taps=taps, lines=_lines(window), weight_delay=device.weight_delay,
        queued_sums=device.long_wires, weight_bits=layer.weight_bits, acc_bits=layer.acc_bits,
        macs=layer.macs, multipliers=taps,
    )  # fmt: skip
    return _arithmetic_options(block, window, layer, device)


def _lines(window: Window) -> int:
    """Rows that a banked line buffer keeps so that its reader never waits for the writer."""
    return 1 << (window.reach[0] + window.stride[0] - 1).bit_length()


def _arithmetic_options(
    block: Block, window: Window, layer: ConvLayer | DepthwiseLayer, device: Device
) -> list[Block]:
    """Vary the requantizer, the kind of multipliers and the weight memory of one folding."""
    if block.lines and window.starts_in_padding:
        return []
    options = []
    for requantizer in requantizers(layer.requant, device):
        folded = _with_kept_passes(replace(block, **requantizer))
        passes = block.out_channels // block.lanes
        cycles = passes * _pass_cycles(folded, block.lanes)
        cycles += _pass_cycles(folded, block.out_channels % block.lanes)
        reading = window.out_pixels * cycles
        for kind in multiplier_options(folded, device):
            variant = replace(folded, **kind)
            if not block.lines:
                options += with_depths(variant, window, reading, device)
                continue
            variant = replace(
                variant,
                depth=block.lines * window.width * window.channel_blocks,
                cycles=max(reading, window.height * window.width * block.channels),
            )
            options.append(replace(variant, resources=block_resources(variant, device)))
    return options


def _pass_cycles(block: Block, results: int) -> int:
    return max(block.pass_words, results * block.interval) if results else 0


def _with_kept_passes(block: Block) -> Block:
    """Let the array keep the sums of as many passes as are inside at full rate."""
    period = _pass_cycles(block, block.lanes)

    def stay(block: Block) -> int:
        return block.result_latency + 1 + (block.lanes - 1) * block.interval

    if stay(block) <= period:
        return block
    several = replace(block, kept_passes=2)
    return replace(several, kept_passes=max(2, -(-stay(several) // period)))
