"""Index of the largest or the smallest channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray, argmax_codes, argmin_codes
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["Argmax"]


@dataclass(frozen=True, kw_only=True)
class Argmax(Pipe):
    """Takes a code per cycle; only the last of a pixel waits for the result's register.

    Its latency begins with a pixel's last code.

    Parameters
    ----------
    channels
        Codes per pixel.
    bits, signed
        Format of a code.
    greatest
        Whether to look for the maximum; else it is the minimum.
    """

    component = "nnef_hw.rtl.functions.argmax:Argmax"
    label = "argmax"
    costs = "argmax"
    latency = 1

    channels: int
    bits: int
    signed: bool
    greatest: bool = True

    @property
    def index_bits(self) -> int:
        """Width of the result, which is unsigned."""
        return max(1, counter_bits(self.channels))

    def compute(self, codes: IntArray) -> IntArray:
        """Return the index [pixels, 1] of the extremum of every pixel; codes are [beats, 1]."""
        find = argmax_codes if self.greatest else argmin_codes
        return find(codes.reshape(-1, self.channels))

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.bits, "index bits": counter_bits(self.channels)}

    def flip_flops(self, device: Device) -> int:
        del device
        return self.bits + 3 * counter_bits(self.channels) + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        sent = -1
        while True:
            for channel in range(self.channels):
                offered = yield origin
                final = channel == self.channels - 1
                accepted = max(offered, sent) if final else offered
                origin.accept(accepted)
                if final:
                    sent = yield target, accepted + self.latency
