"""Resource estimates: DSP blocks and block RAMs exact by construction, LUTs by fitted sums.

The LUTs of a component are a weighted sum of what it is made of (:func:`component_features`:
register bits, adder bits, constants ...); the weights are measured per FPGA family
(``docs/resources.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import gcd
from types import MappingProxyType

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.schedule.move_resources import move_resources
from nnef_hw.schedule.plan import SHALLOW_FIFO, Block, Resources
from nnef_hw.tables import TABLE_BITS
from nnef_hw.window import Window

__all__ = [
    "COSTS",
    "LUT_SHARE",
    "block_parts",
    "block_resources",
    "component_features",
    "component_resources",
    "line_buffer_resources",
    "operand_bits",
    "port_resources",
    "usable_luts",
]

LUT_SHARE = 0.95
"""Share of the device's LUTs that placement can be trusted to use."""

MULT_BITS = 16
SHORT_SHARE = 0.36
"""LUTs of a multiplier with at most two weights, as a share of any other's."""
MAX_REGISTERS = 3
"""Most results of a running pool that are kept in registers."""
TFLITE_MULT_BITS = 31
EXPONENTIAL_BITS = MappingProxyType({"softmax": 16, "tflite_softmax": 31})
"""Widths of the tables of a softmax."""


COSTS: Mapping[str, Mapping[str, Mapping[str, float]]] = MappingProxyType({
    "ice40": {
        "line buffer": {
            "pointer bits": 4.98, "base bits": 4.78, "counter bits": 1.12, "counters": 7.84,
            "padding bits": 0.29, "padded width": 0.72, "memory rows": 0.72, "fixed": 6.0,
        },
        "parallel line buffer": {
            "window bits": 1.14, "pixel bits": 0.5, "padded width": 0.25, "counter bits": 4.2,
            "fixed": 0.0,
        },
        "array": {
            "sum bits": 2.07, "kept bits": 1.06, "tree bits": 0.89, "hop bits": 1.32,
            "address bits": 2.11, "memory rows": 1.06, "table": 2.1, "fixed": 29.2,
        },
        "tap array": {
            "sum bits": 2.07, "kept bits": 1.06, "tree bits": 0.89, "hop bits": 1.32,
            "address bits": 2.11, "memory rows": 1.06, "table": 2.1, "fixed": 29.2,
        },
        "requantizer": {
            "digit bits": 1.21, "stage bits": 1.07, "serial bits": 1.22, "short table": 1.36,
            "long table": 1.96, "round bits": 3.0, "fixed": 75.1,
        },
        "pack": {
            "register bits": 1.0, "lanes": 1.0, "filled bits": 0.0, "counter bits": 6.0,
            "fixed": 9.0,
        },
        "pool": {"code bits": 3.74, "fixed": 11.5},
        "argmax": {"code bits": 2.45, "index bits": 5.75, "fixed": 8.1},
        "softmax": {"index bits": 6.0, "fixed": 193.0},
        "tflite_softmax": {"index bits": 4.2, "fixed": 726.0},
        "table": {"fixed": 6.0},
        "interpolated_table": {"product bits": 1.27, "code bits": 5.8, "fixed": 0.0},
        "banked line buffer": {
            "window bits": 1.0, "written bits": 1.0, "offset bits": 2.0, "counter bits": 4.0,
            "fixed": 60.0,
        },
        "running pool": {"code bits": 3.0, "fixed": 50.0},
        "sum": {"tables": 39.0, "fixed": 1.0},
        "table_sum": {"sum bits": 3.2, "fixed": 9.0},
        "extremum": {"code bits": 3.0, "fixed": 4.0},
        "product": {"fixed": 30.0},
        "concat": {"fixed": 20.0},
    },
    "ecp5": {
        "line buffer": {
            "pointer bits": 7.13, "base bits": 7.18, "counter bits": 0.8, "counters": 12.53,
            "padding bits": 0.0, "padded width": 0.06, "memory rows": 0.17, "fixed": 10.6,
        },
        "parallel line buffer": {
            "window bits": 0.0, "pixel bits": 0.0, "padded width": 1.2, "counter bits": 4.0,
            "fixed": 0.0,
        },
        "array": {
            "sum bits": 2.27, "kept bits": 0.01, "tree bits": 0.84, "hop bits": 0.63,
            "address bits": 0.0, "memory rows": 1.74, "table": 1.21, "fixed": 0.0,
        },
        "tap array": {"sum bits": 4.27, "tree bits": 0.96, "table": 0.76, "fixed": 0.2},
        "requantizer": {
            "digit bits": 0.23, "stage bits": 1.82, "serial bits": 0.44, "short table": 1.21,
            "long table": 1.31, "round bits": 3.0, "fixed": 80.0,
        },
        "sum queue": {"code bits": 1.0, "fixed": 5.0},
        "pack": {
            "register bits": 0.0, "lanes": 1.0, "filled bits": 1.5, "counter bits": 3.0,
            "fixed": 4.0,
        },
        "pool": {"code bits": 2.65, "fixed": 6.0},
        "argmax": {"code bits": 3.58, "index bits": 5.15, "fixed": 0.0},
        "softmax": {"index bits": 8.6, "fixed": 186.1},
        "tflite_softmax": {"index bits": 0.8, "fixed": 687.0},
        "table": {"fixed": 3.0},
        "interpolated_table": {"product bits": 1.14, "code bits": 0.83, "fixed": 16.7},
        "banked line buffer": {
            "window bits": 0.85, "written bits": 0.0, "offset bits": 0.0, "counter bits": 0.0,
            "fixed": 258.0,
        },
        "running pool": {"code bits": 1.2, "fixed": 65.0},
        "sum": {"tables": 39.0, "fixed": 1.0},
        "table_sum": {"sum bits": 1.1, "fixed": 9.0},
        "extremum": {"code bits": 3.0, "fixed": 4.0},
        "product": {"fixed": 30.0},
        "concat": {"fixed": 20.0},
    },
})  # fmt: skip
"""LUTs per unit of every feature: ``COSTS[family][part][feature]``.

On an iCE40 a logic cell, whether its LUT, its flip-flop or only its carry is used; on an ECP5 a
LUT4 of a slice, so that flip-flops are free.
"""


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
    pointer = _bits(depth)
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
    return Resources(lut=lut, ff=_FLIP_FLOPS[part](block), dsp=dsp, bram=bram, spram=spram)


def line_buffer_resources(block: Block, depth: int, device: Device) -> Resources:
    """Estimate the line buffer of a block, of that depth."""
    assert block.window is not None
    width = block.x_bits * block.lanes
    lut, ff = _line_buffer_logic(block.window, depth, width, device)
    return Resources(lut=lut, ff=ff, bram=tile_memory(device.ram, depth, width).count)


@cache
def _line_buffer_logic(window: Window, depth: int, width: int, device: Device) -> tuple[int, int]:
    """Return LUTs and flip-flops."""
    features = {**_line_buffer_features(window, depth, width, device), "fixed": 1}
    return _luts("line buffer", features, device), _line_buffer_ff(window, depth)


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


def component_features(part: str, block: Block, device: Device) -> dict[str, float]:
    """Count what a component is made of; ``fixed`` is 1."""
    if part == "line buffer":
        assert block.window is not None
        width = block.x_bits * block.lanes
        features = _line_buffer_features(block.window, block.depth, width, device)
    elif part == "parallel line buffer":
        assert block.window is not None
        features = _parallel_features(block, block.window)
    elif part == "banked line buffer":
        assert block.window is not None
        features = _banked_features(block, block.window)
    elif part == "running pool":
        features = {"code bits": block.acc_bits or block.x_bits}
    elif part in {"array", "tap array"}:
        features = _array_features(block, device)
    elif part == "sum queue":
        features = {"code bits": block.acc_bits + 1}
    elif part == "requantizer":
        features = _requantizer_features(block)
    elif part == "pack":
        features = _pack_features(block)
    elif part == "pool":
        features = {"code bits": block.acc_bits or block.x_bits}
    elif part == "argmax":
        features = {"code bits": block.x_bits, "index bits": _bits(block.channels)}
    elif part == "sum":
        features = {"tables": -(-(block.x_bits + (block.y_bits or block.x_bits)) // 4)}
    elif part == "extremum":
        features = {"code bits": block.x_bits}
    elif part == "product":
        features = {"products": block.x_bits * block.y_bits / 64}
    elif part in EXPONENTIAL_BITS:
        features = {"index bits": _bits(block.channels)}
    elif part == "table_sum":
        features = {"sum bits": block.acc_bits}
    elif part == "interpolated_table":
        features = _interpolation_features(block)
    else:
        features = {}
    return {**features, "fixed": 1}


def _pack_features(block: Block) -> dict[str, float]:
    lanes = min(block.beat_lanes, block.channels)
    missing = -block.channels % lanes
    return {
        "register bits": block.x_bits * (2 * lanes - 1),
        "lanes": lanes,
        "filled bits": block.x_bits * (missing + 1) if missing else 0,
        "counter bits": _bits(-(-block.channels // lanes)) if missing else 0,
    }


def _bits(count: int) -> int:
    """Width of a counter of ``count`` states."""
    return (count - 1).bit_length()


def _rom_luts(words: int) -> float:
    """LUT4s of one bit of a constant table, without those that choose between them.

    A short table shares logic with what surrounds it.
    """
    return words / 16 if words > 16 else min(1.0, words / 8)


@dataclass(frozen=True, slots=True)
class _Counters:
    """Widths of the counters of a line buffer that synthesis keeps."""

    write: tuple[int, ...]
    read: tuple[int, ...]
    base: int

    @classmethod
    def of(cls, window: Window, depth: int) -> _Counters:
        (top_bottom, left_right) = (any(pair) for pair in window.padding)
        write: tuple[int, ...] = ()
        if top_bottom or left_right or window.starts_in_padding:
            write = (_bits(window.channel_blocks), _bits(window.padded_width))
            write += (_bits(window.padded_height),) if top_bottom else ()
        read = (
            0 if window.by_channel else _bits(window.channel_blocks),
            _bits(window.kernel[1]), _bits(window.kernel[0]), _bits(window.passes),
            _bits(window.out_width), _bits(window.out_height),
        )  # fmt: skip
        step = gcd(window.column_step, window.row_step, window.frame_step, depth)
        return cls(write, read, _bits(depth // step))


def _line_buffer_features(
    window: Window, depth: int, width: int, device: Device
) -> dict[str, float]:
    counters = _Counters.of(window, depth)
    tiling = tile_memory(device.ram, depth, width)
    all_counters = (*counters.write, *counters.read)
    compared = sum(
        _bits(extent) * any(pair)
        for extent, pair in zip(
            (window.padded_height, window.padded_width), window.padding, strict=True
        )
    )
    return {
        "pointer bits": _bits(depth),
        "base bits": counters.base,
        "counter bits": sum(all_counters),
        "counters": sum(map(bool, all_counters)),
        "padding bits": compared,
        "padded width": width if window.words != window.beats else 0,
        "memory rows": width * (tiling.rows - 1) + tiling.rows - 1,
    }


def _parallel_features(block: Block, window: Window) -> dict[str, float]:
    place = _bits(window.padded_height) + _bits(window.padded_width)
    pixel = block.x_bits * block.channels
    return {
        "window bits": pixel * window.taps,
        "pixel bits": pixel,
        "padded width": pixel if window.words != window.beats else 0,
        "counter bits": place + _bits(window.passes),
    }


def _banked_features(block: Block, window: Window) -> dict[str, float]:
    place = _bits(window.height) + _bits(window.width) + _bits(window.channel_blocks)
    return {
        "window bits": block.x_bits * block.beat_lanes * window.taps,
        "written bits": _written_bits(block, window),
        "offset bits": _bits(block.depth) * sum(window.kernel),
        "counter bits": 2 * place + _bits(window.passes),
    }


def _written_bits(block: Block, window: Window) -> int:
    """Count registers between the beats and the memories of a banked line buffer."""
    return window.kernel[0] * (block.x_bits * block.beat_lanes + _bits(block.depth) + 1)


def _banked_ff(block: Block) -> int:
    assert block.window is not None
    return block.x_bits * block.taps + 80 + _written_bits(block, block.window)


def _interpolation_features(block: Block) -> dict[str, float]:
    digits = block.x_bits - TABLE_BITS
    pairs = -(-digits // 2)
    # A sum for each pair of digits but a single one, and the sums of these.
    rows = digits // 2 + pairs - 1
    return {"product bits": rows * (block.y_bits + 4), "code bits": block.out_bits}


def _interpolation_ff(block: Block) -> int:
    digits = block.x_bits - TABLE_BITS
    halves = 2 if digits > 2 else 1
    return 3 * (digits + block.out_bits) + (1 + halves) * block.y_bits + 4


def _array_features(block: Block, device: Device) -> dict[str, float]:
    assert block.window is not None
    depth = block.window.passes * block.pass_words
    address = _bits(depth)
    width = block.x_bits * block.lanes * block.taps
    memory_rows = 0
    table = 0.0
    for rows in _group_sizes(block):
        bits = rows * block.lanes * block.taps * block.weight_bits
        if block.weight_style == "block":
            memory_rows += bits * (tile_memory(device.ram, depth, bits).rows - 1)
        else:
            table += bits * _rom_luts(depth)
    products = 0.0
    if not block.in_dsp:
        products = block.multipliers * block.x_bits * block.weight_bits / 64
        if depth <= 2 and block.weight_style == "logic":
            products *= SHORT_SHARE
    sums = block.sums
    return {
        "sum bits": sums * block.acc_bits,
        "kept bits": sums * block.acc_bits * (block.kept_passes - 1),
        "tree bits": sums * _tree_bits(block),
        "hop bits": width * (block.groups + 1) + address * (block.groups - 1) + 5 * block.groups,
        "address bits": address,
        "memory rows": memory_rows,
        "table": table,
        "products": products,
    }


def _group_sizes(block: Block) -> list[int]:
    starts = range(0, block.rows, block.group_rows)
    return [min(block.group_rows, block.rows - first) for first in starts]


def _tree_bits(block: Block) -> int:
    """Register bits of the adder tree of one sum."""
    count = block.taps if block.sums_taps else block.lanes
    width, bits = block.x_bits + block.weight_bits, 0
    while count > 1:
        count, width = -(-count // 2), width + 1
        bits += count * width
    return bits


def _array_blocks(block: Block, device: Device) -> tuple[int, int]:
    """DSP blocks and block RAMs of an array."""
    assert block.window is not None
    depth = block.window.passes * block.pass_words
    dsp = bram = 0
    for rows in _group_sizes(block):
        if block.in_dsp:
            dsp += -(-rows * block.lanes * block.taps // device.products_per_dsp)
        if block.weight_style == "block":
            bits = rows * block.lanes * block.taps * block.weight_bits
            bram += tile_memory(device.ram, depth, bits).count
    return dsp, bram


def _requantizer_features(block: Block) -> dict[str, float]:
    channels = block.out_channels if block.kind in {"conv", "depthwise", "dot"} else 1
    constants = block.acc_bits + _mult_bits(block)
    short = channels <= 16
    table = constants * _rom_luts(channels) if channels > 1 else 0.0
    return {
        "digit bits": block.acc_bits * block.digit_bits * block.digit_stages,
        "stage bits": block.acc_bits * block.digit_stages,
        "serial bits": block.acc_bits * block.digit_stages * (block.interval > 1),
        "round bits": block.acc_bits * (block.round_stages - 1),
        "short table": table if short else 0.0,
        "long table": 0.0 if short else table,
    }


def _mult_bits(block: Block) -> int:
    return MULT_BITS if block.round_stages == 1 else TFLITE_MULT_BITS


def _line_buffer_ff(window: Window, depth: int) -> int:
    counters = _Counters.of(window, depth)
    level = max(depth, window.overdraft).bit_length() + 1
    return sum(counters.write) + sum(counters.read) + counters.base + 2 * _bits(depth) + level + 4


def _array_ff(block: Block) -> int:
    assert block.window is not None
    address = _bits(block.window.passes * block.pass_words)
    ff = block.sums * (block.acc_bits * (1 + block.kept_passes) + _tree_bits(block))
    ff += block.x_bits * block.lanes * (block.groups + 1) + (address + 5) * block.groups
    word_bits = block.multipliers * block.weight_bits
    ff += block.weight_delay * (word_bits + block.x_bits * block.lanes * block.groups)
    if not block.in_dsp:
        ff += block.multipliers * 2 * (block.x_bits + block.weight_bits)
    return ff + 25 + 5 * block.tree_depth


def _requantizer_ff(block: Block) -> int:
    stages = block.digit_stages
    stage = 2 * block.acc_bits + 2 + (_bits(block.interval) + 1 if block.interval > 1 else 0)
    mult_bits = _mult_bits(block)
    digits = mult_bits * (stages + 1) // 2
    channels = block.out_channels if block.kind in {"conv", "depthwise", "dot"} else 1
    constants = block.acc_bits + mult_bits + _bits(channels) if channels > 1 else 0
    rounding = block.acc_bits * (block.round_stages - 1) + 3 * block.out_bits
    return stages * stage + digits + constants + rounding + 10


_FLIP_FLOPS: Mapping[str, Callable[[Block], int]] = {
    "parallel line buffer": lambda block: block.x_bits * (block.lanes + block.channels) + 40,
    "array": _array_ff,
    "tap array": _array_ff,
    "sum queue": lambda block: 2 * block.acc_bits + 4,
    "requantizer": _requantizer_ff,
    "pack": lambda block: block.x_bits * (2 * block.beat_lanes - 1) + block.beat_lanes + 2,
    "pool": lambda block: 2 * (block.acc_bits or block.x_bits) + 3,
    "argmax": lambda block: block.x_bits + 3 * _bits(block.channels) + 2,
    "softmax": lambda block: 69 + 3 * _bits(block.channels),
    "tflite_softmax": lambda block: 213 + 3 * _bits(block.channels),
    "table": lambda block: 2,
    "interpolated_table": _interpolation_ff,
    "banked line buffer": _banked_ff,
    "running pool": lambda block: 2 * (block.acc_bits or block.x_bits) + 30,
    "sum": lambda block: 36 * -(-(block.x_bits + block.y_bits) // 4) + block.stages,
    "table_sum": lambda block: 3 * block.acc_bits + 6,
    "extremum": lambda block: block.x_bits + 2,
    "product": lambda block: 4 * (block.x_bits + block.y_bits) + 10,
    "concat": lambda block: 10,
}
