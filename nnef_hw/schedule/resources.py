"""Resource estimates: DSP blocks and block RAMs exact by construction, LUTs by fitted sums.

The LUTs of a component are a weighted sum of what it is made of (``features.py``: register bits,
adder bits, constants ...); the weights are measured per FPGA family (``costs.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.schedule.costs import COSTS
from nnef_hw.schedule.features import (
    component_features,
    component_flip_flops,
    counter_bits,
    group_sizes,
    line_buffer_features,
    line_buffer_flip_flops,
)
from nnef_hw.schedule.move_resources import move_resources
from nnef_hw.schedule.plan import SHALLOW_FIFO, Block, Resources
from nnef_hw.tables import TABLE_BITS
from nnef_hw.window import Window

__all__ = [
    "LUT_SHARE",
    "block_parts",
    "block_resources",
    "component_resources",
    "line_buffer_resources",
    "operand_bits",
    "port_resources",
    "usable_luts",
]

LUT_SHARE = 0.95
"""Share of the device's LUTs that placement can be trusted to use."""

MAX_REGISTERS = 3
"""Most results of a running pool that are kept in registers."""
EXPONENTIAL_BITS = MappingProxyType({"softmax": 16, "tflite_softmax": 31})
"""Widths of the tables of a softmax."""


def block_resources(block: Block, device: Device) -> Resources:
    """Estimate one block."""
    parts = [component_resources(part, block, device) for part in block_parts(block)]
    fifos = [
        fifo_resources(source.depth, operand_bits(block, n), device)
        for n, source in enumerate(block.sources)
        if source.depth
    ]
    return sum(parts + fifos, Resources())


def operand_bits(block: Block, operand: int) -> int:
    """Width of the codes of an operand."""
    return block.y_bits or block.x_bits if operand else block.x_bits


def fifo_resources(depth: int, bits: int, device: Device) -> Resources:
    """Estimate a FIFO of codes."""
    pointer = counter_bits(depth)
    if depth <= SHALLOW_FIFO:
        registers = depth * (bits + 1)
        return Resources(lut=registers + 3 * pointer, ff=registers + pointer + 1)
    return Resources(
        lut=round(4.5 * pointer + bits + 12),
        ff=3 * pointer + bits + 5,
        bram=tile_memory(device.ram, depth - 2, bits).count,
    )


def block_parts(block: Block) -> list[str]:
    """Components that a block consists of, in stream order."""
    if block.is_move:
        return [block.kind]
    parts = ["pack"] if block.beat_lanes > 1 else []
    if block.has_windows:
        kind = "parallel " if block.parallel else "banked " if block.lines else ""
        parts.append(f"{kind}line buffer")
    parts.append(_MAIN_PARTS.get(block.kind, block.kind))
    if block.queued_sums:
        parts.append("sum queue")
    if block.interval:
        parts.append("requantizer")
    return parts


_MAIN_PARTS = {
    "conv": "array", "depthwise": "tap array", "dot": "tap array", "max_pool": "pool",
    "avg_pool": "pool",
    "running_max": "running pool", "running_sum": "running pool",
}  # fmt: skip


def component_resources(part: str, block: Block, device: Device) -> Resources:
    """Estimate one component of a block."""
    if block.is_move:
        return move_resources(block, device)
    if part == "line buffer":
        return line_buffer_resources(block, block.depth, device)
    dsp = bram = spram = 0
    if part == "parallel line buffer":
        assert block.window is not None
        width = block.x_bits * block.channels * (block.window.kernel[0] - 1)
        bram = tile_memory(device.ram, block.depth, width).count if width else 0
    elif part == "banked line buffer":
        assert block.window is not None
        width = block.x_bits * block.beat_lanes
        bram = block.window.taps * tile_memory(device.ram, block.depth, width).count
    elif part == "running pool":
        width = block.acc_bits or block.x_bits
        spram = int(block.single_port)
        if block.depth > MAX_REGISTERS and not spram:
            bram = tile_memory(device.ram, block.depth, width).count
    elif part in {"array", "tap array"}:
        dsp, bram = _array_blocks(block, device)
    elif part == "table":
        bram = block.lanes * tile_memory(device.ram, 1 << block.x_bits, block.out_bits).count
    elif part == "interpolated_table":
        bram = tile_memory(device.ram, 1 << TABLE_BITS, block.out_bits + block.y_bits).count
    elif part in EXPONENTIAL_BITS:
        bram = tile_memory(device.ram, max(2, block.channels), block.x_bits).count
        bram += tile_memory(device.ram, 1 << block.x_bits, EXPONENTIAL_BITS[part]).count
    elif part == "table_sum":
        bram = sum(
            tile_memory(device.ram, 1 << bits, block.acc_bits).count
            for bits in (block.x_bits, block.y_bits)
        )
    lut = _luts(part, component_features(part, block, device), device)
    return Resources(
        lut=lut, ff=component_flip_flops(part, block, device), dsp=dsp, bram=bram, spram=spram
    )


def line_buffer_resources(block: Block, depth: int, device: Device) -> Resources:
    """Estimate the line buffer of a block, of that depth."""
    assert block.window is not None
    width = block.x_bits * block.lanes
    lut, ff = _line_buffer_logic(block.window, depth, width, device)
    return Resources(lut=lut, ff=ff, bram=tile_memory(device.ram, depth, width).count)


@cache
def _line_buffer_logic(window: Window, depth: int, width: int, device: Device) -> tuple[int, int]:
    """Return LUTs and flip-flops."""
    features = {**line_buffer_features(window, depth, width, device), "fixed": 1}
    return _luts("line buffer", features, device), line_buffer_flip_flops(window, depth)


def _luts(part: str, features: Mapping[str, float], device: Device) -> int:
    costs = COSTS[device.family][part]
    lut = sum(costs[name] * value for name, value in features.items() if name in costs)
    return round(lut + device.lut_multiplier * features.get("products", 0))


def usable_luts(device: Device, used: int) -> int:
    """Return how many LUTs a design may fill: a share that reaches the clock, if it keeps to it."""
    comfortable = int(device.lut * device.lut_share)
    return comfortable if used <= comfortable else int(device.lut * LUT_SHARE)


def port_resources(bits: int) -> Resources:
    """Estimate the skid buffer of a one-lane stream at the border."""
    return Resources(lut=2 * bits + 10, ff=2 * bits + 4)


def _array_blocks(block: Block, device: Device) -> tuple[int, int]:
    """DSP blocks and block RAMs of an array."""
    assert block.window is not None
    depth = block.window.passes * block.pass_words
    dsp = bram = 0
    for rows in group_sizes(block):
        if block.in_dsp:
            dsp += -(-rows * block.lanes * block.taps // device.products_per_dsp)
        if block.weight_style == "block":
            bits = rows * block.lanes * block.taps * block.weight_bits
            bram += tile_memory(device.ram, depth, bits).count
    return dsp, bram
