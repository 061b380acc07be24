"""Every way to fold a convolution or linear layer onto a systolic array."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.schedule.folding import (
    foldings,
    multiplier_options,
    new_block,
    requantizers,
    with_depths,
)
from nnef_hw.schedule.layers import ConvLayer
from nnef_hw.schedule.plan import Block
from nnef_hw.window import Window

__all__ = ["conv_options"]

LEAST_UTILIZATION = 0.25
MOST_WASTED = 1.15
"""Multipliers of an array, for each one of the smallest array that is as fast."""


def conv_options(layer: ConvLayer, device: Device) -> list[Block]:
    """List the arrays that could run a convolution or linear layer."""
    options = _parallel_options(layer, device)
    for rows, lanes in _arrays(layer, device):
        window = replace(
            layer.window,
            channel_blocks=-(-layer.in_channels // lanes),
            passes=-(-layer.out_channels // rows),
        )
        options += _arithmetic_options(
            _conv_block(layer, window, rows, lanes, device), window, layer, device
        )
    return options


def _arrays(layer: ConvLayer, device: Device) -> list[tuple[int, int]]:
    """List (rows, lanes) of arrays, without those that waste multipliers.

    One does if another needs as few words per window with clearly fewer multipliers.
    """
    largest = device.products + int(device.lut * 0.5) // device.lut_multiplier
    arrays = sorted(
        (-(-layer.out_channels // rows) * -(-layer.in_channels // lanes), rows * lanes, rows, lanes)
        for rows in foldings(layer.out_channels)
        for lanes in foldings(layer.in_channels)
        if rows * lanes <= largest
    )
    kept = []
    fewest = largest
    for _, multipliers, rows, lanes in arrays:
        fewest = min(fewest, multipliers)
        if multipliers <= fewest * MOST_WASTED:
            kept.append((rows, lanes))
    return kept


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
    has_absent_lanes = not parallel and layer.in_channels % lanes > 0
    block = new_block(
        layer, "conv", channels=layer.in_channels, out_channels=layer.out_channels,
        window=window, parallel=parallel, rows=rows, lanes=lanes,
        # absent lanes have weights of 0
        weight_bits=max(layer.weight_bits, 1 + has_absent_lanes),
        acc_bits=layer.acc_bits, weight_delay=device.weight_delay, queued_sums=device.long_wires,
        macs=layer.macs, multipliers=rows * lanes,
    )  # fmt: skip
    return replace(block, group_rows=_group_rows(block, window, device))


def _arithmetic_options(
    block: Block, window: Window, layer: ConvLayer, device: Device
) -> list[Block]:
    """Vary the requantizer, the kind of multipliers and the weight memory of one folding."""
    options = []
    fastest = None
    multipliers = multiplier_options(block, device)
    for folding, kept_passes in product(requantizers(layer.requant, device), (1, 2)):
        folded = replace(block, **folding, kept_passes=kept_passes)
        reading = window.out_pixels * _pass_cycles(folded)
        if fastest is not None and reading >= fastest:
            continue
        fastest = reading
        for kind in multipliers:
            options += with_depths(replace(folded, **kind), window, reading, device)
    return options


def _pass_cycles(block: Block) -> int:
    """Cycles of all passes over one window: a pass waits for the results of those before."""
    full, rest = divmod(block.out_channels, block.rows)
    cycles = full * max(block.pass_words, _result_cycles(block, block.rows))
    return cycles + (max(block.pass_words, _result_cycles(block, rest)) if rest else 0)


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
