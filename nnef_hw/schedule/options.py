"""Every way to fold a layer onto a device: the candidates the solver chooses from."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from nnef_hw.blockram import tile_memory
from nnef_hw.schedule.layers import (
    ArgmaxLayer,
    ConvLayer,
    Layer,
    PoolLayer,
    SoftmaxLayer,
    TableLayer,
)
from nnef_hw.schedule.plan import Block, Resources
from nnef_hw.schedule.resources import block_resources
from nnef_hw.schedule.targets import Device
from nnef_hw.window import Window

__all__ = ["layer_options"]

DIGIT_BITS = (1, 2, 3, 4, 6, 8)
MAX_LOGIC_WORDS = 128
MAX_DEPTH_DOUBLINGS = 2
LEAST_UTILIZATION = 0.25


def layer_options(layer: Layer, device: Device) -> list[Block]:
    """List the blocks that could run a layer; ``cycles`` is their cost per frame."""
    if isinstance(layer, ConvLayer):
        return _conv_options(layer, device)
    if isinstance(layer, PoolLayer):
        return _pool_options(layer, device)
    return [_plain_block(layer, device)]


def _plain_block(layer: TableLayer | SoftmaxLayer | ArgmaxLayer, device: Device) -> Block:
    kinds = {TableLayer: "table", SoftmaxLayer: "softmax", ArgmaxLayer: "argmax"}
    channels = 1 if isinstance(layer, TableLayer) else layer.channels
    block = Block(
        name=layer.name,
        op=layer.node.op,
        kind=kinds[type(layer)],
        channels=channels,
        out_channels=1 if isinstance(layer, ArgmaxLayer) else channels,
        x_bits=layer.source.bits,
        x_signed=layer.source.signed,
        out_bits=layer.target.bits,
        out_signed=layer.target.signed,
        cycles=15 * channels + 3 if isinstance(layer, SoftmaxLayer) else channels,
        resources=Resources(),
    )
    return replace(block, resources=block_resources(block, device))


def _pool_options(layer: PoolLayer, device: Device) -> list[Block]:
    window = layer.window
    block = Block(
        name=layer.name,
        op=layer.node.op,
        kind=layer.node.op,
        channels=window.channel_blocks,
        out_channels=window.channel_blocks,
        x_bits=layer.source.bits,
        x_signed=layer.source.signed,
        out_bits=layer.target.bits,
        out_signed=layer.target.signed,
        cycles=0,
        resources=Resources(),
        window=window,
        acc_bits=layer.acc_bits,
    )
    if layer.requant is None:
        reading = window.out_pixels * window.passes * window.pass_words
        return _with_depths(block, window, reading, device)
    options = []
    for digit_bits in _digits(device):
        interval = -(-max(layer.requant.mult).bit_length() // digit_bits)
        reading = window.out_pixels * window.passes * max(window.pass_words, interval)
        folded = replace(block, digit_bits=digit_bits, interval=interval)
        options += _with_depths(folded, window, reading, device)
    return options


def _conv_options(layer: ConvLayer, device: Device) -> list[Block]:
    options = _parallel_options(layer, device)
    largest = device.products + int(device.lut * 0.5) // device.lut_multiplier
    for lanes in _foldings(layer.in_channels):
        blocks_in = -(-layer.in_channels // lanes)
        for rows in _foldings(layer.out_channels):
            if rows * lanes <= largest:
                passes = -(-layer.out_channels // rows)
                window = replace(layer.window, channel_blocks=blocks_in, passes=passes)
                options += _arithmetic_options(
                    _conv_block(layer, window, rows, lanes, device), window, layer, device
                )
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
    for rows in _foldings(layer.out_channels):
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
    block = Block(
        name=layer.name,
        op=layer.node.op,
        kind="conv",
        channels=layer.in_channels,
        out_channels=layer.out_channels,
        x_bits=layer.source.bits,
        x_signed=layer.source.signed,
        out_bits=layer.target.bits,
        out_signed=layer.target.signed,
        cycles=0,
        resources=Resources(),
        window=window,
        parallel=parallel,
        rows=rows,
        lanes=lanes,
        weight_bits=layer.weight_bits,
        acc_bits=layer.acc_bits,
        weight_delay=device.weight_delay,
        macs=layer.macs,
        multipliers=rows * lanes,
    )
    return replace(block, group_rows=_group_rows(block, window, device))


def _arithmetic_options(
    block: Block, window: Window, layer: ConvLayer, device: Device
) -> list[Block]:
    """Vary the requantizer, the kind of multipliers and the weight memory of one folding."""
    options = []
    fastest = None
    top_bits = max(layer.requant.mult).bit_length()
    in_dsp = [True, False] if layer.source.bits <= 8 and layer.weight_bits <= 8 else [False]
    words = window.passes * block.pass_words
    styles = ["block", "logic"] if words <= MAX_LOGIC_WORDS else ["block"]
    for digit_bits, kept_passes in product(_digits(device), (1, 2)):
        folded = replace(
            block,
            digit_bits=digit_bits,
            interval=-(-top_bits // digit_bits),
            kept_passes=kept_passes,
        )
        reading = window.out_pixels * _pass_cycles(folded, window)
        if fastest is not None and reading >= fastest:
            continue
        fastest = reading
        for dsp, style in product(in_dsp, styles):
            variant = replace(folded, in_dsp=dsp, weight_style=style)
            options += _with_depths(variant, window, reading, device)
    return options


def _digits(device: Device) -> list[int]:
    return [bits for bits in DIGIT_BITS if bits <= device.digit_bits]


def _pass_cycles(block: Block, window: Window) -> int:
    """Cycles of all passes over one window: a pass waits for the results of those before."""
    full, rest = divmod(block.out_channels, block.rows)
    counts = [block.rows] * full + ([rest] if rest else [])
    return sum(max(block.pass_words, _result_cycles(block, count)) for count in counts)


def _result_cycles(block: Block, count: int) -> int:
    """Least cycles per pass of ``count`` results."""
    stay = block.result_latency + (count - 1) * block.result_spacing
    return max(count * block.result_spacing, -(-stay // block.kept_passes))


def _with_depths(block: Block, window: Window, reading: int, device: Device) -> list[Block]:
    """Vary the line buffer's depth; a shallow one makes the reader wait at row and frame ends."""
    if block.parallel:
        # Words that complete no window pass in a cycle each.
        cycles = reading + window.words - window.out_pixels
        block = replace(block, depth=window.padded_width, cycles=cycles)
        return [replace(block, resources=block_resources(block, device))]
    depth = max(2, 1 << (window.min_depth - 1).bit_length())
    width = block.x_bits * block.lanes
    while (
        tile_memory(device.ram, 2 * depth, width).count
        == tile_memory(device.ram, depth, width).count
    ):
        depth *= 2
    options: list[Block] = []
    for _ in range(1 + MAX_DEPTH_DOUBLINGS):
        cycles = max(reading + _refill_cycles(window, depth), window.words)
        if options and cycles >= options[-1].cycles:
            break
        variant = replace(block, depth=depth, cycles=cycles)
        options.append(replace(variant, resources=block_resources(variant, device)))
        depth *= 2
    return options


def _refill_cycles(window: Window, depth: int) -> int:
    """Cycles per frame in which the reader waits for words that had no room."""
    steps = (
        (window.column_step, window.out_height * (window.out_width - 1)),
        (window.row_step, window.out_height - 1),
        (window.frame_step, 1),
    )
    missing = ((max(0, window.span + step - depth), count) for step, count in steps)
    return sum((words + 2) * count for words, count in missing if words)


def _foldings(extent: int) -> list[int]:
    """Sizes s for which no smaller one needs as few repetitions ``ceil(extent / s)``."""
    return sorted({-(-extent // repetitions) for repetitions in range(1, extent + 1)})


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
