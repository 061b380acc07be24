"""What writes matrices of a stream into an array's weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.weights import WeightMemory
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream

__all__ = ["WeightWriter"]


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
    def counters(self) -> list[int]:
        """Widths of its counters of a code's place."""
        memory = self.memory
        product = memory.product
        steps = {
            "m": (product.matrices,),
            "k": (memory.words, min(memory.lanes, product.inner)),
            "n": (memory.passes, len(memory.group_sizes), memory.group_rows),
        }
        return [counter_bits(extent) for axis in product.order for extent in steps[axis]]

    @property
    def banks(self) -> int:
        """Memories that it enables one by one."""
        return sum(map(self.memory.banks, self.memory.group_sizes))

    def compute(self, codes: IntArray) -> IntArray:
        """Return the weights [halves, codes] of codes [beats, 1]."""
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
        [origin] = origins
        written, taken, target = kernel.log(), kernel.log(), kernel.stream()
        kernel.start(self._write(origin, written, taken))
        kernel.start(self._give(target, written, taken))
        return target

    def _write(self, origin: Stream, written: Log, taken: Log) -> Process:
        """Take the codes of a half when it is free: its last word has been read."""
        codes = self.memory.product.codes
        time = -1
        for half in count():
            if half >= 2:
                if len(taken.times) < half - 1:
                    yield taken, half - 1
                time = max(time, taken.times[half - 2] + self.groups - 1)
            for _ in range(codes):
                time = max(time + 1, (yield origin))
                origin.accept(time)
            written.add(time)

    def _give(self, target: Stream, written: Log, taken: Log) -> Process:
        """Offer every half in the cycle after its last code, if the one before was taken."""
        last = -1
        for half in count():
            if len(written.times) <= half:
                yield written, half + 1
            last = yield target, max(written.times[half], last) + 1
            taken.add(last)
