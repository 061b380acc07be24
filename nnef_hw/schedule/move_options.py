"""The block of a layer that only moves codes: it has no folding."""

from __future__ import annotations

import math

from nnef_hw.schedule.folding import new_block
from nnef_hw.schedule.layers import (
    MoveLayer,
    PadLayer,
    SliceLayer,
    TransposeLayer,
    UpsampleLayer,
)
from nnef_hw.schedule.plan import Block

__all__ = ["move_block"]


def move_block(layer: MoveLayer) -> Block:
    """Return the block of a layer, without an estimate of its resources."""
    if isinstance(layer, SliceLayer):
        return new_block(
            layer, "slice", channels=layer.channels, out_channels=layer.channels,
            runs=layer.runs, cycles=layer.turns * sum(layer.runs),
        )  # fmt: skip
    window = layer.window
    channels = {"channels": window.channel_blocks, "out_channels": window.channel_blocks}
    if isinstance(layer, PadLayer):
        return new_block(layer, "pad", **channels, window=window, cycles=window.words)
    # The second row of memory lets codes in while the first one is read.
    depth = 2 * window.width * window.channel_blocks
    if isinstance(layer, TransposeLayer):
        channels["out_channels"] = layer.channels
        return new_block(
            layer, "transpose", **channels, window=window, factors=layer.order,
            depth=2 * window.beats, cycles=window.beats,
        )  # fmt: skip
    if isinstance(layer, UpsampleLayer):
        return new_block(
            layer, "upsample", **channels, window=window, factors=layer.factors, depth=depth,
            cycles=window.beats * math.prod(layer.factors),
        )  # fmt: skip
    channels["out_channels"] //= math.prod(layer.factors)
    return new_block(
        layer, "depth_to_space", **channels, window=window, factors=layer.factors,
        depth=1 << (depth - 1).bit_length(), cycles=window.beats,
    )  # fmt: skip
