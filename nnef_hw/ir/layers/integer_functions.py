"""Softmax and normalization of integer networks, by whole divisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant, integer_softmax_codes
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers

__all__ = ["IntegerNormalization", "IntegerSoftmax"]


@layers("integer_softmax")
@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerSoftmax(Layer):
    """Softmax over channels, with exponentials of the model's own, rounded down.

    Parameters
    ----------
    table
        Exponentials by how far a code is below the greatest one.
    levels
        The sum of a pixel's results is less than that.
    """

    table: Codes
    levels: int

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        return cls(
            node=node, operands=(graph.tensor(node.inputs[0]),), result=graph.tensor(node.name),
            table=np.asarray(node.attrs["table"], np.int64), levels=node.attrs["levels"],
        )  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return integer_softmax_codes(x, self.table, self.levels)


@layers("integer_normalize")
@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerNormalization(Layer):
    """Normalization over channels, scaled and shifted, by whole divisions.

    Parameters
    ----------
    requant
        How results become codes.
    scale, offset
        One number, or one per channel.
    """

    requant: IntegerNormalizeRequant
    scale: Codes
    offset: Codes

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        operand, *factors = node.inputs
        scale, offset = (graph.constant(name).astype(np.int64).reshape(-1) for name in factors)
        return cls(
            node=node, operands=(graph.tensor(operand),), result=graph.tensor(node.name),
            requant=node.attrs["requant"], scale=scale, offset=offset,
        )  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return self.requant.apply(x, self.scale, self.offset)
