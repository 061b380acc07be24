"""Turn what layers cannot compute with, because it is no constant, into operators of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["LowerBias"]

_MATRIX = 2


@dataclass(frozen=True, slots=True)
class LowerBias(Pass):
    """Rewrite layers whose bias or matrix is computed.

    * ``linear``, ``conv``, ``deconv`` with a computed bias -> the same without one, and an ``add``
    * ``linear`` with a computed matrix -> ``matmul`` with the matrix transposed, and an ``add``

    Left alone: ``conv`` and ``deconv`` with a computed filter, and layers with an activation.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            is_layer = node.has(Trait.WEIGHTS) or node.op == "deconv"
            if not is_layer or node.attrs.get("activation") is not None:
                editor.keep(node)
            elif node.op == "linear" and _is_product(editor, node):
                _emit(editor, node, "matmul", node.inputs[:2])
            elif editor.data(node.inputs[2]) is None:
                bias = editor.constant(f"{node.name}_bias", np.zeros(()))
                _emit(editor, node, node.op, (*node.inputs[:2], bias))
            else:
                editor.keep(node)
        return editor.finish()


def _is_product(editor: Editor, node: Node) -> bool:
    is_computed = all(editor.data(name) is None for name in node.inputs[:2])
    return is_computed and len(editor.shape(node.inputs[1])) == _MATRIX


def _emit(editor: Editor, node: Node, op: str, inputs: tuple[str, ...]) -> None:
    """Emit a sum and its bias, which has a number for each channel or one for all."""
    like = editor.tensors[node.name]
    total = editor.add(f"{node.name}_sum", replace(like, quant=None))
    attrs = {"transposeA": False, "transposeB": True} if op == "matmul" else node.attrs
    editor.emit(Node(op, inputs, (total,), attrs, node.location))
    bias = node.inputs[2]
    shape = editor.shape(bias)
    channels = (1, *shape[-1:], *[1] * (len(like.shape) - _MATRIX))
    if shape not in {(), channels}:
        source = editor.tensors[editor.resolve(bias)]
        reshaped = editor.activation(f"{node.name}_bias", channels, replace(source, data=None))
        editor.emit(reshape_node(bias, reshaped, channels, node))
        bias = reshaped
    editor.emit(Node("add", (total, bias), (node.name,), {}, node.location))
