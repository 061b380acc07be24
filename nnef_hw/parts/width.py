"""Codes gathered into beats of several lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe, counter_bits
from nnef_hw.parts.timing import Process, Stream

__all__ = ["Pack"]


@dataclass(frozen=True, kw_only=True)
class Pack(Pipe):
    """Makes beats of ``lanes`` codes; one is complete when the one before it was taken.

    Its latency begins with the code that completes a beat.

    Parameters
    ----------
    channels, lanes
        Codes per pixel, codes per beat.
    bits, signed
        Format of a code.
    """

    component = "nnef_hw.rtl.width:Pack"
    label = "pack"
    costs = "pack"
    latency = 1

    channels: int
    lanes: int
    bits: int
    signed: bool

    @property
    def features(self) -> Mapping[str, float]:
        lanes = min(self.lanes, self.channels)
        missing = -self.channels % lanes
        return {
            "register bits": self.bits * (2 * lanes - 1),
            "lanes": lanes,
            "filled bits": self.bits * (missing + 1) if missing else 0,
            "counter bits": counter_bits(-(-self.channels // lanes)) if missing else 0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self.bits * (2 * self.lanes - 1) + self.lanes + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        completes = [
            channel % self.lanes == self.lanes - 1 or channel == self.channels - 1
            for channel in range(self.channels)
        ]
        sent, latency = -1, self.latency
        while True:
            for complete in completes:
                accepted = yield origin
                if complete:
                    if accepted < sent:
                        accepted = sent
                    origin.accept(accepted)
                    sent = yield target, accepted + latency
                else:
                    origin.accept(accepted)
