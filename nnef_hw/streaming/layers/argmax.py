"""Index of the largest or the smallest channel."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.parts import Part
from nnef_hw.parts.functions.argmax import Argmax
from nnef_hw.streaming.layers.layer import Call, Folding, PlainLayer, lowers

__all__ = ["ArgmaxLayer", "ArgminLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class ArgmaxLayer(PlainLayer):
    """Index of the largest channel."""

    label = "argmax"

    pixels: int
    channels: int

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.pixels * self.channels

    def part(self, device: Device) -> Part:
        del device
        return Argmax(channels=self.channels, **self.codes_format)


@dataclass(frozen=True, eq=False, kw_only=True)
class ArgminLayer(ArgmaxLayer):
    """Index of the smallest channel."""

    label = "argmin"

    def part(self, device: Device) -> Part:
        del device
        return Argmax(channels=self.channels, greatest=False, **self.codes_format)


@lowers("argmax_reduce")
def _lower_argmax(call: Call) -> ArgmaxLayer:
    return ArgmaxLayer(**call.common, **call.extents)


@lowers("argmin_reduce")
def _lower_argmin(call: Call) -> ArgminLayer:
    return ArgminLayer(**call.common, **call.extents)
