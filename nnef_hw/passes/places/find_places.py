"""Rewrite choices by integer inputs: rows that caches take, channels that masks hide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from math import prod
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.places.integer_tables import IntegerTable, IntegerTables, is_integer_input
from nnef_hw.passes.places.tabulate_integers import TabulateIntegers, place_of
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import View
from nnef_hw.reference.real.program import as_array
from nnef_hw.reference.real.registry import Array, Evaluation, evaluate

__all__ = ["HIDDEN", "FindPlaces"]

HIDDEN = -1e4
"""A mask hides places of a softmax by a value of at most this."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FindPlaces(Pass):
    """Rewrite choices by an integer of an input, of which hardware computes nothing else.

    * ``select`` of a row where a range of constants equals the integer, else of a cache
      -> ``write_row`` between moves
    * ``scatter_nd`` and ``scatter_elements`` of a row at the integer -> likewise
    * ``select`` of scores up to the integer, in front of a softmax, else of a very low number
      -> ``causal_mask``
    * ``add`` of 0 up to the integer, in front of a softmax, and of very low numbers behind it
      -> likewise

    Left alone: other choices, which :class:`.TabulateIntegers` makes products of.
    """

    before: ClassVar[Reasons] = {
        TabulateIntegers: "TabulateIntegers makes products of the choices that FindPlaces leaves.",
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        if not any(is_integer_input(graph, name) for name in graph.inputs):
            return graph
        editor, tables = Editor(graph), IntegerTables(graph)
        for node in graph.nodes:
            done = False
            if node.op == "select" and node.inputs[0] in tables.found:
                done = _emit_choice(editor, node, tables.found[node.inputs[0]])
            elif node.op == "add":
                done = _emit_sum(editor, node, tables)
            elif node.op in {"scatter_nd", "scatter_elements"} and node.inputs[1] in tables.found:
                done = _emit_scatter(editor, node, tables.found[node.inputs[1]])
            if not done:
                editor.keep(node)
        return editor.finish()


def _along(table: Array, shape: Shape) -> tuple[int, Array] | None:
    """Return the only axis along which rows of a table vary, and the table [R, T]."""
    axes = [axis for axis, extent in enumerate(shape) if extent > 1]
    return (axes[0], table.reshape(len(table), -1)) if len(axes) == 1 else None


def _emit_choice(editor: Editor, node: Node, table: IntegerTable) -> bool:
    found = _along(table.values, editor.shape(node.inputs[0]))
    shape = editor.shape(node.name)
    if found is None or found[1].shape[1] != shape[found[0]]:
        return False
    axis, chosen = found
    places, rows = np.arange(chosen.shape[1]), np.arange(len(chosen))[:, None]
    for choices, mask in ((node.inputs[1:], chosen), (node.inputs[:0:-1], ~chosen.astype(bool))):
        first, second = choices
        if np.array_equal(mask, places == rows):
            return _emit_row(editor, node, axis, (second, first), table.source)
        if np.array_equal(mask, places <= rows):
            return _emit_mask(editor, node, axis, first, editor.data(second), table.source)
    return False


def _emit_row(
    editor: Editor, node: Node, axis: int, operands: tuple[str, str], source: str
) -> bool:
    """Emit a ``write_row`` of a cache and a row, which has its axes."""
    cache, row = operands
    shape = editor.shape(node.name)
    of_row = editor.shape(row) + (1,) * (len(shape) - len(editor.shape(row)))
    expected = (*shape[:axis], 1, *shape[axis + 1 :])
    is_computed = editor.data(cache) is None and editor.data(row) is None
    if editor.shape(cache) != shape or of_row != expected or not is_computed:
        return False
    others = [n for n in range(len(shape)) if n != axis]
    channels = prod(expected)
    view = View((*others, axis), (1, channels, shape[axis]))
    image = view.enter(editor, node, cache, f"{node.name}_cache")
    like = editor.tensors[node.name]
    flat = editor.activation(f"{node.name}_new", (1, channels), like)
    editor.emit(reshape_node(row, flat, (1, channels), node))
    written = editor.activation(f"{node.name}_written", view.shape, like)
    place = place_of(editor, source, node)
    editor.emit(Node("write_row", (image, flat, place), (written,), {}, node.location))
    view.leave(editor, node, written, node.name)
    return True


def _emit_mask(
    editor: Editor,
    node: Node,
    axis: int,
    scores: str,
    hidden: Array | None,
    source: str,
) -> bool:
    """Emit a ``causal_mask`` of scores that only a softmax along the axis reads."""
    if hidden is None or not (hidden <= HIDDEN).all():
        return False
    readers = editor.graph.consumers(node.name)
    are_read = all(x.op == "softmax" and list(x.attrs["axes"]) == [axis] for x in readers)
    if not readers or not are_read or node.name in editor.graph.outputs:
        return False
    if editor.data(scores) is not None or editor.shape(scores) != editor.shape(node.name):
        return False
    place = place_of(editor, source, node)
    attrs = {"axes": [axis]}
    editor.emit(Node("causal_mask", (scores, place), node.outputs, attrs, node.location))
    return True


def _emit_sum(editor: Editor, node: Node, tables: IntegerTables) -> bool:
    """Emit a mask for scores to which numbers are added that hide some."""
    for name, scores in (node.inputs, node.inputs[::-1]):
        table = tables.found.get(name)
        if table is None or scores in tables.found:
            continue
        found = _along(table.values, editor.shape(name))
        if found is None:
            return False
        axis, added = found
        behind = np.arange(added.shape[1]) > np.arange(len(added))[:, None]
        if added[~behind].any() or not behind.any():
            return False
        return _emit_mask(editor, node, axis, scores, added[behind], table.source)
    return False


def _emit_scatter(editor: Editor, node: Node, indices: IntegerTable) -> bool:
    """Emit a ``write_row`` if the updates are the elements of one row, in their order."""
    cache, _, updates = node.inputs
    shape, of_updates = editor.shape(cache), editor.shape(updates)
    if node.attrs.get("reduction", "none") != "none" or editor.data(updates) is not None:
        return False
    numbers = 1.0 + np.arange(prod(of_updates)).reshape(of_updates)
    rows = [_scattered(node, shape, index, numbers) for index in indices.values]
    for axis in range(len(shape)):
        wanted = np.arange(1, 1 + prod(shape) // shape[axis])
        if (
            all(
                np.array_equal(np.take(row, place, axis).reshape(-1), wanted)
                and np.count_nonzero(row) == len(wanted)
                for place, row in zip(count(), rows)
                if place < shape[axis]
            )
            and len(rows) <= shape[axis]
        ):
            like, extents = editor.tensors[node.name], (*shape[:axis], 1, *shape[axis + 1 :])
            row = editor.activation(f"{node.name}_update", extents, like)
            editor.emit(reshape_node(updates, row, extents, node))
            return _emit_row(editor, node, axis, (cache, row), indices.source)
    return False


def _scattered(node: Node, shape: Shape, index: Array, numbers: Array) -> Array:
    """Return zeros with numbers where a node puts its updates."""
    args = np.zeros(shape), as_array(index, "integer"), numbers
    [found] = evaluate(Evaluation(node, args, (shape,), dtypes=("scalar",)))
    return found
