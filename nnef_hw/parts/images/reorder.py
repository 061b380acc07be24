"""A memory that is read in another order: shared by Upsample, DepthToSpace and Transpose."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.streams.fifo import queue_write

__all__ = ["MEMORY_STAGES", "Enlargement", "Reorder", "place_bits"]

MEMORY_STAGES = 2
"""Registers behind the memory."""


@dataclass(frozen=True, kw_only=True)
class Reorder(Part):
    """Codes are written as they come, read in another order, and make room after that.

    The latency is that of a code that is read as soon as it is written.

    Parameters
    ----------
    bits, signed
        Format of the codes.
    ram
        The device's block RAM.
    """

    latency = 1 + MEMORY_STAGES

    bits: int
    signed: bool
    ram: BlockRam

    @property
    @abstractmethod
    def memory_depth(self) -> int:
        """Codes that the memory holds."""

    @property
    @abstractmethod
    def counters(self) -> int:
        """Bits of counters and addresses."""

    @property
    @abstractmethod
    def reading(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which code of an image is read when, and how many make room after each."""

    @property
    def memory(self) -> Tiling:
        """Memory of the reordering."""
        return tile_memory(self.ram, self.memory_depth, self.bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,)

    @property
    def kept_bits(self) -> int:
        return self.memory_depth * self.bits

    def compute(self, codes: IntArray) -> IntArray:
        """Return codes [beats, 1] in the order in which they are read."""
        reads, _ = self.reading
        return np.asarray(codes.reshape(-1, reads.max() + 1)[:, reads].reshape(-1, 1))

    @property
    def features(self) -> Mapping[str, float]:
        rows = self.memory.width * (self.memory.rows - 1)
        return {"counter bits": self.counters, "memory rows": rows}

    def flip_flops(self, device: Device) -> int:
        del device
        return self.counters + self.bits + 4

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        written, freed, target = kernel.log(origin), kernel.log(), kernel.stream()
        kernel.start(queue_write(origin, written, freed, self.memory_depth))
        kernel.start(self._read(target, written, freed))
        return target

    def _read(self, target: Stream, written: Log, freed: Log) -> Process:
        reads, frees = (array.tolist() for array in self.reading)
        entered = [-1] * (MEMORY_STAGES + 1)
        first, codes = 0, max(reads) + 1
        while True:
            for read, freeing in zip(reads, frees, strict=True):
                if len(written.times) <= first + read:
                    yield written, first + read + 1
                entered[0] = max(written.times[first + read] + 1, entered[1])
                for _ in range(freeing):
                    freed.add(entered[0])
                for stage in range(1, MEMORY_STAGES):
                    entered[stage] = max(entered[stage - 1] + 1, entered[stage + 1])
                entered[-1] = yield target, entered[-2] + 1
            first += codes


@dataclass(frozen=True, kw_only=True)
class Enlargement(Reorder):
    """Gives ``factors`` times as many rows and columns.

    Parameters
    ----------
    height, width
        Extents of the input image.
    channels
        Codes of a pixel of the result.
    factors
        Rows and columns that each row and column becomes.
    depth
        Codes of memory.

    Raises
    ------
    ValueError
        If a factor is not positive, or the depth does not do.
    """

    height: int
    width: int
    channels: int
    factors: tuple[int, int]
    depth: int

    def __post_init__(self) -> None:
        if min(self.factors) < 1:
            name = type(self).__name__
            raise ValueError(f"{name} factors must be positive, not {self.factors!r}")

    @property
    def memory_depth(self) -> int:
        return self.depth


def place_bits(*extents: int) -> int:
    """Bits of counters of so many states each."""
    return sum(map(counter_bits, extents))
