"""Convolutions of every channel by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from nnef_hw.devices import Device
from nnef_hw.parts import Part
from nnef_hw.streaming.arrays import ArrayLayer
from nnef_hw.streaming.layer import Contents, size_steps
from nnef_hw.streaming.requantize import requant_contents
from nnef_hw.streaming.taps import TapFolding, View, lines_of, tap_foldings

__all__ = ["DepthwiseFolding", "DepthwiseLayer"]


@dataclass(frozen=True, kw_only=True)
class DepthwiseFolding(TapFolding):
    """Several channels at once; their taps one by one, or all from a banked line buffer."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DepthwiseLayer(ArrayLayer[DepthwiseFolding]):
    """A convolution of every channel by itself: ``weights`` [channels, taps]."""

    label = "depthwise"

    def _view(self, lanes: int) -> View:
        blocks = -(-self.out_channels // lanes)
        window = self.window.folded(blocks, blocks)
        return View(window, lanes, self.out_channels)

    def foldings(self, device: Device) -> Sequence[DepthwiseFolding]:
        foldings: list[DepthwiseFolding] = []
        unit = lcm(self.operand_lanes, self.result_lanes)
        for lanes in size_steps(self.out_channels, unit):
            view = self._view(lanes)
            for lines, taps in ((0, 1), (lines_of(view.window), view.window.taps)):
                size = DepthwiseFolding(lanes=lanes, taps=taps, lines=lines)
                foldings += tap_foldings(size, self, view, device)
        return foldings

    def parts(self, folding: DepthwiseFolding, device: Device) -> tuple[Part, ...]:
        return folding.parts(self, self._view(folding.lanes), device)

    def cycles(self, folding: DepthwiseFolding, device: Device) -> int:
        return folding.cycles(self, self._view(folding.lanes), device)

    def contents(self, folding: DepthwiseFolding) -> Contents:
        del folding
        return {
            "array": {"weights": self.weights},
            "requantize": requant_contents(self.requant, self.bias.tolist(), self.result_lanes),
        }
