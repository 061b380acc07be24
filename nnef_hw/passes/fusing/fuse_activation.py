"""Fuse ReLU and ``clamp`` into the operator before it, where they cost nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.activation import with_limits
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["FuseActivation"]


@dataclass(frozen=True, slots=True)
class FuseActivation(Pass):
    """Let an operator of sums keep its result in the limits of the function that alone reads it.

    * ``relu`` behind ``conv``, ``linear``, ``add`` or ``sub`` -> ``activation = "relu"``
    * ``clamp`` -> ``activation = "clamp"`` and its limits ``a`` and ``b``; several are one

    The operator computes the function's result under its name and keeps its own location.
    Left alone: sums that others read too, or that are a graph output, or are quantized in another
    way than the function's result.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            limits = _limits(node)
            before = None if limits is None else editor.emitted(node.inputs[0])
            if (
                limits is None
                or before is None
                or not before.has(Trait.CLIPS)
                or not editor.has_one_use(node.inputs[0])
                or not _fits(editor, before.name, node.name)
            ):
                editor.keep(node)
                continue
            editor.drop(before)
            editor.emit(replace(with_limits(before, *limits), outputs=node.outputs))
        return editor.finish()


def _limits(node: Node) -> tuple[float, float] | None:
    if node.op == "relu":
        return 0.0, math.inf
    if node.op == "clamp" and len(node.inputs) == 1:
        return node.attrs["a"], node.attrs["b"]
    return None


def _fits(editor: Editor, total: str, result: str) -> bool:
    """Whether the layer can quantize its result at once; this then has the sum's quantization."""
    inner, outer = editor.tensors[total].quant, editor.tensors[result].quant
    if inner is not None and outer is None:
        editor.tensors[result] = replace(editor.tensors[result], quant=inner)
        return True
    return inner is None or same_quantization(inner, outer)
