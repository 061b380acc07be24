"""Functions of one activation, and of all channels of a pixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import argmax_codes, argmin_codes
from nnef_hw.arithmetic.softmax import softmax_codes, softmax_places
from nnef_hw.arithmetic.tables import look_up
from nnef_hw.arithmetic.tflite.numerics import TFLITE_SOFTMAX_QTYPE, tflite_softmax_codes
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers
from nnef_hw.ir.operators import Trait

__all__ = ["ArgExtremum", "Softmax", "Table"]


@layers(Trait.TABLE)
@dataclass(frozen=True, eq=False, kw_only=True)
class Table(Layer):
    """A function of one activation.

    Parameters
    ----------
    entries
        A table of :mod:`nnef_hw.arithmetic.tables`, lowest code first.
    """

    entries: Codes

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"entries": np.asarray(node.attrs["table"], np.int64)}

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return look_up(self.entries, x, self.source)


@layers("softmax")
@dataclass(frozen=True, eq=False, kw_only=True)
class Softmax(Layer):
    """Softmax over channels.

    Parameters
    ----------
    table
        Exponentials by how far a code is below the greatest one.
    is_masked
        Whether the lowest code stands for what a mask hides.
    """

    table: Codes
    is_masked: bool

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {
            "table": np.asarray(node.attrs["table"], np.int64),
            "is_masked": bool(node.attrs.get("masked", False)),
        }

    @property
    def is_tflite(self) -> bool:
        """Whether the function is computed as TensorFlow Lite does."""
        return self.target == TFLITE_SOFTMAX_QTYPE

    @property
    def places(self) -> int:
        """Bits of a probability below 1, unless it is computed as TensorFlow Lite does."""
        return softmax_places(self.target)

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        if self.is_tflite:
            return tflite_softmax_codes(x, self.table)
        hidden = self.source.lo if self.is_masked else None
        return softmax_codes(x, self.table, qtype=self.target, hidden=hidden)


@layers("argmax_reduce", "argmin_reduce")
@dataclass(frozen=True, eq=False, kw_only=True)
class ArgExtremum(Layer):
    """Index of the greatest or the smallest channel, the lowest one of several.

    Parameters
    ----------
    greatest
        Whether it is that of the greatest one.
    """

    greatest: bool

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"greatest": node.op == "argmax_reduce"}

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return argmax_codes(x) if self.greatest else argmin_codes(x)
