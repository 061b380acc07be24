"""An array whose weights a stream writes: the product of two activations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.weight_writer import RowWriter, WeightWriter
from nnef_hw.parts.base.part import LogicProducts, Part
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware

__all__ = ["ContractionArray"]


@dataclass(frozen=True, kw_only=True)
class ContractionArray(Part, of_parts=True):
    """Multiplies rows by matrices that a second stream brings; items are passes, and then sums.

    Parameters
    ----------
    array, writer
        What it is made of; both have the same memory of weights.
    in_bits, in_signed, zero_point
        Format of the codes of rows, which are multiplied less the zero point.
    gain
        Sums leave with so many zeros behind them.
    """

    component = "nnef_hw.rtl.arrays.contraction:ContractionArray"
    label = "array"

    array: SystolicArray
    writer: WeightWriter
    in_bits: int
    in_signed: bool
    zero_point: int
    gain: int = 0

    @property
    def is_cached(self) -> bool:
        """Whether the second stream brings a row of a cache, and a third one its place."""
        return isinstance(self.writer, RowWriter)

    @property
    def acc_bits(self) -> int:
        """Width of sums that leave."""
        return self.array.acc_bits + self.gain

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.array.memories

    @property
    def multipliers(self) -> int:
        return self.array.multipliers

    @property
    def in_logic(self) -> int:
        return self.array.in_logic

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return self.array.logic_products

    def dsp(self, device: Device) -> int:
        return self.array.dsp(device)

    def compute(self, words: IntArray, *matrices: IntArray) -> IntArray:
        """Return the sums [beats, out_lanes] of rows by matrices.

        Parameters
        ----------
        words
            Rows, once for each pass: [passes, words, lanes].
        matrices
            Codes [beats, 1] in the order of the product; of a cache those of rows, and places.
        """
        array, product = self.array, self.writer.memory.product
        lines = words.reshape(-1, array.passes, array.words * array.lanes)[..., : product.inner]
        # a set of matrices is what a frame or a part of it has
        rows = (lines - self.zero_point).reshape(-1, product.rows, *lines.shape[1:])
        weights = self.writer.compute(*matrices)
        streams = weights.reshape(len(rows), -1, product.extents[-1]).swapaxes(1, 2)
        sums = np.empty((len(rows), product.rows, product.columns), np.int64)
        for n in range(array.passes):
            columns = slice(n * array.rows, (n + 1) * array.rows)
            results = product.multiply(rows[:, :, n].swapaxes(1, 2), streams)
            sums[:, :, columns] = results.swapaxes(1, 2)[..., columns]
        sums <<= self.gain
        return np.asarray(sums.reshape(-1, array.out_lanes))

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        return self.array.flip_flops(device) + self.writer.flip_flops(device)

    def _estimate(self, device: Device) -> Resources:
        return self.array.resources(device) + self.writer.resources(device)

    @property
    def timing(self) -> Part:
        return replace(self, array=replace(self.array, in_dsp=0))

    def build(self, **contents: Content) -> Hardware:
        """Return the component; it has no contents."""
        memories = self.writer.memory.build()
        array = self.array.component_class()(self.array, weights=memories)
        return super().build(array=array, writer=self.writer.build(), **contents)

    def made(self, component: Hardware) -> list[Hardware]:
        return [component, component.writer, *self.array.made(component.array)]

    def operands(self, component: Hardware) -> list[Hardware]:
        place = [component.place] if self.is_cached else []
        return [component.i, component.w, *place]

    def arrivals(self, component: Hardware) -> tuple[Hardware, Hardware]:
        return component.i.valid, component.i.ready

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        rows, *matrices = origins
        halves, target = self.writer.start(kernel, *matrices), kernel.stream()
        kernel.start(self._multiply(target, rows, halves))
        return target

    def _multiply(self, target: Stream, rows: Stream, halves: Stream) -> Process:
        """Take the rows of a set of matrices when these are there, pass by pass."""
        array, product = self.array, self.writer.memory.product
        passes = array.results * product.rows_of_set
        emptied = [-1] * array.kept_passes
        while True:
            # the first word waits for the matrices; the others of its pass follow
            entered = (yield halves) + array.words - 1
            for left, count in zip(range(len(passes), 0, -1), passes, strict=True):
                accepted = max((yield rows), entered, emptied[0] + 1)
                rows.accept(accepted)
                if left == 1:
                    halves.accept(accepted)
                sent = max(accepted + array.latency, emptied[-1] + 1) - 1
                for _ in range(count):
                    sent = yield target, sent + 1
                emptied = [*emptied[1:], sent]
