"""Softmax of several pixels at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.functions.softmax import DividingSoftmax

__all__ = ["PipelinedSoftmax"]

SUM_LATENCY = 4
"""Cycles from the last code of a pixel that was read to the sum."""


@dataclass(frozen=True, kw_only=True)
class PipelinedSoftmax(DividingSoftmax):
    """Loads, sums and divides three pixels at once.

    Parameters
    ----------
    stages
        Stages of the division; each has its own subtractor.
    """

    component = "nnef_hw.rtl.functions.pipelined_softmax:PipelinedSoftmax"
    costs = "pipelined softmax"

    stages: int

    @property
    def interval(self) -> int:
        """Cycles per probability."""
        return -(-self.quotient_bits // self.stages)

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last code to its first probability."""
        return self.channels + SUM_LATENCY + 4 + self.stages * self.interval

    @property
    def pixel_cycles(self) -> int:
        """Cycles from a pixel's first code to the next pixel's."""
        dividing = (self.channels - 1) * self.interval + max(self.interval, 3)
        return max(self.channels + 4, dividing)

    @property
    def code_memory(self) -> Tiling:
        """Memory of the codes of two pixels."""
        return self._pixel_memory(self.bits)

    @property
    def exponential_memory(self) -> Tiling:
        """Memory of the exponentials of two pixels."""
        return self._pixel_memory(self.exponential_bits)

    def _pixel_memory(self, width: int) -> Tiling:
        """Return a memory for two pixels; the second one begins at a power of two."""
        return tile_memory(self.ram, (1 << counter_bits(self.channels)) + self.channels, width)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.table_memory, self.exponential_memory, self.code_memory

    @property
    def features(self) -> Mapping[str, float]:
        index_bits = counter_bits(self.channels)
        return {"index bits": index_bits, "division bits": self.stages * self.sum_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        index_bits = counter_bits(self.channels)
        return 115 + 6 * index_bits + self.stages * (45 + 2 * index_bits)

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        loaded, read, summed, started = (kernel.log() for _ in range(4))
        target = kernel.stream()
        kernel.start(self._load(origin, loaded, read))
        kernel.start(self._sum(loaded, read, summed, started))
        kernel.start(self._divide(target, summed, started))
        return target

    def _load(self, origin: Stream, loaded: Log, read: Log) -> Process:
        """Hold two pixels until they are read again."""
        time = -1
        for before in count(-2):
            if before >= 0:
                if len(read.times) <= before:
                    yield read, before + 1
                time = max(time, read.times[before])
            for _ in range(self.channels):
                time = max(time + 1, (yield origin))
                origin.accept(time)
            loaded.add(time)

    def _sum(self, loaded: Log, read: Log, summed: Log, started: Log) -> Process:
        """Sum up a pixel once the sum of the one before was taken."""
        for pixel in count():
            if len(loaded.times) <= pixel:
                yield loaded, pixel + 1
            time = loaded.times[pixel]
            if pixel:
                if len(started.times) < pixel:
                    yield started, pixel
                time = max(time, started.times[pixel - 1])
            read.add(time + self.channels)
            summed.add(time + self.channels + SUM_LATENCY)

    def _divide(self, target: Stream, summed: Log, started: Log) -> Process:
        """Divide: memory, register, the stages, output register; each waits only for the next.

        A sum is taken when the last exponential of the pixel before leaves the register behind
        the memory.
        """
        # When each was entered by the item before: by nothing, long ago.
        entered = [-self.interval] * (self.stages + 4)
        delays = [1, 1, *[self.interval] * self.stages]
        for pixel in count():
            if len(summed.times) <= pixel:
                yield summed, pixel + 1
            start = max(summed.times[pixel], entered[2])
            started.add(start)
            for _ in range(self.channels):
                entered[0] = max(start + 1, entered[1], entered[0] + 1)
                for place, delay in enumerate(delays, 1):
                    entered[place] = max(entered[place - 1] + delay, entered[place + 1])
                entered[-1] = yield target, entered[-2] + 1
