"""Pipelines in which nothing waits: a queue behind them has room for all that is inside."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import LUT_RAM_WORDS
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.streams.fifo import queue_write

__all__ = ["Pipeline"]


@dataclass(frozen=True, kw_only=True)
class Pipeline(Part):
    """Computes a beat of ``out_lanes`` codes from one of ``in_lanes`` in every cycle.

    Parameters
    ----------
    in_lanes, in_bits, in_signed, out_lanes, out_bits, out_signed
        Formats of beats.
    lut_ram
        Whether the queue may be in LUTs as memory; else it is in registers.

    Attributes
    ----------
    stages
        Cycles from an accepted beat to its results in registers.
    """

    in_lanes: int
    in_bits: int
    in_signed: bool
    out_lanes: int
    out_bits: int
    out_signed: bool
    lut_ram: bool

    @property
    @abstractmethod
    def stages(self) -> int: ...

    @property
    def latency(self) -> int:
        """Cycles from an accepted beat to its result, if nothing waits."""
        return self.stages + 1

    @property
    def depth(self) -> int:
        """Beats that are inside at most: as many as a beat in every cycle takes, a power of two."""
        return int(1 << self.latency.bit_length())

    @property
    def queue_bits(self) -> int:
        """Bits of a beat in the queue."""
        return self.out_lanes * self.out_bits + 1

    @property
    def queue_features(self) -> Mapping[str, float]:
        """Uses of the LUTs of the queue."""
        rows = max(1, self.depth // LUT_RAM_WORDS) if self.lut_ram else self.depth
        return {"queue bits": rows * self.queue_bits, "stages": self.stages}

    def flip_flops(self, device: Device) -> int:
        del device
        queue = 0 if self.lut_ram else self.depth * self.queue_bits
        return queue + 2 * self.stages + 4 * counter_bits(self.depth) + 2

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        target = kernel.stream()
        accepted, sent = kernel.log(origin), kernel.log(target)
        kernel.start(queue_write(origin, accepted, sent, self.depth))
        kernel.start(self._send(target, accepted, sent))
        return target

    def _send(self, target: Stream, accepted: Log, sent: Log) -> Process:
        """Results are given in order, each after the latency."""
        last, latency = -1, self.latency
        for item in count():
            if len(accepted.times) <= item:
                yield accepted, item + 1
            last = yield target, max(accepted.times[item] + latency, last + 1)
            sent.wake(last)
