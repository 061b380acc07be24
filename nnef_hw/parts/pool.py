"""Reductions of windows that a line buffer gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe
from nnef_hw.parts.timing import Process, Stream

__all__ = ["MaxPool", "SumPool"]


def _reduce(target: Stream, origin: Stream) -> Process:
    """Items are passes; a result waits in a register, and the next pass' last word behind it."""
    given = -1
    while True:
        accepted = max((yield origin), given)
        origin.accept(accepted)
        given = yield target, accepted + 1


@dataclass(frozen=True, kw_only=True)
class MaxPool(Pipe):
    """Maximum of the codes of a pass."""

    component = "nnef_hw.rtl.pool:MaxPool"
    label = "maximum"
    costs = "pool"
    latency = 1

    bits: int
    signed: bool
    lanes: int = 1

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2 * self.bits + 3

    def process(self, target: Stream, *origins: Stream) -> Process:
        return _reduce(target, *origins)


@dataclass(frozen=True, kw_only=True)
class SumPool(Pipe):
    """Sum of the codes of a pass."""

    component = "nnef_hw.rtl.pool:SumPool"
    label = "sum"
    costs = "pool"
    latency = 1

    bits: int
    signed: bool
    acc_bits: int

    @property
    def features(self) -> Mapping[str, float]:
        return {"code bits": self.acc_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2 * self.acc_bits + 3

    def process(self, target: Stream, *origins: Stream) -> Process:
        return _reduce(target, *origins)
