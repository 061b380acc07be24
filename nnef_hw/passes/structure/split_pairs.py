"""Compute the two halves of rotated pairs apart, each as one vector."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, reshape_node, slice_node
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.passes.structure.part_arithmetic import (
    Leaf,
    Operation,
    Reader,
    Shape,
    is_arithmetic,
)  # fmt: skip

__all__ = ["SplitPairs"]

_Key: TypeAlias = tuple[str, bytes, Shape]
"""A tensor, and which of its elements, in which shape."""


@dataclass(frozen=True, slots=True)
class SplitPairs(Pass):
    """Rewrite arithmetic of parts of a vector whose results are joined in between each other.

    * ``stack`` or ``concat`` of sums and products of slices, along an axis that others are in front
      of -> the same arithmetic of whole vectors, joined one behind the other, and a ``transpose``
    * sums and products of a tensor and of a ``concat`` of its halves -> likewise, half by half

    The slices of a layer's result become layers of their own, with some of its outputs each; those
    of a row of a table become rows of a smaller one. These are the rotations of positions (RoPE),
    of neighbours as of halves: ``a cos - b sin`` and ``a sin + b cos``.

    Left alone: joins whose parts are one behind the other already; arithmetic that something else
    reads; tokens that a transpose has put behind heads.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        found: dict[str, _Rotation] = {}
        for node in graph.nodes:
            if node.op in {"stack", "concat"}:
                rotation = _Rotation.of(graph, node)
                if rotation is not None:
                    found[rotation.root] = rotation
        if not found:
            return graph
        editor = Editor(graph)
        for node in graph.nodes:
            if node.name in found:
                found[node.name].emit(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


@dataclass(frozen=True, slots=True, eq=False)
class _Rotation:
    """Arithmetic of the parts of a vector.

    Parameters
    ----------
    root
        The tensor that has all parts.
    parts
        What computes each of them.
    shape, axis
        Of a part where it is joined, and the axis in front of which the parts are counted.
    extents
        Of a part where it is computed.
    rows, lead
        Vectors there are, each with all of its parts; so many axes of the shape count them.
    source
        What has the vectors.
    is_own
        Whether nothing else reads these.
    """

    root: str
    parts: tuple[Operation, ...]
    shape: Shape
    axis: int
    extents: Shape
    rows: int
    lead: int
    source: str
    is_own: bool

    @classmethod
    def of(cls, graph: Graph, join: Node) -> _Rotation | None:
        """Return the arithmetic around a join; None if its parts need not be computed apart."""
        shapes = {graph.tensor(name).shape for name in join.inputs}
        if len(shapes) != 1 or len(join.inputs) < 2:
            return None
        [shape] = shapes
        axis, root = int(join.attrs["axis"]), join.name
        whole = graph.tensor(root).shape
        while (reader := _only_reader(graph, root)) is not None and is_arithmetic(reader):
            if graph.tensor(reader.name).shape != whole:
                break
            root = reader.name
        readers = (Reader(graph, join, axis, n, (shape, whole)) for n in range(len(join.inputs)))
        found = (each.of_join(root) for each in readers)
        parts = tuple(part for part in found if isinstance(part, Operation))
        if len(parts) < len(join.inputs):
            return None
        leaves = [leaf for part in parts for leaf in part.leaves]
        volume = prod(shape)
        sources = {
            leaf.source for leaf in leaves
            if leaf.index.size == volume < graph.tensor(leaf.source).volume
        }  # fmt: skip
        if len(sources) != 1:
            return None
        [source] = sources
        rows = prod(graph.tensor(source).shape[:-1])
        lead = next((n for n in range(axis + 1) if prod(shape[:n]) == rows), axis)
        if prod(shape[:lead]) != rows or prod(shape[lead:axis]) == 1:
            return None
        extents = graph.tensor(parts[0].node.name).shape
        inner = {join.name, *(node.name for part in parts for node in part.nodes)}
        made = cls(
            root, parts, shape, axis, extents if prod(extents) == volume else shape, rows, lead,
            source, _reaches_only(graph, source, inner),
        )  # fmt: skip
        vectors = (leaf for leaf in leaves if leaf.source == source)
        if any(made.columns(graph, leaf) is None for leaf in vectors):
            return None
        is_alone = all(_reaches_only(graph, name, inner) for name in inner - {root})
        return made if is_alone else None

    def columns(self, graph: Graph, leaf: Leaf) -> IntArray | None:
        """Return the elements of each row of its source that a leaf has; None if others."""
        extent = graph.tensor(leaf.source).shape[-1]
        if leaf.index.size % self.rows:
            return None
        index = leaf.index.reshape(self.rows, -1)
        every = np.arange(self.rows)[:, None] * extent + index[0]
        return index[0] if index[0].max() < extent and np.array_equal(every, index) else None

    def emit(self, editor: Editor, node: Node) -> None:
        """Emit the arithmetic of each part, and their join."""
        like, lead = editor.tensors[self.root], self.lead
        names: dict[_Key, str] = {}
        parts = tuple(self._emit(editor, part, names) for part in self.parts)
        volume = prod(self.shape) // self.rows
        shape = (*self.shape[:lead], len(parts), *self.shape[lead:])
        order = [*range(lead), *range(lead + 1, self.axis + 1), lead]
        order += range(self.axis + 1, len(shape))
        joined = editor.activation(f"{node.name}_parts", (self.rows, len(parts) * volume), like)
        apart = editor.activation(f"{node.name}_apart", shape, like)
        turned = editor.activation(f"{node.name}_turned", tuple(shape[n] for n in order), like)
        editor.emit(
            Node("concat", parts, (joined,), {"axis": 1}, node.location),
            reshape_node(joined, apart, shape, node),
            Node("transpose", (apart,), (turned,), {"axes": order}, node.location),
            reshape_node(turned, node.name, like.shape, node),
        )

    @property
    def _vectors(self) -> Shape:
        """Shape of a part as it is computed here."""
        return self.rows, prod(self.shape) // self.rows

    def _emit(self, editor: Editor, tree: Operation | Leaf, names: dict[_Key, str]) -> str:
        """Emit what computes a part, as one vector per row; return its name."""
        if isinstance(tree, Leaf):
            key = tree.source, tree.index.tobytes(), tree.index.shape
            if key not in names:
                names[key] = self._emit_leaf(editor, tree)
            return names[key]
        operands = tuple(self._emit(editor, x, names) for x in tree.operands)
        like = editor.tensors[tree.node.name]
        name = editor.activation(f"{like.name}_part", self._vectors, like)
        editor.emit(Node(tree.node.op, operands, (name,), tree.node.attrs, tree.node.location))
        return name

    def _emit_leaf(self, editor: Editor, leaf: Leaf) -> str:
        graph, like, hint = editor.graph, editor.tensors[leaf.name], f"{leaf.name}_part"
        if like.data is not None:
            return self._emit_constant(editor, leaf)
        maker = graph.producer(leaf.source)
        columns = self.columns(graph, leaf)
        is_part = columns is not None and len(columns) < graph.tensor(leaf.source).shape[-1]
        found = leaf.name
        node = next(x for x in (graph.producer(found), *graph.consumers(found)) if x is not None)
        if columns is not None and is_part:
            axis = None if maker is None else _axis_of_results(editor, maker)
            is_own = leaf.source != self.source or self.is_own
            if axis is not None and maker is not None and is_own:
                found = _picked(editor, maker, axis, columns, hint)
            else:
                found = self._gathered(editor, leaf.source, columns, hint, node)
        elif leaf.part is not None:
            found = editor.activation(hint, leaf.index.shape, like)
            editor.emit(slice_node(leaf.name, found, *leaf.part, node))
        if leaf.index.size < prod(self.shape):
            ones = (1,) * (len(self.extents) - leaf.index.ndim)
            shape = (*leaf.index.shape, *ones)
            repeats = [n // own for n, own in zip(self.extents, shape, strict=True)]
            found = _reshaped(editor, found, shape, hint, node)
            repeated = editor.activation(hint, self.extents, like)
            editor.emit(Node("tile", (found,), (repeated,), {"repeats": repeats}, node.location))
            found = repeated
        return _reshaped(editor, found, self._vectors, hint, node)

    def _emit_constant(self, editor: Editor, leaf: Leaf) -> str:
        like = editor.tensors[leaf.name]
        assert like.data is not None, leaf.name
        if like.data.size == 1:
            return leaf.name
        values = like.data.reshape(-1)[leaf.index]
        values = values.reshape(*values.shape, *(1,) * (len(self.extents) - values.ndim))
        whole = np.broadcast_to(values, self.extents).reshape(self._vectors)
        return editor.constant(f"{leaf.name}_part", whole, like)

    def _gathered(
        self, editor: Editor, source: str, columns: IntArray, hint: str, node: Node
    ) -> str:
        """Emit some columns of all rows."""
        like = editor.tensors[source]
        rows = _reshaped(editor, source, (self.rows, like.shape[-1]), f"{source}_rows", node)
        places = editor.constant(f"{hint}_places", columns)
        editor.tensors[places] = replace(editor.tensors[places], dtype="integer")
        result = editor.activation(hint, (self.rows, len(columns)), like)
        editor.emit(Node("gather", (rows, places), (result,), {"axis": 1}, node.location))
        return result


def _only_reader(graph: Graph, name: str) -> Node | None:
    readers = graph.consumers(name)
    return readers[0] if len(readers) == 1 and name not in graph.outputs else None


def _reaches_only(graph: Graph, name: str, readers: Collection[str]) -> bool:
    """Whether a tensor is read by these nodes alone, perhaps behind moves and slices."""
    return name not in graph.outputs and all(
        node.name in readers
        or ((node.has(Trait.MOVES) or node.op == "slice")
            and _reaches_only(graph, node.name, readers))
        for node in graph.consumers(name)
    )  # fmt: skip


def _axis_of_results(editor: Editor, node: Node) -> int | None:
    """Return the axis of a node's second operand that counts results, if it is one matrix."""
    if node.op == "lookup":
        return 1
    if node.op not in {"linear", "matmul"} or editor.data(node.inputs[1]) is None:
        return None
    is_plain = len(editor.shape(node.inputs[1])) == 2 and not node.attrs.get("transposeA", False)
    if not is_plain:
        return None
    return 0 if node.op == "linear" or node.attrs.get("transposeB", False) else 1


def _picked(editor: Editor, node: Node, axis: int, columns: IntArray, hint: str) -> str:
    """Emit a layer, or a lookup, that has some of the columns of a node's result."""
    like = editor.tensors[node.name]
    inputs = list(node.inputs)
    place = 0 if node.op == "lookup" else 1
    weights = editor.tensors[editor.resolve(inputs[place])]
    inputs[place] = editor.rearranged(
        f"{weights.name}_part", weights, lambda data: data.take(columns, axis)
    )
    if node.op == "linear" and len(inputs) > 2:
        bias = editor.tensors[editor.resolve(inputs[2])]
        if bias.data is not None and bias.data.size > 1:
            inputs[2] = editor.rearranged(
                f"{bias.name}_part", bias, lambda data: data.take(columns, -1)
            )
    result = editor.activation(hint, (*like.shape[:-1], len(columns)), like)
    editor.emit(Node(node.op, tuple(inputs), (result,), node.attrs, node.location))
    return result


def _reshaped(editor: Editor, name: str, shape: Shape, hint: str, node: Node) -> str:
    like = editor.tensors[editor.resolve(name)]
    if like.shape == shape:
        return name
    result = editor.activation(hint, shape, like)
    editor.emit(reshape_node(name, result, shape, node))
    return result
