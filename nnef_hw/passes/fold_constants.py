"""Compute what depends on no input."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph
from nnef_hw.passes.editor import Editor
from nnef_hw.reference.float import evaluate_constant

__all__ = ["FoldConstants"]


@dataclass(frozen=True, slots=True)
class FoldConstants:
    """Replace every node whose arguments are all constants by its value.

    Left alone: nodes whose result is a graph output.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            known = all(editor.data(name) is not None for name in node.inputs)
            if not known or not node.inputs or set(node.outputs) & set(graph.outputs):
                editor.keep(node)
                continue
            results = evaluate_constant(replace(graph, tensors=editor.tensors), node)
            for name, value in zip(node.outputs, results, strict=True):
                source = editor.tensors[node.inputs[0]]
                label = source.label if value.size == source.volume else None
                tensor = replace(editor.tensors[name], data=value, shape=value.shape, label=label)
                editor.tensors[name] = tensor
            editor.changed = True
        return editor.finish()
