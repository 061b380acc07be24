"""Apply functions before the image is flattened, where they may fuse."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph, Node
from nnef_hw.ir.verify import TABLE_OPS
from nnef_hw.passes.editor import Editor, reshape_node

__all__ = ["HoistFunctions"]

_RAISED_RANK = 3


@dataclass(frozen=True, slots=True)
class HoistFunctions:
    """Swap a ``reshape`` and the function of one activation that alone reads it.

    Left alone: reshapes that others read too, reshapes of graph inputs, and of [1, C, L] tensors,
    where :class:`~nnef_hw.passes.RaiseRank` would put the reshape back.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            before = editor.emitted(editor.resolve(node.inputs[0])) if node.inputs else None
            if (
                node.op not in TABLE_OPS
                or len(node.inputs) != 1
                or before is None
                or before.op != "reshape"
                or before.inputs[0] in graph.inputs
                or len(editor.shape(before.inputs[0])) == _RAISED_RANK
                or not editor.has_one_use(node.inputs[0])
            ):
                editor.keep(node)
                continue
            shape = editor.shape(before.inputs[0])
            inner = editor.activation(f"{node.name}_image", shape, editor.tensors[node.name])
            editor.drop(before)
            editor.emit(
                Node(node.op, before.inputs, (inner,), node.attrs, node.location),
                reshape_node(inner, node.name, editor.shape(node.name), before),
            )
        return editor.finish()
