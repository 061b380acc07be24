"""A delay: what a stream gives, some codes later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["Delay"]


@dataclass(frozen=True, kw_only=True)
class Delay(Pipe):
    """Gives ``count`` times ``code`` after reset, and from then on what comes.

    Frames of the result are of ``frame`` codes from the first one on. What comes meanwhile waits in
    the queue in front of it.

    Parameters
    ----------
    count, code
        How many codes later, and what is given until then: bits of the code.
    frame
        Codes of a frame.
    bits, signed
        Format of the codes.
    """

    component = "nnef_hw.rtl.streams.delay:Delay"
    label = "delay"
    costs = "state"

    count: int
    code: int
    frame: int
    bits: int
    signed: bool

    def compute(self, codes: IntArray) -> IntArray:
        """Return codes [beats, 1] behind those that are given until they come."""
        return np.concatenate([np.full((self.count, 1), self.code), codes])

    @property
    def features(self) -> Mapping[str, float]:
        return {
            "counter bits": counter_bits(self.count) + counter_bits(self.frame),
            "code bits": self.bits,
            "table": 0.0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return counter_bits(self.count) + counter_bits(self.frame) + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        last = 0
        for _ in range(self.count):
            last = yield target, last + 1
        while True:
            offered = yield origin
            last = yield target, max(offered, last + 1)
            origin.accept(last)
