"""Apply functions before elements are moved, where they may fuse."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.editor import Editor
from nnef_hw.passes.views import is_image

__all__ = ["HoistFunctions"]

_RAISED_RANK = 3


@dataclass(frozen=True, slots=True)
class HoistFunctions:
    """Swap a ``reshape`` and the function of one activation that alone reads it.

    And a ``transpose``, or a ``depth_to_space`` with the ``slice`` behind it.

    Left alone: moves that others read too, those of graph inputs, of tensors that are not images,
    and of [1, C, L] tensors, where :class:`~nnef_hw.passes.RaiseRank` would put the reshape back.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            before = editor.emitted(editor.resolve(node.inputs[0])) if node.inputs else None
            if (
                not node.has(Trait.TABLE)
                or len(node.inputs) != 1
                or before is None
                or not _moves(editor, before)
                or before.inputs[0] in graph.inputs
                or not is_image(editor.shape(before.inputs[0]))
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
                replace(before, inputs=(inner,), outputs=(node.name,)),
            )
        return editor.finish()


def _moves(editor: Editor, node: Node) -> bool:
    if node.op == "slice":
        before = editor.emitted(node.inputs[0])
        return before is not None and before.op in {"depth_to_space", "slice"}
    return node.has(Trait.REARRANGES)
