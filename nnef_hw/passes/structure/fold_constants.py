"""Compute the nodes that depend on no input."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Quantization, Tensor, Trait
from nnef_hw.ir.quantization import rearranged
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.reference.float import evaluate_constant

__all__ = ["FoldConstants"]


@dataclass(frozen=True, slots=True)
class FoldConstants(Pass):
    """Replace every node whose arguments are all constants by its value.

    Codes of a quantized constant survive a reshape or a transpose.
    Left alone: nodes whose result is a graph output.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            all_constant = all(editor.data(name) is not None for name in node.inputs)
            if not all_constant or not node.inputs or set(node.outputs) & set(graph.outputs):
                editor.keep(node)
                continue
            results = evaluate_constant(replace(graph, tensors=editor.tensors), node)
            for name, value in zip(node.outputs, results, strict=True):
                source = editor.tensors[node.inputs[0]]
                label = source.label if value.size == source.volume else None
                quant = editor.tensors[name].quant or _carried(node, source, value)
                editor.tensors[name] = replace(
                    editor.tensors[name], data=value, shape=value.shape, label=label, quant=quant
                )
            editor.changed = True
        return editor.finish()


def _carried(node: Node, source: Tensor, value: Array) -> Quantization | None:
    """Return the quantization of a constant whose elements a node only moves."""
    if source.quant is None or not node.has(Trait.MOVES):
        return None
    axes: list[int] = list(node.attrs["axes"]) if node.op == "transpose" else []
    axes += range(len(axes), len(source.shape))
    return rearranged(
        source.quant, source.shape, lambda array: np.transpose(array, axes).reshape(value.shape)
    )
