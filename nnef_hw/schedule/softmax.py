"""Softmax over channels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.devices import Device
from nnef_hw.parts.softmax import Softmax
from nnef_hw.parts.tflite_softmax import TfliteSoftmax
from nnef_hw.schedule.layer import Call, Contents, Folding, PlainLayer, lowers
from nnef_hw.tflite_numerics import TFLITE_SOFTMAX_QTYPE

__all__ = ["SoftmaxLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class SoftmaxLayer(PlainLayer):
    """Softmax over channels; ``table`` has the exponentials."""

    label = "softmax"

    pixels: int
    channels: int
    table: NDArray[np.int64]

    @property
    def _is_tflite(self) -> bool:
        return self.target == TFLITE_SOFTMAX_QTYPE

    def kind(self, folding: Folding) -> str:
        del folding
        return "tflite_softmax" if self._is_tflite else "softmax"

    def part(self, device: Device) -> Softmax | TfliteSoftmax:
        part = TfliteSoftmax if self._is_tflite else Softmax
        return part(channels=self.channels, ram=device.ram, **self.codes_format)

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding
        return self.pixels * self.part(device).pixel_cycles

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {"softmax": {"table": self.table.tolist()}}


@lowers("softmax")
def _lower_softmax(call: Call) -> SoftmaxLayer:
    return SoftmaxLayer(**call.known, **call.extents, table=call.attrs["table"])
