"""Layers that move codes -> the components of ``rtl/`` that do it."""

from __future__ import annotations

from nnef_hw.rtl.concat import Split
from nnef_hw.rtl.pad import Pad
from nnef_hw.rtl.upsample import Upsample
from nnef_hw.schedule import Block
from nnef_hw.schedule.layers import MoveLayer, PadLayer, SliceLayer
from nnef_hw.schedule.targets import Device

__all__ = ["mover"]


def mover(block: Block, layer: MoveLayer, device: Device) -> Pad | Split | Upsample:
    """Return the component that moves a layer's codes."""
    codes = {"bits": block.x_bits, "signed": block.x_signed}
    if isinstance(layer, SliceLayer):
        kept = [n == 1 for n, run in enumerate(layer.runs) if run]
        runs = [run for run in layer.runs if run]
        return Split(runs=runs, turns=layer.turns, kept=kept, **codes)
    window = layer.window
    image = {
        "height": window.height, "width": window.width, "channels": window.channel_blocks,
    }  # fmt: skip
    if isinstance(layer, PadLayer):
        pad_code = layer.source.zero_point
        return Pad(padding=window.padding, pad_code=pad_code, **image, **codes)
    return Upsample(factors=layer.factors, depth=block.depth, ram=device.ram, **image, **codes)
