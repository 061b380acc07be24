"""Gates of a recurrent cell that read the same: one linear layer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor, slice_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["MergeSiblings"]


@dataclass(frozen=True, slots=True)
class MergeSiblings(Pass):
    """Compute all linear layers of a loop that read one tensor as one layer.

    * filters and biases one behind the other, and a ``slice`` of the result for each of them: one
      array and one buffer in place of several. A schedule takes them apart again where there is
      room for several, which are faster.

    Left alone: layers outside of loops, with an activation, of computed filters, or whose filter,
    bias or result the model's author quantized.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        groups: dict[str, list[Node]] = {}
        for node in graph.nodes:
            if _is_gate(graph, node):
                groups.setdefault(node.inputs[0], []).append(node)
        found = {nodes[0].name: nodes for nodes in groups.values() if len(nodes) > 1}
        merged = {node.name for nodes in found.values() for node in nodes}
        editor = Editor(graph)
        for node in graph.nodes:
            if node.name in found:
                _emit(editor, found[node.name])
            elif node.name not in merged:
                editor.keep(node)
        return editor.finish()


def _is_gate(graph: Graph, node: Node) -> bool:
    if node.op != "linear" or graph.steps(node.name) == 1 or node.attrs.get("activation"):
        return False
    constants = [graph.tensor(name) for name in node.inputs[1:]]
    if any(tensor.data is None for tensor in constants):
        return False
    return all(tensor.quant is None for tensor in (*constants, graph.tensor(node.name)))


def _emit(editor: Editor, nodes: list[Node]) -> None:
    """Emit a layer for several, and their results."""
    first = nodes[0]
    sizes = [editor.shape(node.name)[1] for node in nodes]
    weights, biases = [], []
    for node, size in zip(nodes, sizes, strict=True):
        data, bias = (editor.data(name) for name in node.inputs[1:])
        assert data is not None
        assert bias is not None
        weights.append(data)
        biases.append(np.broadcast_to(bias.reshape(1, -1), (1, size)))
    like, bias_like = (editor.tensors[editor.resolve(name)] for name in first.inputs[1:])
    inputs = (
        first.inputs[0],
        editor.constant(f"{like.name}_gates", np.concatenate(weights), like),
        editor.constant(f"{bias_like.name}_gates", np.concatenate(biases, axis=1), bias_like),
    )
    whole = editor.activation(f"{first.name}_gates", (1, sum(sizes)), editor.tensors[first.name])
    editor.emit(Node("linear", inputs, (whole,), first.attrs, first.location))
    begin = 0
    for node, size in zip(nodes, sizes, strict=True):
        editor.emit(slice_node(whole, node.name, 1, begin, begin + size, node))
        begin += size
