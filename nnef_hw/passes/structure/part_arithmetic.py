"""Arithmetic of one part of a joined vector, found from the end of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.ir import Graph, Node, Trait

__all__ = ["Leaf", "Operation", "Reader", "Shape", "is_arithmetic"]

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A tensor, or a part of it, that arithmetic reads.

    Parameters
    ----------
    name
        The tensor.
    source, index
        What moves and slices make the part of, and the elements of that which it has.
    part
        Axis, and first element and end on it; None if it is whole.
    """

    name: str
    source: str
    index: IntArray
    part: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """A node that computes each element of its operands' parts."""

    node: Node
    operands: tuple[Operation | Leaf, ...]

    @property
    def leaves(self) -> Iterator[Leaf]:
        """Tensors that are read."""
        for operand in self.operands:
            if isinstance(operand, Leaf):
                yield operand
            else:
                yield from operand.leaves

    @property
    def nodes(self) -> Iterator[Node]:
        """All nodes."""
        yield self.node
        for operand in self.operands:
            if isinstance(operand, Operation):
                yield from operand.nodes


def is_arithmetic(node: Node) -> bool:
    """Whether a node computes each element of its operands by itself."""
    return node.has(Trait.ARITHMETIC) or node.has(Trait.ELEMENTWISE)


@dataclass(frozen=True, slots=True)
class Reader:
    """Arithmetic of one part of what a join has, found from its end.

    Parameters
    ----------
    join, axis, place
        The join, its axis, and which part.
    shapes
        Of a part, and of all of them together, on the axis.
    """

    graph: Graph
    join: Node
    axis: int
    place: int
    shapes: tuple[Shape, Shape]

    def of_join(self, name: str) -> Operation | Leaf:
        """Return the arithmetic of this part of a tensor that has all parts."""
        if name == self.join.name:
            return self.of_part(_unmoved(self.graph, self.join.inputs[self.place]))
        node = self.graph.producer(name)
        if node is not None and is_arithmetic(node) and self._shape(name) == self.shapes[1]:
            return Operation(node, tuple(map(self.of_join, node.inputs)))
        shape, extent = self._shape(name), self.shapes[0][self.axis]
        if self.axis >= len(shape) or shape[self.axis] == 1:
            return self._leaf(name, None)
        begin = self.place * extent
        return self._leaf(name, (self.axis, begin, begin + extent))

    def of_part(self, name: str) -> Operation | Leaf:
        """Return the arithmetic of a tensor that is one part."""
        node = self.graph.producer(name)
        volume = prod(self.shapes[0])
        is_whole = self.graph.tensor(name).volume == volume
        if node is not None and is_whole and is_arithmetic(node):
            return Operation(node, tuple(map(self.of_part, node.inputs)))
        return self._leaf(name, None)

    def _shape(self, name: str) -> Shape:
        return self.graph.tensor(name).shape

    def _leaf(self, name: str, part: tuple[int, int, int] | None) -> Leaf:
        source, index = _traced(self.graph, name)
        if part is not None:
            axis, begin, end = part
            index = index.take(range(begin, end), axis)
        return Leaf(name, source, index, part)


def _unmoved(graph: Graph, name: str) -> str:
    """Return the tensor in front of reshapes."""
    node = graph.producer(name)
    while node is not None and node.has(Trait.RESHAPES):
        name = node.inputs[0]
        node = graph.producer(name)
    return name


def _traced(graph: Graph, name: str) -> tuple[str, IntArray]:
    """Return the source of a tensor of moves and slices, and the elements that it has of that."""
    node, shape = graph.producer(name), graph.tensor(name).shape
    if node is not None and node.op == "slice":
        source, index = _traced(graph, node.inputs[0])
        attrs = [node.attrs[key] for key in ("axes", "begin", "end")]
        strides = node.attrs.get("stride") or [1] * len(attrs[0])
        for axis, begin, _, stride in zip(*attrs, strides, strict=True):
            first = begin + index.shape[axis] if begin < 0 else begin
            places = first + stride * np.arange(shape[axis])
            index = index.take(places, axis)
        return source, index
    if node is not None and node.has(Trait.MOVES):
        source, index = _traced(graph, node.inputs[0])
        if node.has(Trait.RESHAPES):
            return source, index.reshape(shape)
        return source, index.transpose(node.attrs["axes"])
    return name, np.arange(prod(shape)).reshape(shape)
