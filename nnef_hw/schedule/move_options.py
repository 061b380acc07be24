"""The block of a layer that only moves codes: it has no folding."""

from __future__ import annotations

from nnef_hw.schedule.folding import new_block
from nnef_hw.schedule.layers import MoveLayer, PadLayer, SliceLayer
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
    rows, columns = layer.factors
    # The second row of memory lets codes in while the first one is repeated.
    return new_block(
        layer, "upsample", **channels, window=window, factors=layer.factors,
        depth=2 * window.width * window.channel_blocks, cycles=window.beats * rows * columns,
    )  # fmt: skip
