"""Turn every operator that keeps the order of elements into one reshape."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["LowerShapes"]


@dataclass(frozen=True, slots=True)
class LowerShapes(Pass):
    """Rewrite ``squeeze``, ``unsqueeze``, ``transpose`` and chains of reshapes.

    * ``squeeze``, ``unsqueeze``, partial ``reshape`` -> ``reshape`` with the whole shape
    * ``transpose`` that only moves axes of extent 1 -> ``reshape``
    * ``reshape`` of a ``reshape`` -> one ``reshape`` of the first one's input
    * ``transpose`` of a ``transpose`` -> one ``transpose``

    Left alone: another ``transpose`` that changes the order of elements.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if not _keeps_order(graph, node):
                before = editor.emitted(editor.resolve(node.inputs[0]))
                if node.op == "transpose" and before is not None and before.op == "transpose":
                    axes = [before.attrs["axes"][axis] for axis in node.attrs["axes"]]
                    node = replace(node, inputs=before.inputs, attrs={"axes": axes})
                    editor.emit(node)
                else:
                    editor.keep(node)
                continue
            shape, result = list(graph.tensor(node.outputs[0]).shape), node.outputs[0]
            source = node.inputs[0]
            before = editor.emitted(source)
            if before is not None and before.op == "reshape":
                source = before.inputs[0]
            elif node.op == "reshape" and list(node.attrs["shape"]) == shape:
                editor.keep(node)
                continue
            editor.emit(reshape_node(source, result, shape, node))
        return editor.finish()


def _keeps_order(graph: Graph, node: Node) -> bool:
    if node.has(Trait.RESHAPES):
        return True
    if node.op != "transpose":
        return False
    shape = graph.tensor(node.inputs[0]).shape
    moved = [axis for axis in node.attrs["axes"] if shape[axis] != 1]
    return moved == sorted(moved)
