"""Weighted sums of the four codes around places between the pixels of an image."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.interpolation import FRACTION_BITS, Places, interpolate_codes
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.streams.fifo import queue_write

__all__ = ["LINES", "SUM_STAGES", "TAPS", "Interpolate"]

TAPS = 4
"""Codes of a sum: of two rows and two columns."""
LINES = 4
"""Rows that the memory holds: those of a result, and others that come meanwhile."""
SUM_STAGES = 7
"""Registers from the memory's output to the sum, both included."""


@dataclass(frozen=True, kw_only=True)
class Interpolate(Part):
    """Reads four codes for each of its result, one per cycle, and adds them up with 20-bit weights.

    A row of results begins in the cycle after the last code of the rows that it lies between was
    taken. The latency is that of a result whose codes are all there.

    Parameters
    ----------
    rows, columns
        Where the results lie.
    channels
        Codes of a pixel.
    bits, signed
        Format of the codes.
    ram
        The device's block RAM.

    Raises
    ------
    ValueError
        If a place lies behind the image, or there are no channels.
    """

    component = "nnef_hw.rtl.images.interpolate:Interpolate"
    label = "interpolate"
    costs = "interpolate"
    latency = TAPS + SUM_STAGES + 1

    rows: Places
    columns: Places
    channels: int
    bits: int
    signed: bool
    ram: BlockRam

    def __post_init__(self) -> None:
        if not (self.rows.is_inside and self.columns.is_inside):
            raise ValueError("Interpolate places must not lie behind the image")
        if self.channels < 1:
            raise ValueError(f"Interpolate needs at least one channel, not {self.channels!r}")

    @property
    def line(self) -> int:
        """Codes of a row of the image."""
        return self.columns.extent * self.channels

    @property
    def memory(self) -> Tiling:
        """Memory of the interpolation."""
        return tile_memory(self.ram, LINES * self.line, self.bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,)

    @property
    def kept_bits(self) -> int:
        return LINES * self.line * self.bits

    @property
    def interval(self) -> int:
        return TAPS

    @property
    def counters(self) -> int:
        """Bits of counters, places and addresses."""
        places = (self.rows, self.columns)
        bits = sum(counter_bits(p.extent) + counter_bits(p.count) + FRACTION_BITS for p in places)
        return bits + counter_bits(self.channels) + 5 * counter_bits(self.memory.depth)

    def compute(self, codes: IntArray) -> IntArray:
        """Return the sums [beats, 1] of codes [beats, 1], row by row."""
        shape = -1, self.rows.extent, self.columns.extent, self.channels
        images = codes.reshape(shape).transpose(0, 3, 1, 2)
        found = interpolate_codes(images, self.rows, self.columns)
        return np.asarray(found.transpose(0, 2, 3, 1).reshape(-1, 1))

    @property
    def features(self) -> Mapping[str, float]:
        rows = self.memory.width * (self.memory.rows - 1)
        return {"counter bits": self.counters, "code bits": self.bits, "memory rows": rows}

    def flip_flops(self, device: Device) -> int:
        del device
        return self.counters + 8 * self.bits + 207

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        written, freed, target = kernel.log(origin), kernel.log(), kernel.stream()
        kernel.start(queue_write(origin, written, freed, LINES * self.line))
        kernel.start(self._read(target, written, freed))
        return target

    def _read(self, target: Stream, written: Log, freed: Log) -> Process:
        first, last = self.rows.first.tolist(), self.rows.second.tolist()
        following = [*first[1:], self.rows.extent + first[0]]
        leaving = [after - row for row, after in zip(first, following, strict=True)]
        results = self.columns.count * self.channels
        # When each of the codes between memory and sum reached the sum, which makes room for one.
        reached = deque([-1] * (SUM_STAGES - 1), SUM_STAGES - 1)
        frame, read, summed, moved, taken = 0, -1, -1, -1, -1
        for _ in range(first[0] * self.line):
            freed.add(-1)
        while True:
            for row, lines in zip(last, leaving, strict=True):
                needed = (frame + row + 1) * self.line
                if len(written.times) < needed:
                    yield written, needed
                read = max(read, written.times[needed - 1])
                for _ in range(results):
                    for tap in range(TAPS):
                        read = max(read + 1, reached[0])
                        summed = max(read + SUM_STAGES - 1, summed + 1)
                        if tap == 0 and moved > summed:
                            summed = moved
                        reached.append(summed)
                    moved = max(summed + 1, taken)
                    taken = yield target, moved + 1
                for _ in range(lines * self.line):
                    freed.add(read)
            frame += self.rows.extent
