"""Queues of beats in block RAM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware

__all__ = ["FIFO_REGISTERS", "BlockFifo", "FifoLogs", "fifo_reads", "queue_write"]

FIFO_REGISTERS = 2
"""Items behind the memory of a BlockFifo."""


class FifoLogs(NamedTuple):
    """When items entered a BlockFifo, left its memory, and left the registers behind that.

    What a memory has read stays there until it is moved.
    """

    written: Log
    moved: Log
    sent: Log


def queue_write(origin: Stream, written: Log, removed: Log, depth: int) -> Process:
    """Model the write side of a queue: an item enters the cycle after an older one left.

    ``written`` is the log of ``origin``.
    """
    time = -1
    for first in count(-depth):
        offered = yield origin
        time = offered if offered > time else time + 1
        if first >= 0:
            if len(removed.times) <= first:
                yield removed, first + 1
            time = max(time, removed.times[first] + 1)
        origin.accept(time)
        written.wake(time)


def fifo_reads(written: Log, moved: Log) -> NDArray[np.int64]:
    """Return when each item left the memory of a BlockFifo: the register behind it was free."""
    freed = np.array([-1, *moved.times[:-1]])
    return np.asarray(np.maximum(np.array(written.times[: len(freed)]) + 1, freed))


@dataclass(frozen=True, kw_only=True)
class BlockFifo(Part):
    """Holds beats in block RAM, and two of them in registers behind it.

    Its latency is that of an empty queue.

    Parameters
    ----------
    bits, signed, lanes
        Format of a beat.
    frame
        Beats of a frame.
    depth
        Beats held, at least 4.
    ram
        The device's block RAM.

    Raises
    ------
    ValueError
        If the depth is less.
    """

    component = "nnef_hw.rtl.streams.fifo:BlockFifo"
    label = "fifo"
    costs = "block fifo"
    latency = 1 + FIFO_REGISTERS
    reads_twice: ClassVar[bool] = False
    """Whether what is read passes a register of the memory, too."""

    bits: int
    signed: bool
    frame: int
    depth: int
    ram: BlockRam
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.depth < FIFO_REGISTERS + 2:
            raise ValueError(
                f"BlockFifo depth must be at least {FIFO_REGISTERS + 2}, not {self.depth!r}"
            )

    @property
    def beat_bits(self) -> int:
        """Width of the codes of a beat."""
        return self.bits * self.lanes

    def _tiling(self, width: int) -> Tiling:
        return tile_memory(self.ram, self.depth - FIFO_REGISTERS, width)

    @property
    def stores_last(self) -> bool:
        """Whether ``last`` is stored, as that takes no block RAM more; else it is counted again."""
        return self._tiling(self.beat_bits).count == self._tiling(self.beat_bits + 1).count

    @property
    def memory(self) -> Tiling:
        """Memory of the FIFO."""
        return self._tiling(self.beat_bits + self.stores_last)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,)

    def compute(self, codes: IntArray, *, shape: Hardware = None) -> IntArray:
        """Return codes [beats, lanes] as they come."""
        del shape
        return codes

    @property
    def features(self) -> Mapping[str, float]:
        return {"pointer bits": counter_bits(self.depth), "code bits": self.beat_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 3 * counter_bits(self.depth) + self.beat_bits + 5

    def build(self, **contents: Content) -> Hardware:
        """Return the component; the ``shape`` of payloads has to be that of its beats."""
        assert contents["shape"].size == self.beat_bits + 1
        return super().build()

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        return self.start_logged(kernel, *origins)[0]

    def start_logged(self, kernel: Kernel, origin: Stream) -> tuple[Stream, FifoLogs]:
        """Start the processes; return the result and what they note."""
        target = kernel.stream()
        logs = FifoLogs(kernel.log(origin), kernel.log(), kernel.log(target))
        kernel.start(self._write(origin, logs))
        kernel.start(self._send(target, logs))
        return target, logs

    def _write(self, origin: Stream, logs: FifoLogs) -> Process:
        """Let an item enter when there is room: from the cycle on after an older one was read."""
        written, moved, _ = logs
        time = -1
        for first in count(FIFO_REGISTERS - self.depth):
            offered = yield origin
            time = offered if offered > time else time + 1
            if first > 0:
                if len(moved.times) < first:
                    yield moved, first
                time = max(time, moved.times[first - 1] + 1, written.times[first] + 2)
            elif first == 0:
                time = max(time, written.times[0] + 2)
            origin.accept(time)
            if written.waiter is not None:
                written.wake(time)

    def _send(self, target: Stream, logs: FifoLogs) -> Process:
        """Let items pass the registers behind the memory."""
        written, moved, _ = logs
        writes = written.times
        moving = last = -1
        for item in count():
            if len(writes) <= item:
                yield written, item + 1
            read = writes[item] + 2
            moving = read if read > moving else moving + 1
            if moving < last:
                moving = last
            moved.add(moving)
            last = yield target, moving + 1
