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

LANE_SHARE = 0.25
"""LUTs of one more code's comparison with the place, for each one of the first; measured."""


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
    lanes
        Codes per beat.

    Raises
    ------
    ValueError
        If beats are not of so many channels.
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
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.lanes < 1 or self.channels % self.lanes:
            raise ValueError(
                f"CausalMask channels {self.channels} must be a multiple of lanes {self.lanes!r}"
            )

    @property
    def beats(self) -> int:
        """Beats of a pixel."""
        return self.channels // self.lanes

    def compute(self, codes: IntArray, places: IntArray) -> IntArray:
        """Return the codes [beats, lanes] of scores, for a place [frames, 1] of each frame."""
        frames = codes.reshape(-1, self.pixels, self.channels).swapaxes(1, 2)
        hidden = QType(self.bits, self.signed, 1.0).lo
        return np.asarray(hide_behind(frames, places, hidden).swapaxes(1, 2).reshape(codes.shape))

    @property
    def features(self) -> Mapping[str, float]:
        compared = 1 + LANE_SHARE * (self.lanes - 1)
        return {
            "counter bits": compared * counter_bits(self.channels),
            "code bits": self.lanes * self.bits,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return counter_bits(self.beats) + self.lanes * self.bits + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        scores, place = origins
        count, sent = self.beats * self.pixels, -1
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
