"""Convolutions of every channel by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from nnef_hw.hardware.devices import Device
from nnef_hw.parts import Part
from nnef_hw.streaming.filters.arrays import ArrayLayer
from nnef_hw.streaming.filters.taps import TapFolding, View, lines_of, tap_foldings
from nnef_hw.streaming.layers.layer import Contents, size_steps

__all__ = ["DepthwiseFolding", "DepthwiseLayer"]


@dataclass(frozen=True, kw_only=True)
class DepthwiseFolding(TapFolding):
    """Several channels at once; their taps one by one, or all from a banked line buffer."""

    def view(self, layer: DepthwiseLayer) -> View:
        blocks = -(-layer.out_channels // self.lanes)
        window = layer.window.folded(blocks, blocks)
        return View(window, self.lanes, layer.out_channels)


@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseLayer(ArrayLayer[DepthwiseFolding]):
    """A convolution of every channel by itself: ``weights`` [channels, taps]."""

    label = "depthwise"

    def foldings(self, device: Device) -> Sequence[DepthwiseFolding]:
        foldings: list[DepthwiseFolding] = []
        unit = lcm(self.operand_lanes, self.result_lanes)
        for lanes in size_steps(self.out_channels, unit):
            for lines, taps in ((0, 1), (lines_of(self.window), self.window.taps)):
                size = DepthwiseFolding(lanes=lanes, taps=taps, lines=lines)
                foldings += tap_foldings(size, self, device)
        return foldings

    def parts(self, folding: DepthwiseFolding, device: Device) -> tuple[Part, ...]:
        return folding.parts(self, device)

    def cycles(self, folding: DepthwiseFolding, device: Device) -> int:
        return folding.cycles(self, device)

    def contents(self, folding: DepthwiseFolding) -> Contents:
        del folding
        return self.array_contents(self.weights, self.bias)
