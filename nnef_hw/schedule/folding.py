"""What the options of all layers share: plain blocks, line buffer depths, digits, foldings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from nnef_hw.blockram import tile_memory
from nnef_hw.devices import Device
from nnef_hw.numerics import Requant
from nnef_hw.schedule.layers import Layer
from nnef_hw.schedule.plan import Block, Resources, Source
from nnef_hw.schedule.resources import (
    block_parts,
    block_resources,
    component_resources,
    line_buffer_resources,
)
from nnef_hw.tflite_numerics import TfliteRequant
from nnef_hw.window import Window

__all__ = [
    "factor_bits",
    "foldings",
    "multiplier_options",
    "new_block",
    "requantizers",
    "with_depths",
]

MAX_DEPTH_DOUBLINGS = 2
TFLITE_ROUND_STAGES = 3


def new_block(
    layer: Layer, kind: str, *, channels: int, out_channels: int, cycles: int = 0, **more: Any
) -> Block:
    """Return a layer's block, without an estimate of its resources."""
    return Block(
        name=layer.name,
        op=layer.node.op,
        kind=kind,
        sources=tuple(map(Source, layer.sources)),
        tensor=layer.node.outputs[0],
        channels=channels,
        out_channels=out_channels,
        x_bits=layer.source.bits,
        x_signed=layer.source.signed,
        out_bits=layer.target.bits,
        out_signed=layer.target.signed,
        cycles=cycles,
        resources=Resources(),
        **more,
    )


def foldings(extent: int) -> list[int]:
    """Sizes s for which no smaller one needs as few repetitions ``ceil(extent / s)``."""
    return sorted({-(-extent // repetitions) for repetitions in range(1, extent + 1)})


def factor_bits(requant: Requant | TfliteRequant) -> int:
    """Width of the greatest number that a requantizer multiplies with."""
    if isinstance(requant, TfliteRequant):
        return requant.mult_bits
    return max(requant.mult).bit_length()


def requantizers(requant: Requant | TfliteRequant, device: Device) -> list[dict[str, Any]]:
    """List the foldings of a requantizer, slowest first, as fields of a :class:`Block`."""
    top_bits = factor_bits(requant)
    round_stages = TFLITE_ROUND_STAGES if isinstance(requant, TfliteRequant) else 1
    widest = min(device.digit_bits, top_bits)
    choices = [(bits, 1) for bits in range(1, widest)]
    digits = -(-top_bits // widest)
    choices += [(widest, -(-digits // interval)) for interval in reversed(foldings(digits))]
    return [
        {
            "digit_bits": bits,
            "digit_stages": stages,
            "interval": -(-top_bits // (bits * stages)),
            "round_stages": round_stages,
        }
        for bits, stages in choices
    ]


def multiplier_options(block: Block, device: Device) -> list[dict[str, Any]]:
    """List where multipliers and weights of a folding may be, as fields of a :class:`Block`."""
    assert block.window is not None
    in_dsp = [True, False] if block.x_bits <= 8 and block.weight_bits <= 8 else [False]
    words = block.window.passes * block.pass_words
    styles = ["block", "logic"] if words <= device.logic_words else ["block"]
    return [{"in_dsp": dsp, "weight_style": style} for dsp, style in product(in_dsp, styles)]


def with_depths(block: Block, window: Window, reading: int, device: Device) -> list[Block]:
    """Vary the line buffer's depth; a shallow one makes the reader wait at row and frame ends."""
    codes = window.height * window.width * block.channels
    if block.parallel:
        # Words that complete no window pass in a cycle each.
        cycles = max(reading + window.words - window.out_pixels, codes)
        block = replace(block, depth=window.padded_width, cycles=cycles)
        return [replace(block, resources=block_resources(block, device))]
    depth = max(2, 1 << (window.min_depth - 1).bit_length())
    width = block.x_bits * block.lanes
    while (
        tile_memory(device.ram, 2 * depth, width).count
        == tile_memory(device.ram, depth, width).count
    ):
        depth *= 2
    parts = [part for part in block_parts(block) if part != "line buffer"]
    others = sum((component_resources(part, block, device) for part in parts), Resources())
    options: list[Block] = []
    for _ in range(1 + MAX_DEPTH_DOUBLINGS):
        missing, waits = _missing_words(window, depth)
        cycles = max(reading + missing + 2 * waits, window.words, codes)
        if options and cycles >= options[-1].cycles:
            break
        resources = others + line_buffer_resources(block, depth, device)
        options.append(
            replace(block, depth=depth, cycles=cycles, missing_words=missing, resources=resources)
        )
        depth *= 2
    return options


@cache
def _missing_words(window: Window, depth: int) -> tuple[int, int]:
    """Words per frame that had no room before the reader came to wait for them; how often it does.

    They come as fast as they are written, at best one per cycle.
    """
    steps = (
        (window.column_step, window.out_height * (window.out_width - 1)),
        (window.row_step, window.out_height - 1),
        (window.frame_step, 1),
    )
    missing = [(max(0, window.span + step - depth), count) for step, count in steps]
    return (
        sum(words * count for words, count in missing),
        sum(count for words, count in missing if words),
    )
