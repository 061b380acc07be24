"""Queues of items in registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import count

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.parts.base.part import Part, Pipe, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware
from nnef_hw.parts.streams.fifo import BlockFifo, FifoLogs, queue_write

__all__ = ["SHALLOW_FIFO", "CutFifo", "Fifo", "Skid", "SumHop", "SumQueue", "make_fifo"]

SHALLOW_FIFO = 16
"""Most items of a FIFO that is made of registers, not of block RAM."""


@dataclass(frozen=True, kw_only=True)
class Registers(Part):
    """A queue of ``depth`` payloads in registers, whose ``shape`` is its contents."""

    depth: int

    def build(self, **contents: Content) -> Hardware:
        """Return the component; its contents are the ``shape`` of payloads."""
        return self.component_class()(contents["shape"], depth=self.depth)

    def compute(self, payloads: IntArray, *, shape: Hardware = None) -> IntArray:
        """Return payloads [items, 1] as they come."""
        del shape
        return payloads


@dataclass(frozen=True, kw_only=True)
class Skid(Registers, Pipe):
    """Two payloads of ``bits``: ``ready`` comes from a register, and no cycle is lost."""

    component = "nnef_hw.rtl.streams.stream:Fifo"
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
        accept = origin.accept  # looked up once: half of all events are these
        while True:
            accepted = yield origin
            if accepted <= before:
                accepted = before + 1
            accept(accepted)
            before = last
            last = yield target, (accepted if accepted > last else last) + 1


@dataclass(frozen=True, kw_only=True)
class SumQueue(Skid):
    """Stands between an array and its requantizer."""

    label = "sums"
    costs = "sum queue"


@dataclass(frozen=True, kw_only=True)
class SumHop(SumQueue):
    """Stands behind a SumQueue: what is far behind an array is half as far from each of them."""

    label = "hop"


@dataclass(frozen=True, kw_only=True)
class Fifo(Registers):
    """Holds ``depth`` beats of codes of ``bits``."""

    component = "nnef_hw.rtl.streams.stream:Fifo"
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


@dataclass(frozen=True, kw_only=True)
class CutFifo(BlockFifo, of_parts=True):
    """A BlockFifo with a skid behind its registers: ``o.ready`` ends there, not at block RAMs.

    The register before it is a part of the block RAM. It holds two beats more.
    """

    component = "nnef_hw.rtl.streams.fifo:CutFifo"
    latency = BlockFifo.latency + 1
    reads_twice = True

    @property
    def _skid(self) -> Skid:
        return Skid(bits=self.beat_bits + 1)

    def flip_flops(self, device: Device) -> int:
        pointers = super().flip_flops(device) - self.beat_bits - 1
        return pointers + self._skid.flip_flops(device) + 2

    def _estimate(self, device: Device) -> Resources:
        own = super()._estimate(device)
        return replace(own, lut=own.lut + self._skid.resources(device).lut)

    def _send(self, target: Stream, logs: FifoLogs) -> Process:
        """Let items pass the memory, its register, and the skid behind it."""
        written, moved, _ = logs
        writes = written.times
        moving = leaving = before = last = -1
        for item in count():
            if len(writes) <= item:
                yield written, item + 1
            moving = max(writes[item] + 2, moving + 1, leaving)
            leaving = max(moving, leaving, before) + 1
            moved.add(moving)
            before = last
            last = yield target, max(leaving, last) + 1


def make_fifo(
    bits: int, signed: bool, depth: int, frame: int, device: Device, *, lanes: int = 1
) -> Fifo | BlockFifo:
    """Return a queue of beats: of registers, or of block RAM if it is deep."""
    if depth <= SHALLOW_FIFO:
        return Fifo(bits=bits * lanes, depth=depth)
    queue = CutFifo if device.long_wires else BlockFifo
    return queue(bits=bits, signed=signed, lanes=lanes, frame=frame, depth=depth, ram=device.ram)
