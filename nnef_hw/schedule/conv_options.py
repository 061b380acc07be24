"""Every way to fold a convolution, depthwise or not, or a linear layer."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from nnef_hw.blockram import tile_memory
from nnef_hw.schedule.folding import foldings, new_block, requantizers, with_depths
from nnef_hw.schedule.layers import ConvLayer, DepthwiseLayer
from nnef_hw.schedule.plan import Block
from nnef_hw.schedule.targets import Device
from nnef_hw.window import Window

__all__ = ["conv_options", "depthwise_options"]

MAX_LOGIC_WORDS = 128
LEAST_UTILIZATION = 0.25


def conv_options(layer: ConvLayer, device: Device) -> list[Block]:
    """List the arrays that could run a convolution or linear layer."""
    options = _parallel_options(layer, device)
    largest = device.products + int(device.lut * 0.5) // device.lut_multiplier
    for lanes in foldings(layer.in_channels):
        blocks_in = -(-layer.in_channels // lanes)
        for rows in foldings(layer.out_channels):
            if rows * lanes <= largest:
                passes = -(-layer.out_channels // rows)
                window = replace(layer.window, channel_blocks=blocks_in, passes=passes)
                options += _arithmetic_options(
                    _conv_block(layer, window, rows, lanes, device), window, layer, device
                )
    return options


def depthwise_options(layer: DepthwiseLayer, device: Device) -> list[Block]:
    """List the arrays that could run a depthwise convolution."""
    options = []
    channels = layer.window.channel_blocks
    for lanes in foldings(channels):
        blocks = -(-channels // lanes)
        window = replace(layer.window, channel_blocks=blocks, passes=blocks)
        block = new_block(
            layer, "depthwise", channels=channels, out_channels=channels, window=window,
            rows=1, group_rows=1, lanes=lanes, weight_bits=layer.weight_bits,
            acc_bits=layer.acc_bits, macs=layer.macs, multipliers=lanes,
        )  # fmt: skip
        options += _arithmetic_options(block, window, layer, device)
    return options


def _parallel_options(layer: ConvLayer, device: Device) -> list[Block]:
    """Fold a layer whose whole window is one word: few channels, many taps.

    Only where the results of a pass leave fast enough that the multipliers do not just wait.
    """
    plain = replace(layer.window, channel_blocks=1)
    lanes = plain.taps * layer.in_channels
    if plain.taps == 1 or plain.dilation != (1, 1) or plain.padded_width < 2:
        return []
    if plain.starts_in_padding:
        return []
    options = []
    for rows in foldings(layer.out_channels):
        if rows * lanes <= device.products:
            window = replace(plain, passes=-(-layer.out_channels // rows))
            block = _conv_block(layer, window, rows, lanes, device, parallel=True)
            options += _arithmetic_options(block, window, layer, device)
    return [block for block in options if (block.utilization or 0) >= LEAST_UTILIZATION]


def _conv_block(
    layer: ConvLayer,
    window: Window,
    rows: int,
    lanes: int,
    device: Device,
    *,
    parallel: bool = False,
) -> Block:
    """Return an array of that size, without arithmetic options, depth and cost."""
    block = new_block(
        layer, "conv", channels=layer.in_channels, out_channels=layer.out_channels,
        window=window, parallel=parallel, rows=rows, lanes=lanes, weight_bits=layer.weight_bits,
        acc_bits=layer.acc_bits, weight_delay=device.weight_delay, macs=layer.macs,
        multipliers=rows * lanes,
    )  # fmt: skip
    return replace(block, group_rows=_group_rows(block, window, device))


def _arithmetic_options(
    block: Block, window: Window, layer: ConvLayer | DepthwiseLayer, device: Device
) -> list[Block]:
    """Vary the requantizer, the kind of multipliers and the weight memory of one folding."""
    options = []
    fastest = None
    in_dsp = [True, False] if layer.source.bits <= 8 and layer.weight_bits <= 8 else [False]
    words = window.passes * block.pass_words
    styles = ["block", "logic"] if words <= MAX_LOGIC_WORDS else ["block"]
    for folding, kept_passes in product(requantizers(layer.requant, device), (1, 2)):
        folded = replace(block, **folding, kept_passes=kept_passes)
        reading = window.out_pixels * _pass_cycles(folded, window)
        if fastest is not None and reading >= fastest:
            continue
        fastest = reading
        for dsp, style in product(in_dsp, styles):
            variant = replace(folded, in_dsp=dsp, weight_style=style)
            options += with_depths(variant, window, reading, device)
    return options


def _pass_cycles(block: Block, window: Window) -> int:
    """Cycles of all passes over one window: a pass waits for the results of those before."""
    full, rest = divmod(block.out_channels, block.sums)
    counts = [block.sums] * full + ([rest] if rest else [])
    return sum(max(block.pass_words, _result_cycles(block, count)) for count in counts)


def _result_cycles(block: Block, count: int) -> int:
    """Least cycles per pass of ``count`` results."""
    stay = block.result_latency + 1 + (count - 1) * block.result_spacing
    return max(count * block.result_spacing, -(-stay // block.kept_passes))


def _group_rows(block: Block, window: Window, device: Device) -> int:
    """Rows per weight memory: the fewest block RAMs, then the fewest memories of <= 16 products."""
    depth = window.passes * block.pass_words
    width = block.lanes * block.weight_bits

    def cost(group_rows: int) -> tuple[int, int]:
        full, rest = divmod(block.rows, group_rows)
        count = full * tile_memory(device.ram, depth, group_rows * width).count
        if rest:
            count += tile_memory(device.ram, depth, rest * width).count
        return count, -group_rows

    candidates = [n for n in range(1, block.rows + 1) if n == 1 or n * block.lanes <= 16]
    return min(candidates, key=cost)
