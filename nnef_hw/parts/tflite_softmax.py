"""Softmax as TensorFlow Lite's reference kernel computes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe, counter_bits
from nnef_hw.parts.softmax import divide_in_turn
from nnef_hw.parts.timing import Process, Stream

__all__ = ["TfliteSoftmax"]


@dataclass(frozen=True, kw_only=True)
class TfliteSoftmax(Pipe):
    """Exponentials from a table, which is its contents, and the reciprocal of their sum."""

    component = "nnef_hw.rtl.tflite_softmax:TfliteSoftmax"
    label = "softmax"
    costs = "tflite softmax"
    exponential_bits = 31

    channels: int
    bits: int
    signed: bool
    ram: BlockRam

    @property
    def _steps(self) -> int:
        return self.channels.bit_length() - 1

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last code to its first probability."""
        return self.channels + 2 * self._steps + 273

    @property
    def spacing(self) -> int:
        """Cycles from one probability to the next."""
        return self._steps + 37

    @property
    def pixel_cycles(self) -> int:
        """Cycles from a pixel's first code to the next pixel's."""
        return self.channels + self.latency + (self.channels - 1) * self.spacing

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (
            tile_memory(self.ram, max(2, self.channels), self.bits),
            tile_memory(self.ram, 1 << self.bits, self.exponential_bits),
        )

    @property
    def features(self) -> Mapping[str, float]:
        return {"index bits": counter_bits(self.channels)}

    def flip_flops(self, device: Device) -> int:
        del device
        return 213 + 3 * counter_bits(self.channels)

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        return divide_in_turn(target, origin, self.channels, self.latency, self.spacing)
