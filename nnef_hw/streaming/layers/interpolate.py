"""Interpolation between the codes of an image."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.layers import Interpolate
from nnef_hw.parts import Part
from nnef_hw.parts.images.interpolate import TAPS
from nnef_hw.parts.images.interpolate import Interpolate as InterpolatePart
from nnef_hw.streaming.layers.layer import Folding, PlainLayer, StreamContext, WindowLayer, lowers

__all__ = ["InterpolateLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class InterpolateLayer(WindowLayer[Folding], PlainLayer):
    """Codes at places between the pixels of an image."""

    label = "interpolate"

    rows: Places
    columns: Places

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        results = self.rows.count * self.columns.count * self.window.channel_blocks
        return max(TAPS * results, self.window.beats)

    def part(self, device: Device) -> Part:
        return InterpolatePart(
            rows=self.rows, columns=self.columns, channels=self.window.channel_blocks,
            ram=device.ram, **self.codes_format,
        )  # fmt: skip


@lowers("interpolate")
def _lower_interpolate(context: StreamContext[Interpolate]) -> InterpolateLayer:
    layer = context.layer
    return InterpolateLayer(
        **context.common, window=Window(*layer.image), rows=layer.rows, columns=layer.columns
    )
