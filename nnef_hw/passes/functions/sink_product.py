"""Compute arithmetic with constants on the image that a product of two activations gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.functions.lower_elementwise import LowerElementwise
from nnef_hw.passes.fusing.scale_contraction import ScaleContraction, product_before
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["SinkProduct"]


@dataclass(frozen=True, slots=True)
class SinkProduct(Pass):
    """Swap arithmetic of a ``contraction`` and a constant with the moves between them.

    * behind a ``contraction`` that nobody else reads, and moves of it -> the same of its result and
      the constant, moved back; then the moves. So a mask is added as scores come.

    Left alone: one number, which is the same wherever it is added; what no move is in front of.
    """

    after: ClassVar[Reasons] = {
        ScaleContraction: (
            "A scale between a product and a mask is folded first; nothing is between them then."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerElementwise: (
            "LowerElementwise chooses an image for a mask by its constant alone, which the scores "
            "then have to be brought into."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            moves = _moves(editor, node)
            if moves:
                _emit(editor, node, moves)
            else:
                editor.keep(node)
        return editor.finish()


def _moves(editor: Editor, node: Node) -> list[Node]:
    """Return the moves behind the contraction that a node with a constant computes of."""
    if not node.has(Trait.ARITHMETIC) and node.op != "div":
        return []
    constants = [data for name in node.inputs if (data := editor.data(name)) is not None]
    computed = [name for name in node.inputs if editor.data(name) is None]
    if len(computed) != 1 or len(constants) != 1 or constants[0].size == 1:
        return []
    [source] = computed
    if editor.shape(source) != editor.shape(node.name):
        return []
    return product_before(editor, source)[1:]


def _emit(editor: Editor, node: Node, moves: list[Node]) -> None:
    """Emit the node on the contraction's result, and the moves behind it."""
    for move in moves:
        editor.drop(move)
    image = moves[0].inputs[0]
    shape, like = editor.shape(image), editor.tensors[node.name]

    def moved_back(data: NDArray[np.generic]) -> NDArray[np.generic]:
        whole = editor.shape(node.name)
        aligned = data.reshape(data.shape + (1,) * (len(whole) - data.ndim))
        found = np.broadcast_to(aligned, whole)
        for move in reversed(moves):
            if move.op == "transpose":
                found = found.transpose(np.argsort(move.attrs["axes"]))
            else:
                found = found.reshape(editor.shape(move.inputs[0]))
        return found

    inputs = []
    for name in node.inputs:
        if editor.data(name) is None:
            inputs.append(image)
        else:
            constant = editor.tensors[editor.resolve(name)]
            inputs.append(editor.rearranged(f"{node.name}_constant", constant, moved_back))
    source = editor.activation(f"{node.name}_image", shape, like)
    editor.emit(replace(node, inputs=tuple(inputs), outputs=(source,)))
    for n, move in enumerate(moves, start=1):
        result = node.name
        if n < len(moves):
            result = editor.activation(f"{node.name}_moved", editor.shape(move.name), like)
        editor.emit(replace(move, inputs=(source,), outputs=(result,)))
        source = result
