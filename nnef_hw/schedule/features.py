"""What a component is made of: bits of registers, adders, counters, tables; and its flip-flops.

The LUTs of a component are a sum of these features with the weights of ``costs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import gcd

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.schedule.plan import Block
from nnef_hw.tables import TABLE_BITS
from nnef_hw.window import Window

__all__ = [
    "component_features",
    "component_flip_flops",
    "counter_bits",
    "group_sizes",
    "line_buffer_features",
    "line_buffer_flip_flops",
]

MULT_BITS = 16
SHORT_SHARE = 0.36
"""LUTs of a multiplier with at most two weights, as a share of any other's."""
TFLITE_MULT_BITS = 31
SHORT_TABLE = 16
"""Words of a constant table of which each bit is one LUT4."""


def component_features(part: str, block: Block, device: Device) -> dict[str, float]:
    """Count what a component is made of; ``fixed`` is 1."""
    if part == "line buffer":
        assert block.window is not None
        width = block.x_bits * block.lanes
        features = line_buffer_features(block.window, block.depth, width, device)
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
        features = {"code bits": block.x_bits, "index bits": counter_bits(block.channels)}
    elif part == "sum":
        features = {"tables": -(-(block.x_bits + (block.y_bits or block.x_bits)) // 4)}
    elif part == "extremum":
        features = {"code bits": block.x_bits}
    elif part == "product":
        features = {"products": block.x_bits * block.y_bits / 64}
    elif part in {"softmax", "tflite_softmax"}:
        features = {"index bits": counter_bits(block.channels)}
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
        "counter bits": counter_bits(-(-block.channels // lanes)) if missing else 0,
    }


def counter_bits(count: int) -> int:
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
            write = (counter_bits(window.channel_blocks), counter_bits(window.padded_width))
            write += (counter_bits(window.padded_height),) if top_bottom else ()
        read = (
            0 if window.by_channel else counter_bits(window.channel_blocks),
            counter_bits(window.kernel[1]), counter_bits(window.kernel[0]),
            counter_bits(window.passes), counter_bits(window.out_width),
            counter_bits(window.out_height),
        )  # fmt: skip
        step = gcd(window.column_step, window.row_step, window.frame_step, depth)
        return cls(write, read, counter_bits(depth // step))


def line_buffer_features(
    window: Window, depth: int, width: int, device: Device
) -> dict[str, float]:
    """Count what a line buffer of words of so many bits is made of, without ``fixed``."""
    counters = _Counters.of(window, depth)
    tiling = tile_memory(device.ram, depth, width)
    all_counters = (*counters.write, *counters.read)
    compared = sum(
        counter_bits(extent) * any(pair)
        for extent, pair in zip(
            (window.padded_height, window.padded_width), window.padding, strict=True
        )
    )
    return {
        "pointer bits": counter_bits(depth),
        "base bits": counters.base,
        "counter bits": sum(all_counters),
        "counters": sum(map(bool, all_counters)),
        "padding bits": compared,
        "padded width": width if window.words != window.beats else 0,
        "memory rows": width * (tiling.rows - 1) + tiling.rows - 1,
    }


def _parallel_features(block: Block, window: Window) -> dict[str, float]:
    place = counter_bits(window.padded_height) + counter_bits(window.padded_width)
    pixel = block.x_bits * block.channels
    return {
        "window bits": pixel * window.taps,
        "pixel bits": pixel,
        "padded width": pixel if window.words != window.beats else 0,
        "counter bits": place + counter_bits(window.passes),
    }


def _banked_features(block: Block, window: Window) -> dict[str, float]:
    place = sum(map(counter_bits, (window.height, window.width, window.channel_blocks)))
    return {
        "window bits": block.x_bits * block.beat_lanes * window.taps,
        "written bits": _written_bits(block, window),
        "offset bits": counter_bits(block.depth) * sum(window.kernel),
        "counter bits": 2 * place + counter_bits(window.passes),
    }


def _written_bits(block: Block, window: Window) -> int:
    """Count registers between the beats and the memories of a banked line buffer."""
    return window.kernel[0] * (block.x_bits * block.beat_lanes + counter_bits(block.depth) + 1)


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
    address = counter_bits(depth)
    width = block.x_bits * block.lanes * block.taps
    memory_rows = 0
    table = 0.0
    for rows in group_sizes(block):
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
    features: dict[str, float] = {}
    if block.sums_taps:
        features["columns"] = _table_columns(block) if block.weight_style == "logic" else 0
    return {
        **features,
        "sum bits": sums * block.acc_bits,
        "kept bits": sums * block.acc_bits * (block.kept_passes - 1),
        "tree bits": sums * _tree_bits(block),
        "hop bits": width * (block.groups + 1) + address * (block.groups - 1) + 5 * block.groups,
        "address bits": address,
        "memory rows": memory_rows,
        "table": table,
        "products": products,
    }


def group_sizes(block: Block) -> list[int]:
    """Return the rows of every group of rows that shares a weight memory."""
    starts = range(0, block.rows, block.group_rows)
    return [min(block.group_rows, block.rows - first) for first in starts]


def _table_columns(block: Block) -> int:
    """Count different columns of the weight table of a tap array; equal ones are merged."""
    assert block.window is not None
    bits = block.multipliers * block.weight_bits
    depth = block.window.passes * block.pass_words
    return min(bits, (1 << depth) - 2) if depth <= SHORT_TABLE else bits


def _tree_bits(block: Block) -> int:
    """Register bits of the adder tree of one sum."""
    count = block.taps if block.sums_taps else block.lanes
    width, bits = block.x_bits + block.weight_bits, 0
    while count > 1:
        count, width = -(-count // 2), width + 1
        bits += count * width
    return bits


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


def line_buffer_flip_flops(window: Window, depth: int) -> int:
    """Return the flip-flops of a line buffer."""
    counters = _Counters.of(window, depth)
    level = max(depth, window.overdraft).bit_length() + 1
    flags = 4 + sum(any(pair) for pair in window.padding)
    pointers = counters.base + 2 * counter_bits(depth)
    return sum(counters.write) + sum(counters.read) + pointers + level + flags


def _array_ff(block: Block) -> int:
    assert block.window is not None
    address = counter_bits(block.window.passes * block.pass_words)
    ff = block.sums * (block.acc_bits * (1 + block.kept_passes) + _tree_bits(block))
    ff += block.x_bits * block.lanes * (block.groups + 1) + (address + 5) * block.groups
    word_bits = block.multipliers * block.weight_bits
    ff += block.weight_delay * (word_bits + block.x_bits * block.lanes * block.groups)
    if not block.in_dsp:
        ff += block.multipliers * 2 * (block.x_bits + block.weight_bits)
    return ff + 25 + 5 * block.tree_depth


def _tap_array_ff(block: Block, device: Device) -> int:
    in_logic = block.weight_style == "logic"
    codes = block.multipliers * block.x_bits
    weights = block.multipliers * block.weight_bits
    if in_logic:
        weights = _table_columns(block)
    ff = codes * (1 + block.weight_delay) + weights * (block.weight_delay + in_logic)
    sums = 1 + (block.pass_words > 1)
    if block.kept_passes == 2 or device.family == "ice40":
        sums += block.kept_passes - 1
    ff += block.sums * (block.acc_bits * sums + _tree_bits(block))
    if not block.in_dsp:
        ff += block.multipliers * 5 * (block.x_bits + block.weight_bits) // 2
    return ff + 35


def _requantizer_ff(block: Block) -> int:
    stages = block.digit_stages
    stage = 2 * block.acc_bits + 2 + (counter_bits(block.interval) + 1 if block.interval > 1 else 0)
    mult_bits = _mult_bits(block)
    digits = mult_bits * (stages + 1) // 2
    channels = block.out_channels if block.kind in {"conv", "depthwise", "dot"} else 1
    constants = block.acc_bits + mult_bits + counter_bits(channels) if channels > 1 else 0
    rounding = block.acc_bits * (block.round_stages - 1) + 3 * block.out_bits
    return stages * stage + digits + constants + rounding + 10


_FLIP_FLOPS: Mapping[str, Callable[[Block], int]] = {
    "parallel line buffer": lambda block: block.x_bits * (block.lanes + block.channels) + 40,
    "array": _array_ff,
    "sum queue": lambda block: 2 * block.acc_bits + 4,
    "requantizer": _requantizer_ff,
    "pack": lambda block: block.x_bits * (2 * block.beat_lanes - 1) + block.beat_lanes + 2,
    "pool": lambda block: 2 * (block.acc_bits or block.x_bits) + 3,
    "argmax": lambda block: block.x_bits + 3 * counter_bits(block.channels) + 2,
    "softmax": lambda block: 87 + 3 * counter_bits(block.channels),
    "tflite_softmax": lambda block: 213 + 3 * counter_bits(block.channels),
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


def component_flip_flops(part: str, block: Block, device: Device) -> int:
    """Return the flip-flops of a component that is no line buffer."""
    if part == "tap array":
        return _tap_array_ff(block, device)
    return _FLIP_FLOPS[part](block)
