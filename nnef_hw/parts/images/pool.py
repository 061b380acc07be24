"""Reductions of windows that a line buffer gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Pipe
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["MaxPool", "SumPool"]


class _PassReduction(Pipe):
    """Items are passes; a result waits in a register, and the next pass' last word behind it."""

    costs = "pool"
    latency = 1

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        sent = -1
        while True:
            accepted = max((yield origin), sent)
            origin.accept(accepted)
            sent = yield target, accepted + self.latency


@dataclass(frozen=True, kw_only=True)
class MaxPool(_PassReduction):
    """Maximum of the codes of a pass; its latency begins with the last one.

    Parameters
    ----------
    bits, signed, lanes
        Format of words and of results.
    """

    component = "nnef_hw.rtl.images.pool:MaxPool"
    label = "maximum"

    bits: int
    signed: bool
    lanes: int = 1

    def compute(self, words: IntArray) -> IntArray:
        """Return the maximum [passes, lanes] of passes of words [passes, words, lanes]."""
        return np.asarray(words.max(axis=1))

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.lanes * self.bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2 * self.lanes * self.bits + 3


@dataclass(frozen=True, kw_only=True)
class SumPool(_PassReduction):
    """Sum of the codes of a pass; its latency begins with the last one.

    Parameters
    ----------
    bits, signed
        Format of the codes.
    acc_bits
        Width of a sum, signed.
    """

    component = "nnef_hw.rtl.images.pool:SumPool"
    label = "sum"

    bits: int
    signed: bool
    acc_bits: int

    def compute(self, words: IntArray) -> IntArray:
        """Return the sums [passes, 1] of passes of words [passes, words, 1]."""
        return np.asarray(words.sum(axis=1))

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.acc_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2 * self.acc_bits + 3
