"""Index of the largest or the smallest channel."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.ir.layers import ArgExtremum
from nnef_hw.parts import Part
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.streaming.layers.layer import Folding, PlainLayer, StreamContext, lowers

__all__ = ["ArgmaxLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ArgmaxLayer(PlainLayer):
    """Index of the largest or the smallest channel."""

    label = "argmax"

    pixels: int
    channels: int
    greatest: bool

    @property
    def takes_lanes(self) -> bool:
        return self.result_lanes == 1 and self.channels % self.operand_lanes == 0

    def kind(self, folding: Folding) -> str:
        del folding
        return "argmax" if self.greatest else "argmin"

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.pixels * self.channels // self.operand_lanes

    def part(self, device: Device) -> Part:
        del device
        return Argmax(
            channels=self.channels, greatest=self.greatest, lanes=self.operand_lanes,
            **self.codes_format,
        )  # fmt: skip


@lowers("argmax_reduce", "argmin_reduce")
def _lower_argmax(context: StreamContext[ArgExtremum]) -> ArgmaxLayer:
    return ArgmaxLayer(**context.common, **context.extents, greatest=context.layer.greatest)
