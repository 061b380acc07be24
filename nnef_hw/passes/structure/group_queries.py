"""Multiply several rows by one matrix where an exporter repeats the matrix for each of them."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["GroupQueries"]


@dataclass(frozen=True, slots=True)
class GroupQueries(Pass):
    """Rewrite a ``matmul`` whose second operand has every matrix several times in a row.

    * ``matmul`` with a ``reshape``, perhaps a ``transpose``, of a ``tile`` of an axis of extent 1
      -> a ``matmul`` with what is repeated, between reshapes: rows of a group of heads have an axis
      of their own, along which the matrices broadcast

    Of grouped queries (GQA), several heads read the keys and values of one: caches are not copied.

    Left alone: axes that are repeated otherwise.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            found = _Repeated.of(editor, node) if node.op == "matmul" else None
            if found is None:
                editor.keep(node)
            else:
                _emit(editor, node, found)
        return editor.finish()


@dataclass(frozen=True, slots=True)
class _Repeated:
    """Matrices that are repeated.

    Parameters
    ----------
    source
        What is repeated; its ``axis`` + 1 has the extent 1.
    count
        How often, in a row.
    order
        Order of the axes of the matrices behind the repetition, without the repeated one.
    """

    source: str
    axis: int
    count: int
    order: tuple[int, ...]

    @classmethod
    def of(cls, editor: Editor, node: Node) -> _Repeated | None:
        """Return the matrices that a product repeats; None if it repeats no whole axis."""
        rows, shape = map(editor.shape, node.inputs)
        if editor.data(node.inputs[0]) is not None or not 3 <= len(shape) == len(rows):
            return None
        order = tuple(range(len(shape)))
        move = editor.emitted(editor.resolve(node.inputs[1]))
        if move is not None and move.op == "transpose":
            order = tuple(move.attrs["axes"])
            move = editor.emitted(editor.resolve(move.inputs[0]))
        if move is None or not move.has(Trait.RESHAPES):
            return None
        joined = editor.shape(move.name)
        tile = editor.emitted(editor.resolve(move.inputs[0]))
        if tile is None or tile.op != "tile":
            return None
        before, after = editor.shape(tile.inputs[0]), editor.shape(tile.name)
        axes = [n for n, extent in enumerate(before) if extent != after[n]]
        if len(axes) != 1 or before[axes[0]] != 1 or axes[0] == 0:
            return None
        axis, count = axes[0] - 1, after[axes[0]]
        is_joined = joined == (*after[:axis], after[axis] * count, *after[axis + 2 :])
        is_leading = order[axis] == axis < len(shape) - 2
        if not is_joined or not is_leading or rows[axis] != joined[axis]:
            return None
        return cls(tile.inputs[0], axis, count, order)


def _emit(editor: Editor, node: Node, found: _Repeated) -> None:
    axis, count, matrices = found.axis, found.count, found.source
    rank = len(found.order)
    if found.order != tuple(range(rank)):
        axes = [n + (n > axis) for n in found.order]
        axes.insert(axis + 1, axis + 1)
        like = editor.tensors[editor.resolve(matrices)]
        shape = tuple(like.shape[n] for n in axes)
        name = editor.activation(f"{node.name}_group", shape, like)
        editor.emit(Node("transpose", (matrices,), (name,), {"axes": axes}, node.location))
        matrices = name
    rows = editor.tensors[editor.resolve(node.inputs[0])]
    result = editor.tensors[node.name]
    grouped, sums = (
        (*x.shape[:axis], x.shape[axis] // count, count, *x.shape[axis + 1 :])
        for x in (rows, result)
    )
    queries = editor.activation(f"{node.name}_queries", grouped, rows)
    products = editor.activation(f"{node.name}_products", sums, result)
    editor.emit(
        reshape_node(node.inputs[0], queries, grouped, node),
        Node("matmul", (queries, matrices), (products,), node.attrs, node.location),
        reshape_node(products, node.name, result.shape, node),
    )
