"""Channels that are hidden from a softmax, behind a place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.places import hide_behind
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.base.untyped import Hardware

__all__ = ["CausalMask"]


@dataclass(frozen=True, kw_only=True)
class CausalMask(Pipe):
    """Hands codes on up to a channel, the lowest code behind it; the place is one for a frame.

    Parameters
    ----------
    channels, pixels
        Codes of a pixel, pixels of a frame.
    bits, signed
        Format of a code.
    place_bits
        Width of the place.
    """

    component = "nnef_hw.rtl.functions.causal_mask:CausalMask"
    label = "mask"
    costs = "causal mask"
    latency = 1

    channels: int
    pixels: int
    bits: int
    signed: bool
    place_bits: int

    def compute(self, codes: IntArray, places: IntArray) -> IntArray:
        """Return the codes [beats, 1] of scores, for a place [frames, 1] of each frame."""
        frames = codes.reshape(-1, self.pixels, self.channels).swapaxes(1, 2)
        hidden = QType(self.bits, self.signed, 1.0).lo
        return np.asarray(hide_behind(frames, places, hidden).swapaxes(1, 2).reshape(-1, 1))

    @property
    def features(self) -> Mapping[str, float]:
        return {"counter bits": counter_bits(self.channels), "code bits": self.bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return counter_bits(self.channels) + self.bits + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        scores, place = origins
        count, sent = self.channels * self.pixels, -1
        while True:
            placed = yield place
            for n in range(count):
                accepted = max((yield scores), placed, sent)
                scores.accept(accepted)
                if n == count - 1:
                    place.accept(accepted)
                sent = yield target, accepted + self.latency

    def operands(self, component: Hardware) -> list[Hardware]:
        return [component.i, component.place]

    def arrivals(self, component: Hardware) -> tuple[Hardware, Hardware]:
        return component.i.valid, component.i.ready
