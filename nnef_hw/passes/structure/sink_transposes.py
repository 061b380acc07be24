"""Compute before elements are moved, where all operands are moved alike."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.passes.rewriting.views import is_image

__all__ = ["SinkTransposes"]


@dataclass(frozen=True, slots=True)
class SinkTransposes(Pass):
    """Swap an operator and the equal ``transpose`` of each of its operands.

    Of arithmetic, functions and ``concat``, and of what computes a pixel of all of its channels, if
    these stay in place; :class:`.HoistArithmetic` is for what has reductions.

    Exporters of networks whose channels come last turn the image back behind every layer. Constants
    are turned, too. The result is transposed in place of the operands.

    Left alone: operands that broadcast or are not images; graph inputs, which the host moves; those
    that something else than these operators reads, too, so that no transpose would become needless;
    operators with a constant for each channel, which would then be along another axis.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            axes = _common_axes(editor, node)
            if axes is None:
                editor.keep(node)
                continue
            inputs = [_turned_back(editor, node, name, axes) for name in node.numbers]
            inputs += node.inputs[len(inputs) :]
            shape = editor.shape(node.name)
            inner_shape = tuple(shape[axis] for axis in np.argsort(axes))
            inner = editor.activation(f"{node.name}_image", inner_shape, editor.tensors[node.name])
            new = replace(node, inputs=tuple(inputs), outputs=(inner,))
            if node.op == "concat":
                new = new.with_attrs(axis=axes[node.attrs["axis"]])
            elif node.has(Trait.ALONG_CHANNELS):
                new = new.with_attrs(axes=[axes[axis] for axis in node.attrs["axes"]])
            turn = Node("transpose", (inner,), (node.name,), {"axes": axes}, node.location)
            editor.emit(new, turn)
        return editor.finish()


def _common_axes(editor: Editor, node: Node) -> list[int] | None:
    """Return how all activations that a node reads are transposed; None if they are not alike."""
    if not _is_movable(node):
        return None
    names = [name for name in node.numbers if editor.data(name) is None]
    before = [editor.emitted(editor.resolve(name)) for name in names]
    moves = [move for move in before if move is not None and move.op == "transpose"]
    if not moves or len(moves) != len(names):
        return None
    axes = list(moves[0].attrs["axes"])
    shape = editor.shape(node.name)
    alike = all(list(move.attrs["axes"]) == axes for move in moves)
    sources = [move.inputs[0] for move in moves]
    images = all(is_image(editor.shape(x)) and x not in editor.graph.inputs for x in sources)
    whole = not node.has(Trait.ARITHMETIC) or all(editor.shape(name) == shape for name in names)
    free = any(map(partial(_is_free, editor), names))
    constants = [data for name in node.inputs if (data := editor.data(name)) is not None]
    at_home = axes[1] != 1 and any(map(_is_of_channels, constants))
    stay = not node.has(Trait.ALONG_CHANNELS) or [axes[x] for x in node.attrs["axes"]] == [1]
    return axes if alike and images and whole and free and not at_home and stay else None


def _is_of_channels(data: Array) -> bool:
    """Whether a constant is a number for each of several channels."""
    return data.ndim > 1 and 1 < data.shape[1] == data.size


def _is_movable(node: Node) -> bool:
    traits = (Trait.ARITHMETIC, Trait.TABLE, Trait.ALONG_CHANNELS)
    return any(map(node.has, traits)) or node.op == "concat"


def _is_free(editor: Editor, name: str) -> bool:
    """Whether all that reads a tensor may come to read what it was before it was moved."""
    if name in editor.graph.outputs:
        return False
    return all(map(_is_movable, editor.graph.consumers(name)))


def _turned_back(editor: Editor, node: Node, name: str, axes: list[int]) -> str:
    """Return an operand as it is before the transpose."""
    data = editor.data(name)
    if data is None:
        move = editor.emitted(editor.resolve(name))
        assert move is not None
        return move.inputs[0]
    if data.size == 1:
        return name
    order = np.argsort(axes)

    def turn(array: NDArray[np.generic]) -> NDArray[np.generic]:
        return array.reshape(array.shape + (1,) * (len(axes) - array.ndim)).transpose(order)

    return editor.rearranged(f"{node.name}_turned", editor.tensors[editor.resolve(name)], turn)
