"""Interpolation between the codes of an image."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.ir.operators import InterpolateAttributes
from nnef_hw.parts import Part
from nnef_hw.parts.images.interpolate import TAPS, Interpolate
from nnef_hw.streaming.layers.layer import Call, Folding, PlainLayer, lowers

__all__ = ["InterpolateLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class InterpolateLayer(PlainLayer):
    """Codes at places between the pixels of an image."""

    label = "interpolate"

    window: Window
    rows: Places
    columns: Places

    @property
    def image(self) -> Window:
        return self.window

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        results = self.rows.count * self.columns.count * self.window.channel_blocks
        return max(TAPS * results, self.window.beats)

    def part(self, device: Device) -> Part:
        return Interpolate(
            rows=self.rows, columns=self.columns, channels=self.window.channel_blocks,
            ram=device.ram, **self.codes_format,
        )  # fmt: skip


@lowers("interpolate")
def _lower_interpolate(call: Call) -> InterpolateLayer:
    shape = call.graph.tensor(call.node.inputs[0]).shape
    rows, columns = call.node.attributes(InterpolateAttributes).places(shape)
    window = Window(*call.image(call.node.inputs[0]))
    return InterpolateLayer(**call.common, window=window, rows=rows, columns=columns)
