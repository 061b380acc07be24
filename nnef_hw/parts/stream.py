"""Queues of items in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from nnef_hw.devices import Device
from nnef_hw.parts.fifo import BlockFifo, queue_write
from nnef_hw.parts.part import Part, Pipe, counter_bits
from nnef_hw.parts.timing import Kernel, Log, Process, Stream

__all__ = ["SHALLOW_FIFO", "Fifo", "Skid", "SumQueue", "make_fifo"]

SHALLOW_FIFO = 16
"""Most items of a FIFO that is made of registers, not of block RAM."""


@dataclass(frozen=True, kw_only=True)
class Registers(Part):
    """A queue of ``depth`` payloads in registers, whose ``shape`` is its contents."""

    depth: int

    def build(self, **contents: Any) -> Any:
        """Return the component; its contents are the ``shape`` of payloads."""
        return self.component_class()(contents["shape"], depth=self.depth)


@dataclass(frozen=True, kw_only=True)
class Skid(Registers, Pipe):
    """Two payloads of ``bits``: ``ready`` comes from a register, and no cycle is lost."""

    component = "nnef_hw.rtl.stream:Fifo"
    label = "skid"
    costs = "skid"

    bits: int
    depth: int = 2

    @property
    def features(self) -> Mapping[str, float]:
        return {"payload bits": self.bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return self.depth * self.bits + 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        before = last = -1
        while True:
            accepted = yield origin
            if accepted <= before:
                accepted = before + 1
            origin.accept(accepted)
            before = last
            last = yield target, (accepted if accepted > last else last) + 1


@dataclass(frozen=True, kw_only=True)
class SumQueue(Skid):
    """Stands between an array and its requantizer."""

    label = "sums"
    costs = "sum queue"


@dataclass(frozen=True, kw_only=True)
class Fifo(Registers):
    """Holds ``depth`` beats of codes of ``bits``."""

    component = "nnef_hw.rtl.stream:Fifo"
    label = "fifo"
    costs = "fifo"

    bits: int

    @property
    def _registers(self) -> int:
        return self.depth * (self.bits + 1)

    @property
    def features(self) -> Mapping[str, float]:
        return {"register bits": self._registers, "pointer bits": counter_bits(self.depth)}

    def flip_flops(self, device: Device) -> int:
        del device
        return self._registers + counter_bits(self.depth) + 1

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        target = kernel.stream()
        written, sent = kernel.log(origin), kernel.log(target)
        kernel.start(queue_write(origin, written, sent, self.depth))
        kernel.start(_send(target, written, sent))
        return target


def _send(target: Stream, written: Log, sent: Log) -> Process:
    """Items are given in the order in which they came."""
    last = -1
    for item in count():
        if len(written.times) <= item:
            yield written, item + 1
        last = yield target, max(written.times[item], last) + 1
        sent.wake(last)


def make_fifo(
    bits: int, signed: bool, depth: int, frame: int, device: Device, *, lanes: int = 1
) -> Fifo | BlockFifo:
    """Return a queue of beats: of registers, or of block RAM if it is deep."""
    if depth <= SHALLOW_FIFO:
        return Fifo(bits=bits * lanes, depth=depth)
    return BlockFifo(
        bits=bits, signed=signed, lanes=lanes, frame=frame, depth=depth, ram=device.ram
    )
