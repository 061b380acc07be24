"""Layers that move codes -> the components of ``rtl/`` that do it."""

from __future__ import annotations

from typing import Any

from nnef_hw.devices import Device
from nnef_hw.rtl.concat import Split
from nnef_hw.rtl.depthtospace import DepthToSpace
from nnef_hw.rtl.pad import Pad
from nnef_hw.rtl.transpose import Transpose
from nnef_hw.rtl.upsample import Upsample
from nnef_hw.schedule import Block
from nnef_hw.schedule.layers import MoveLayer, PadLayer, SliceLayer, TransposeLayer, UpsampleLayer

__all__ = ["mover"]


def mover(block: Block, layer: MoveLayer, device: Device) -> Any:
    """Return the component that moves a layer's codes."""
    codes = {"bits": block.x_bits, "signed": block.x_signed}
    if isinstance(layer, SliceLayer):
        kept = [n == 1 for n, run in enumerate(layer.runs) if run]
        runs = [run for run in layer.runs if run]
        return Split(runs=runs, turns=layer.turns, kept=kept, **codes)
    window = layer.window
    if isinstance(layer, TransposeLayer):
        extents = (window.height, window.width, window.channel_blocks)
        return Transpose(extents=extents, order=layer.order, ram=device.ram, **codes)
    channels = block.out_channels
    image = {"height": window.height, "width": window.width, "channels": channels}
    if isinstance(layer, PadLayer):
        return Pad(padding=window.padding, pad_code=layer.pad_code, **image, **codes)
    component = Upsample if isinstance(layer, UpsampleLayer) else DepthToSpace
    return component(factors=layer.factors, depth=block.depth, ram=device.ram, **image, **codes)
