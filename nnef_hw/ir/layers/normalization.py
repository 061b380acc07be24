"""Layer and RMS normalization over channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers.layer import Codes, Layer, layers

__all__ = ["Normalization"]


@layers("normalize")
@dataclass(frozen=True, eq=False, kw_only=True)
class Normalization(Layer):
    """Normalization over channels, scaled and shifted, with one rounding.

    Parameters
    ----------
    requant
        Its integers, with those of the result's format.
    mult, offset
        Scale and shift in units of ``requant``: one number, or one per channel.
    """

    requant: NormalizeRequant
    mult: Codes
    offset: Codes

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        operand, *factors = node.inputs
        mult, offset = (graph.constant(name).astype(np.int64).reshape(-1) for name in factors)
        return cls(
            node=node, operands=(graph.tensor(operand),), result=graph.tensor(node.name),
            requant=node.attrs["requant"], mult=mult, offset=offset,
        )  # fmt: skip

    def compute(self, *codes: Codes) -> Codes:
        [x] = codes
        return self.requant.apply(x - self.source.zero_point, self.mult, self.offset)
