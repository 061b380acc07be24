"""A weight writer takes matrices of a stream into an array's weights."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.places import write_rows
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.weights import WeightMemory
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream
from nnef_hw.parts.base.untyped import Hardware

__all__ = ["RowWriter", "WeightWriter", "divides_places"]


@dataclass(frozen=True, kw_only=True)
class WeightWriter(Part):
    """Writes a code per cycle while a half is free; its items are codes, and then full halves.

    Parameters
    ----------
    memory
        Where it writes.
    in_bits, in_signed, zero_point
        Format of a code, which is written less the zero point.
    """

    component = "nnef_hw.rtl.arrays.weight_writer:WeightWriter"
    label = "writer"
    costs = "weight writer"

    memory: WeightMemory
    in_bits: int
    in_signed: bool
    zero_point: int

    @property
    def groups(self) -> int:
        """Groups of rows; each reads a cycle later than the one before."""
        return len(self.memory.group_sizes)

    @property
    def codes(self) -> int:
        """Codes that it takes before it offers a half."""
        return self.memory.product.codes

    @property
    def first_code(self) -> int:
        """Cycle after reset in which it takes the first code, at least."""
        return 0

    @property
    def counters(self) -> list[int]:
        """Widths of its counters of a code's place."""
        return self._counted(self.memory.product.order)

    def _counted(self, axes: Iterable[str]) -> list[int]:
        """Return the widths of counters along axes."""
        memory = self.memory
        steps = {
            "m": (memory.product.matrices,),
            "k": (memory.words, min(memory.lanes, memory.product.inner)),
            "n": (memory.passes, len(memory.group_sizes), memory.group_rows),
        }
        return [counter_bits(extent) for axis in axes for extent in steps[axis]]

    @property
    def banks(self) -> int:
        """Memories that it enables one by one."""
        return sum(map(self.memory.banks, self.memory.group_sizes))

    def compute(self, *operands: IntArray) -> IntArray:
        """Return the weights [halves, codes] of codes [beats, 1]."""
        [codes] = operands
        return np.asarray(codes.reshape(-1, self.memory.product.codes) - self.zero_point)

    @property
    def features(self) -> Mapping[str, float]:
        memory = self.memory
        return {
            "counter bits": sum(self.counters),
            "gathered bits": memory.gathered * memory.bits,
            "difference bits": memory.bits * (self.zero_point != 0),
            "banks": self.banks,
            "lut ram cells": memory.lut_ram_cells,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        memory = self.memory
        written = memory.gathered * memory.bits + memory.address_bits + self.banks
        # what LUT RAM gives stands in registers
        is_read = memory.lut_ram_cells > 0
        read = is_read * sum(map(memory.bank_bits, memory.group_sizes))
        return written + read + sum(self.counters) + 5 + self.groups

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        written, taken, target = kernel.log(), kernel.log(), kernel.stream()
        kernel.start(self._write(origins, written, taken))
        kernel.start(self._give(target, written, taken))
        return target

    def _write(self, origins: Sequence[Stream], written: Log, taken: Log) -> Process:
        """Take the codes of a half when it is free: its last word has been read."""
        halves, time = self.memory.halves, self.first_code - 1
        for half in count():
            if half >= halves:
                before = half - halves
                if len(taken.times) <= before:
                    yield taken, before + 1
                time = max(time, taken.times[before] + self.groups - 1)
            time = yield from self._take(origins, time)
            written.add(time)

    def _take(self, origins: Sequence[Stream], time: int) -> Generator[Hardware, int, int]:
        """Take the codes of a half, the first one behind a cycle; return when the last one was."""
        [origin] = origins
        for _ in range(self.codes):
            time = max(time + 1, (yield origin))
            origin.accept(time)
        return time

    def _give(self, target: Stream, written: Log, taken: Log) -> Process:
        """Offer every half in the cycle after its last code, if the one before was taken."""
        last = -1
        for half in count():
            if len(written.times) <= half:
                yield written, half + 1
            last = yield target, max(written.times[half], last) + 1
            taken.add(last)


@dataclass(frozen=True, kw_only=True)
class RowWriter(WeightWriter):
    """Writes a row of a cache in every frame, at a place that a second stream tells.

    The outermost axis of the matrices counts rows. After reset it writes zeros everywhere; its
    items are codes, and then the cache.

    Parameters
    ----------
    place_bits
        Width of the place.

    Raises
    ------
    ValueError
        If the matrices' outermost axis counts them, or a place is no bits of an address.
    """

    component = "nnef_hw.rtl.arrays.weight_writer:RowWriter"

    place_bits: int

    def __post_init__(self) -> None:
        memory = self.memory
        if memory.product.row_axis == "m" or memory.halves != 1:
            raise ValueError("RowWriter needs a cache whose rows are outermost")
        if not divides_places(memory):
            raise ValueError(f"RowWriter of {memory.rows} rows and {memory.lanes} lanes divides")

    @property
    def rows(self) -> int:
        """Rows of the cache."""
        return self.memory.product.outer_rows

    @property
    def codes(self) -> int:
        return self.memory.product.codes // self.rows

    @property
    def first_code(self) -> int:
        return self.memory.depth

    @property
    def counters(self) -> list[int]:
        product = self.memory.product
        counted = product.order.replace(product.row_axis, "")
        return [*self._counted(counted), self.memory.address_bits + 1]

    def compute(self, *operands: IntArray) -> IntArray:
        """Return the cache [frames, codes] behind each row, of codes and places [beats, 1]."""
        codes, places = operands
        written = codes.reshape(-1, self.codes) - self.zero_point
        caches = np.zeros((len(written) + 1, self.codes, self.rows), np.int64)
        for n, row in enumerate(written):
            caches[n + 1] = write_rows(caches[n : n + 1], row[np.newaxis], places[n])[0]
        return np.asarray(caches[1:].swapaxes(1, 2).reshape(len(written), -1))

    def _take(self, origins: Sequence[Stream], time: int) -> Generator[Hardware, int, int]:
        row, place = origins
        placed = yield place
        for n in range(self.codes):
            time = max(time + 1, (yield row), placed)
            row.accept(time)
            if n == self.codes - 1:
                place.accept(time)
        return time


def divides_places(memory: WeightMemory) -> bool:
    """Whether the place of a row of a cache is put together of bits of its address."""
    if memory.product.row_axis == "k":
        return memory.words == 1 or _is_power(memory.lanes)
    groups = len(memory.group_sizes)
    whole = memory.passes == 1 or _is_power(memory.rows)
    return whole and (groups == 1 or _is_power(memory.group_rows))


def _is_power(number: int) -> bool:
    """Whether a number is a power of two."""
    return number & number - 1 == 0
