"""Softmax over the channels of a pixel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe, counter_bits
from nnef_hw.parts.timing import Process, Stream

__all__ = ["Softmax"]


@dataclass(frozen=True, kw_only=True)
class Softmax(Pipe):
    """Exponentials from a table, which is its contents, and one divider."""

    component = "nnef_hw.rtl.softmax:Softmax"
    label = "softmax"
    costs = "softmax"
    exponential_bits = 16
    registers = 87

    channels: int
    bits: int
    signed: bool
    ram: BlockRam

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last code to its first probability."""
        return self.channels + 18

    @property
    def spacing(self) -> int:
        """Cycles from one probability to the next."""
        return 14

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
        return self.registers + 3 * counter_bits(self.channels)

    def process(self, target: Stream, *origins: Stream) -> Process:
        """Take the codes of a pixel, then give its probabilities one after the other."""
        [origin] = origins
        idle = 0
        while True:
            accepted = 0
            for _ in range(self.channels):
                offered = yield origin
                accepted = max(offered, idle)
                origin.accept(accepted)
            time = accepted + self.latency
            for _ in range(self.channels):
                given = yield target, time
                time = given + self.spacing
                idle = given + 1
