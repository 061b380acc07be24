"""Codes gathered into beats of several lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["Pack"]


@dataclass(frozen=True, kw_only=True)
class Pack(Pipe):
    """Makes beats of ``lanes`` codes; one is complete when the one before it was taken.

    Its latency begins with the beat that completes another one.

    Parameters
    ----------
    channels, lanes
        Codes per pixel, codes per beat.
    bits, signed
        Format of a code.
    in_lanes
        Codes of a beat that comes.

    Raises
    ------
    ValueError
        If pixels or beats are not made of whole beats that come.
    """

    component = "nnef_hw.rtl.streams.width:Pack"
    label = "pack"
    costs = "pack"
    latency = 1

    channels: int
    lanes: int
    bits: int
    signed: bool
    in_lanes: int = 1

    def __post_init__(self) -> None:
        if self.in_lanes < 1 or self.channels % self.in_lanes or self.lanes % self.in_lanes:
            raise ValueError(
                f"Pack channels {self.channels!r} and lanes {self.lanes!r} must be multiples of "
                f"in_lanes {self.in_lanes!r}"
            )

    def compute(self, codes: IntArray) -> IntArray:
        """Return beats [beats, lanes] of codes [beats, in_lanes]; what a pixel lacks is 0."""
        pixels = codes.reshape(-1, self.channels)
        missing = -self.channels % self.lanes
        return np.pad(pixels, ((0, 0), (0, missing))).reshape(-1, self.lanes)

    @property
    def features(self) -> Mapping[str, float]:
        lanes = min(self.lanes, self.channels)
        missing = -self.channels % lanes
        return {
            "register bits": self.bits * (2 * lanes - self.in_lanes),
            "lanes": lanes // self.in_lanes,
            "filled bits": self.bits * (missing + self.in_lanes) if missing else 0,
            "counter bits": counter_bits(-(-self.channels // lanes)) if missing else 0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self.bits * (2 * self.lanes - self.in_lanes) + self.lanes // self.in_lanes + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        completes = [
            channel % self.lanes == 0 or channel == self.channels
            for channel in range(self.in_lanes, self.channels + 1, self.in_lanes)
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
