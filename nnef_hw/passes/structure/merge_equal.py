"""Compute once what several nodes compute alike."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["MergeEqual"]


@dataclass(frozen=True, slots=True)
class MergeEqual(Pass):
    """Let the readers of a node read the result of an earlier one with its operands.

    Left alone: results that are graph outputs or are quantized, and nodes with several results or
    with a body.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        found: dict[Hashable, str] = {}
        named = {*graph.outputs, *(state.result for state in graph.states.values())}
        for node in graph.nodes:
            key = _key(editor, node)
            first = node.name if key is None else found.setdefault(key, node.name)
            if first == node.name or node.name in named:
                editor.keep(node)
            else:
                editor.alias(node.name, first)
        return editor.finish()


def _key(editor: Editor, node: Node) -> Hashable:
    """Return a key that tells a node from others; None for one that is left alone."""
    tensor = editor.tensors[node.name]
    if len(node.outputs) > 1 or tensor.quant is not None or "body" in node.attrs:
        return None
    attrs = str(sorted(node.attrs.items()))
    return node.op, tuple(map(editor.resolve, node.inputs)), attrs, tensor.shape, tensor.dtype
