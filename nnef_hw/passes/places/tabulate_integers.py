"""Turn what follows from an integer input alone into rows of tables."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.places.integer_tables import IntegerTables, is_integer_input
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["TabulateIntegers", "place_of"]


@dataclass(frozen=True, slots=True)
class TabulateIntegers(Pass):
    """Rewrite what is computed of one integer of an input, and of constants.

    * numbers that are chosen by the integer, and functions of these that nothing else is combined
      with -> a ``lookup``, in a table with a row for every integer
    * comparisons of the integer with constants -> likewise, of 0 and 1

    Left alone: integers whose range neither a table nor a range of constants tells.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        if not any(is_integer_input(graph, name) for name in graph.inputs):
            return graph
        editor = Editor(graph)
        tables = IntegerTables(graph)
        made = {node.name for node in graph.nodes if node.name in tables.found}
        kept = _kept(graph, made)
        read = {name for node in graph.nodes if node.name not in made for name in node.inputs}
        read.update(graph.outputs)
        for node in graph.nodes:
            if node.name not in made or node.name in kept:
                editor.keep(node)
            elif node.name in read:
                _emit_lookup(editor, node, tables)
            else:
                editor.changed = True
        return editor.finish()


def _kept(graph: Graph, made: set[str]) -> set[str]:
    """Return the tabulated tensors that have to be computed.

    Those are integers that others read, and logical values that loops do.
    """
    kept = set[str]()
    wanted = {name for node in graph.nodes if node.name not in made for name in node.inputs}
    wanted.update(graph.outputs)
    for node in reversed(graph.nodes):
        dtype = graph.tensor(node.name).dtype
        in_loop = any(reader.op == "scan" for reader in graph.consumers(node.name))
        is_itself = dtype == "integer" or (dtype == "logical" and in_loop)
        if node.name in made and (node.name in kept or (is_itself and node.name in wanted)):
            kept.add(node.name)
            kept.update(name for name in node.inputs if name in made)
    return {name for name in kept if name in made}


def place_of(editor: Editor, source: str, node: Node) -> str:
    """Emit an integer of an input as operators take it, [1, 1]; return its name."""
    like = editor.tensors[source]
    if like.shape == (1, 1):
        return source
    place = editor.activation(f"{source}_place", (1, 1), like)
    editor.emit(reshape_node(source, place, (1, 1), node))
    return place


def _emit_lookup(editor: Editor, node: Node, tables: IntegerTables) -> None:
    source, values = tables.found[node.name]
    like = editor.tensors[node.name]
    rows = values.reshape(len(values), -1).astype(np.float64)
    table = editor.constant(f"{node.name}_rows", rows)
    number = replace(like, dtype="scalar", quant=None, label=None)
    shape, result = (1, rows.shape[1]), node.name
    is_number = like.dtype == "scalar"
    if not is_number or like.shape != shape:
        result = editor.activation(f"{node.name}_row", shape, number)
    place = place_of(editor, source, node)
    editor.emit(Node("lookup", (table, place), (result,), {}, node.location))
    if result == node.name:
        return
    whole = node.name
    if not is_number:
        whole = editor.activation(f"{node.name}_number", like.shape, number)
    editor.emit(reshape_node(result, whole, like.shape, node))
    if not is_number:
        zero = editor.constant(f"{node.name}_zero", np.asarray(0.0))
        editor.emit(Node("ne", (whole, zero), (node.name,), {}, node.location))
