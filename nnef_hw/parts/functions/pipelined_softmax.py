"""Softmax of several pixels at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.functions.pixel_banks import hold_two_pixels
from nnef_hw.parts.functions.softmax import DividingSoftmax

__all__ = ["PipelinedSoftmax"]

SUM_LATENCY = 4
"""Cycles from the last beat of a pixel that was read to the sum, but for the tree's."""
TREE_LEVELS = 2
"""Levels of a tree over the codes of a beat between registers."""
LANE_SHARE = 0.75
"""LUTs of the division of one more code per beat, for each one of the first: a divisor serves all.

Measured of 2 to 8 codes; with what follows, estimates are within 12% on an ECP5, 20% on an iCE40.
"""
LANE_BITS = 22
"""Bits of a division that take as many LUTs as the rest of one more code per beat."""


@dataclass(frozen=True, kw_only=True)
class PipelinedSoftmax(DividingSoftmax):
    """Loads, sums and divides three pixels at once.

    Parameters
    ----------
    stages
        Stages of the division; each has its own subtractors.
    lanes
        Codes per beat. Each has a table and a division of its own, and all move in step. Pixels of
        layers that share it may end within a beat, whose other codes are then of no account.

    Raises
    ------
    ValueError
        If beats are not of so many channels, or if layers share beats that are no power of two.
    """

    component = "nnef_hw.rtl.functions.pipelined_softmax:PipelinedSoftmax"
    costs = "pipelined softmax"

    stages: int
    lanes: int = 1

    def __post_init__(self) -> None:
        is_whole = self.is_shared or self.channels % max(self.lanes, 1) == 0
        if self.lanes < 1 or not is_whole:
            raise ValueError(
                f"PipelinedSoftmax channels {self.channels} must be a multiple of lanes "
                f"{self.lanes!r}"
            )
        if self.is_shared and self.lanes & (self.lanes - 1):
            raise ValueError(
                f"PipelinedSoftmax that layers share has a power of two of lanes, not {self.lanes}"
            )

    @property
    def beats(self) -> int:
        return -(-self.channels // self.lanes)

    @property
    def lane_bits(self) -> int:
        return (self.lanes - 1).bit_length()

    @property
    def tree_stages(self) -> int:
        """Registers of a tree over the codes of a beat, one behind the other."""
        return -(-self.lane_bits // TREE_LEVELS)

    @property
    def ends_in_queue(self) -> bool:
        """Whether two beats may wait behind the division.

        What takes results of the units of an engine is far from most of them, so that a path from
        there through all stages would be long.
        """
        return self.is_shared

    @property
    def settling(self) -> int:
        """Cycles for which a pixel waits until its greatest code is known."""
        return max(0, self.tree_stages - 1)

    @property
    def sum_latency(self) -> int:
        """Cycles from the last beat of a pixel that was read to the sum."""
        return SUM_LATENCY + self.tree_stages

    @property
    def interval(self) -> int:
        """Cycles per beat of probabilities."""
        return -(-self.quotient_bits // self.stages)

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last beat to its first probabilities."""
        summing = self.settling + self.beats + self.sum_latency
        return summing + 4 + self.stages * self.interval

    @property
    def pixel_cycles(self) -> int:
        """Cycles from a pixel's first beat to the next pixel's."""
        dividing = (self.beats - 1) * self.interval + max(self.interval, 3)
        return max(self.beats + self.sum_latency, dividing)

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
        words = (1 << counter_bits(self.beats)) + self.beats
        return tile_memory(self.ram, words, self.lanes * width)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        tables = (self.table_memory,) * self.lanes
        return *tables, self.exponential_memory, self.code_memory

    @property
    def features(self) -> Mapping[str, float]:
        divided, more = self.stages * self.sum_bits, self.lanes - 1
        return {
            "index bits": counter_bits(self.beats),
            "division bits": divided + more * (LANE_SHARE * divided + LANE_BITS),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        index_bits = counter_bits(self.channels)
        first = 115 + 6 * counter_bits(self.beats) + self.stages * (45 + 2 * index_bits)
        first += (self.out_bits + 2) * self.ends_in_queue
        remainder = self.stages * self.interval + self.sum_bits + 1
        ends = self.out_bits * (1 + self.ends_in_queue)
        each = 2 * self.exponential_bits + ends + self.stages * remainder
        return first + (self.lanes - 1) * each + self._tree_bits

    @property
    def _tree_bits(self) -> int:
        """Bits of registers of greatest codes and sums."""
        found, values = 0, self.lanes
        for stage in range(1, self.tree_stages + 1):
            values = -(-values >> TREE_LEVELS)
            found += values * (self.bits + self.exponential_bits + TREE_LEVELS * stage) + 6
        return found

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        loaded, read, summed, started = (kernel.log() for _ in range(4))
        target = kernel.stream()
        kernel.start(hold_two_pixels(origin, self.beats, loaded, read))
        kernel.start(self._sum(loaded, read, summed, started))
        kernel.start(self._divide(target, summed, started))
        return target

    def _sum(self, loaded: Log, read: Log, summed: Log, started: Log) -> Process:
        """Sum up a pixel once the sum of the one before was taken."""
        for pixel in count():
            if len(loaded.times) <= pixel:
                yield loaded, pixel + 1
            time = loaded.times[pixel] + self.settling
            if pixel:
                if len(started.times) < pixel:
                    yield started, pixel
                time = max(time, started.times[pixel - 1])
            read.add(time + self.beats)
            summed.add(time + self.beats + self.sum_latency)

    def _divide(self, target: Stream, summed: Log, started: Log) -> Process:
        """Divide: memory, register, the stages, output register; each waits only for the next.

        A sum is taken when the last exponential of the pixel before leaves the register behind
        the memory. A queue is entered a cycle after the beat two before was taken.
        """
        # When each was entered by the item before: by nothing, long ago.
        entered = [-self.interval] * (self.stages + 4)
        taken = -1
        delays = [1, 1, *[self.interval] * self.stages]
        for pixel in count():
            if len(summed.times) <= pixel:
                yield summed, pixel + 1
            start = max(summed.times[pixel], entered[2])
            started.add(start)
            for _ in range(self.beats):
                entered[0] = max(start + 1, entered[1], entered[0] + 1)
                for place, delay in enumerate(delays, 1):
                    entered[place] = max(entered[place - 1] + delay, entered[place + 1])
                if self.ends_in_queue:
                    offered = max(entered[-2], taken) + 1
                    entered[-1], taken = taken + 1, (yield target, offered)
                else:
                    entered[-1] = yield target, entered[-2] + 1
