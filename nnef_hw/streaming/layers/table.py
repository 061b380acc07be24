"""Functions of one activation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.arithmetic.records import Fields
from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Trait, layers
from nnef_hw.parts import Part
from nnef_hw.parts.functions.corrected_table import corrected_table
from nnef_hw.parts.functions.interpolated_table import InterpolatedTable
from nnef_hw.parts.functions.table import Table
from nnef_hw.parts.streams.lanes import side_by_side
from nnef_hw.streaming.layers.layer import (
    Contents,
    Folding,
    PixelLayer,
    PlainLayer,
    StreamContext,
    lowers,
)

__all__ = ["TableLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class TableLayer(PixelLayer[Folding], PlainLayer):
    """A function of one activation; ``entries`` is a table of :mod:`nnef_hw.arithmetic.tables`."""

    label = "table"

    entries: NDArray[np.int64]

    @property
    def _interpolates(self) -> bool:
        return self.source.bits > TABLE_BITS

    @property
    def _is_exact(self) -> bool:
        return len(self.entries) == 1 << self.source.bits

    def kind(self, folding: Folding) -> str:
        del folding
        if self._is_exact:
            return "corrected_table" if self._interpolates else "table"
        return "interpolated_table"

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.beats

    def part(self, device: Device) -> Part:
        formats: Fields = {
            "in_bits": self.source.bits, "in_signed": self.source.signed,
            "out_bits": self.target.bits, "out_signed": self.target.signed, "ram": device.ram,
        }  # fmt: skip
        if not self._interpolates:
            return Table(**formats, lanes=self.operand_lanes)
        if self._is_exact:
            part = corrected_table(self.entries, self.source, self.target, device.ram)
            return side_by_side(part, self.operand_lanes)
        rises = np.diff(self.entries)
        rise_bits = signed_bits(int(rises.min()), int(rises.max()))
        return side_by_side(InterpolatedTable(rise_bits=rise_bits, **formats), self.operand_lanes)

    def contents(self, folding: Folding) -> Contents:
        del folding
        name = "knots" if self._interpolates and not self._is_exact else "entries"
        return {"table": {name: self.entries.tolist()}}


@lowers(Trait.TABLE)
def _lower_table(context: StreamContext[layers.Table]) -> TableLayer:
    return TableLayer(**context.common, **context.extents, entries=context.layer.entries)
