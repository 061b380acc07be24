"""Products of two activations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nnef_hw.arithmetic.numerics import QType, Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.geometry.contraction import Contraction as Sizes
from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers.layer import Codes, Layer, format_of, layers
from nnef_hw.ir.operators import ContractionAttributes

__all__ = ["Contraction"]


@layers("contraction")
@dataclass(frozen=True, eq=False, kw_only=True)
class Contraction(Layer):
    """Rows of the first operand times matrices of the second, summed exactly, requantized once.

    Parameters
    ----------
    sizes
        Sizes of the products, and the order in which both operands stream.
    gain, bias
        Sums are multiplied by ``2**gain``, and the bias is added, before they are requantized.
    requant
        How sums become codes.
    """

    sizes: Sizes
    gain: int
    bias: int
    requant: Requant | TfliteRequant

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        rows, matrices = (graph.tensor(name) for name in node.inputs)
        return cls(
            node=node, operands=(rows, matrices), result=graph.tensor(node.name),
            sizes=node.attributes(ContractionAttributes).sizes(rows.shape, matrices.shape),
            gain=node.attrs["gain"], bias=node.attrs["bias"], requant=node.attrs["requant"],
        )  # fmt: skip

    @property
    def second(self) -> QType:
        """Format of the matrices."""
        return format_of(self.operands[1])

    @cached_property
    def differences(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Least and greatest code less its zero point, of rows and of matrices."""
        first, second = (
            (q.lo - q.zero_point, q.hi - q.zero_point) for q in (self.source, self.second)
        )
        return first, second

    @cached_property
    def sums(self) -> tuple[int, int]:
        """Least and greatest sum on the way to the requantizer, gain and bias included."""
        first, second = self.differences
        corners = [0, *(self.sizes.inner * a * b for a in first for b in second)]
        limits = min(corners), max(corners)
        found = [(total << self.gain) + add for total in limits for add in (0, self.bias)]
        return min(found), max(found)

    def compute(self, *codes: Codes) -> Codes:
        # below 2**53 float64 sums exactly, and fast
        formats = self.source, self.second
        x, w = ((c - q.zero_point).astype(np.float64) for c, q in zip(codes, formats, strict=True))
        sums = self.sizes.multiply(x, w).astype(np.int64)
        result = self.requant.apply((sums << self.gain) + self.bias)
        return result.reshape(len(x), *self.result.shape[1:])
