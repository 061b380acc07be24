"""Apply functions before elements are moved, where they may fuse."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.fusing.fold_affine import FoldAffine
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import is_image

__all__ = ["HoistFunctions"]

_RAISED_RANK = 3
_IMAGE_RANK = 4


@dataclass(frozen=True, slots=True)
class HoistFunctions(Pass):
    """Swap a ``reshape`` and the function of one activation that alone reads it.

    And a ``transpose``, a ``depth_to_space`` with the ``slice`` behind it, or several of these in
    a row, of which the first one moves an image.

    Left alone: moves that others read too, those of graph inputs, of tensors that are not images
    (those of more than four axes may be a :class:`.MergeDepthToSpace`'s), and of
    [1, C, L] tensors, where :class:`.RaiseRank` would put the reshape back.
    """

    before: ClassVar[Reasons] = {
        FoldAffine: (
            "A function moves over the reshape in front of it before FoldAffine adds reshapes "
            "around a layer."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            moves = _moves_before(editor, node)
            if not moves:
                editor.keep(node)
                continue
            source = moves[0].inputs[0]
            like = editor.tensors[node.name]
            last = editor.activation(f"{node.name}_image", editor.shape(source), like)
            editor.emit(Node(node.op, (source,), (last,), node.attrs, node.location))
            for move in moves:
                editor.drop(move)
                is_last = move is moves[-1]
                hint, shape = f"{node.name}_moved", editor.shape(move.name)
                result = node.name if is_last else editor.activation(hint, shape, like)
                editor.emit(replace(move, inputs=(last, *move.inputs[1:]), outputs=(result,)))
                last = result
        return editor.finish()


def _moves_before(editor: Editor, node: Node) -> list[Node]:
    """Return the moves that a function may go in front of, the first one first."""
    if not node.has(Trait.TABLE) or len(node.inputs) != 1:
        return []
    moves: list[Node] = []
    name = node.inputs[0]
    while (
        editor.has_one_use(name)
        and (before := editor.emitted(editor.resolve(name))) is not None
        and _moves(editor, before)
        and len(editor.shape(before.inputs[0])) <= _IMAGE_RANK
    ):
        moves.insert(0, before)
        name = before.inputs[0]
    while moves and not _is_image(editor, moves[0].inputs[0]):
        del moves[0]
    return moves


def _is_image(editor: Editor, name: str) -> bool:
    shape = editor.shape(name)
    return name not in editor.graph.inputs and is_image(shape) and len(shape) != _RAISED_RANK


def _moves(editor: Editor, node: Node) -> bool:
    if node.op == "slice":
        before = editor.emitted(node.inputs[0])
        return before is not None and before.op in {"depth_to_space", "slice"}
    return node.has(Trait.REARRANGES)
