"""Members of every integer layer: operands, result, codes that it computes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir.graph import Graph, Node, Tensor
from nnef_hw.ir.operators import PerOperator
from nnef_hw.ir.stream_order import image_shape

__all__ = ["Codes", "Layer", "format_of", "image_of", "layers"]

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Layer(ABC):
    """A node of a fixed graph: integers in, integers out.

    Parameters
    ----------
    node
        The node.
    operands
        Tensors that it computes with: activations and constants, but no filter and no bias.
    result
        The tensor that it computes.
    """

    node: Node
    operands: tuple[Tensor, ...]
    result: Tensor

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Self:
        """Return the layer of a node."""
        operands = tuple(graph.tensor(name) for name in node.inputs)
        return cls(node=node, operands=operands, result=graph.tensor(node.name), **cls.read(node))

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        """Return the fields that the attributes of a node alone decide."""
        del node
        return {}

    @property
    def source(self) -> QType:
        """Format of the first operand."""
        return format_of(self.operands[0])

    @property
    def target(self) -> QType:
        """Format of the result."""
        return format_of(self.result)

    @property
    def image(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the first operand."""
        return image_of(self.operands[0])

    @property
    def result_image(self) -> tuple[int, int, int]:
        """Rows, columns and channels of the result."""
        return image_of(self.result)

    def reading(self, operand: Tensor) -> Self:
        """Return the layer as if it read another tensor, of the same codes in another order."""
        node = replace(self.node, inputs=(operand.name,))
        return replace(self, node=node, operands=(operand,))

    @abstractmethod
    def compute(self, *codes: Codes) -> Codes:
        """Return the codes of the result, given those of all operands: [N, ...] each."""

    def run(self, values: Mapping[str, Codes]) -> Codes:
        """Return the codes of the result, given those of activations by name."""
        return self.compute(*(values[x.name] if x.data is None else x.data for x in self.operands))


layers = PerOperator[type[Layer]]("integer layer")
"""The class of an operator's layers."""


def format_of(tensor: Tensor) -> QType:
    """Return the format of a tensor of a fixed graph."""
    assert tensor.qtype is not None, f"{tensor.name}: no QType in a fixed graph"
    return tensor.qtype


def image_of(tensor: Tensor) -> tuple[int, int, int]:
    """Return rows, columns and channels of a tensor that is an image."""
    image = image_shape(tensor.shape)
    assert image is not None, f"{tensor.name}: {tensor.shape} is no image"
    return image
