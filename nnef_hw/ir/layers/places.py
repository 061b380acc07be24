"""Layers whose last operand is an integer: the place of a row in a table or in a cache."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.places import hide_behind, look_up_rows, write_rows
from nnef_hw.ir.layers.layer import Codes, Layer, layers

__all__ = ["CausalMask", "Lookup", "WriteRow"]


@layers("lookup")
@dataclass(frozen=True, eq=False, kw_only=True)
class Lookup(Layer):
    """A row of a table for every pixel of integers."""

    @property
    def rows(self) -> Codes:
        """The table [R, C]."""
        table = self.operands[0].data
        assert table is not None, self.operands[0].name
        return np.asarray(table, np.int64)

    def compute(self, *codes: Codes) -> Codes:
        table, index = codes
        found = look_up_rows(table, index)
        return found.reshape(len(index), *self.result.shape[1:])


@layers("causal_mask")
@dataclass(frozen=True, eq=False, kw_only=True)
class CausalMask(Layer):
    """Channels up to a place, and the lowest code for those behind it."""

    def compute(self, *codes: Codes) -> Codes:
        x, place = codes
        return hide_behind(x, place, self.source.lo)


@layers("write_row")
@dataclass(frozen=True, eq=False, kw_only=True)
class WriteRow(Layer):
    """A cache [1, C, T] in which another row of C codes stands at one of the T places."""

    @property
    def rows(self) -> int:
        """Places of the cache."""
        return self.operands[0].shape[2]

    def compute(self, *codes: Codes) -> Codes:
        return write_rows(*codes)
