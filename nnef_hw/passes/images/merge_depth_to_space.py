"""Find depth to space in the transposes that express it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["MergeDepthToSpace"]

_PHASES_FIRST = [0, 3, 4, 1, 5, 2]
_CHANNELS_FIRST = [0, 1, 4, 2, 5, 3]


@dataclass(frozen=True, slots=True)
class MergeDepthToSpace(Pass):
    """Rewrite a ``transpose`` of six axes that moves phases to rows and columns.

    * [1, y, x, C, H, W] to [1, C, H, y, W, x] -> ``depth_to_space`` between reshapes
    * [1, C, y, x, H, W] to the same, as PyTorch's PixelShuffle has it, behind a ``conv`` that
      nobody else reads -> the same, with the channels of the ``conv`` in the other order

    The reshapes merge with those of the model. Left alone: other transposes.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            axes = list(node.attrs["axes"]) if node.op == "transpose" else []
            shape = editor.shape(node.inputs[0]) if axes else ()
            if axes in (_PHASES_FIRST, _CHANNELS_FIRST) and shape[0] == 1:
                source = node.inputs[0]
                if axes == _CHANNELS_FIRST:
                    source = _reordered(editor, node) or ""
                if source:
                    _emit(editor, node, source)
                    continue
            editor.keep(node)
        return editor.finish()


def _emit(editor: Editor, node: Node, source: str) -> None:
    _, channels, height, rows, width, columns = editor.shape(node.name)
    like = editor.tensors[node.name]
    deep, image = f"{node.name}_channels", f"{node.name}_image"
    shape = (1, rows * columns * channels, height, width)
    deep = editor.activation(deep, shape, like)
    image = editor.activation(image, (1, channels, height * rows, width * columns), like)
    editor.emit(
        reshape_node(source, deep, shape, node),
        Node("depth_to_space", (deep,), (image,), {"factor": [rows, columns]}, node.location),
        reshape_node(image, node.name, like.shape, node),
    )


def _reordered(editor: Editor, node: Node) -> str | None:
    """Reorder the channels of the convolution in front of a transpose; None if it cannot be."""
    before = editor.emitted(editor.resolve(node.inputs[0]))
    if before is None or before.op != "reshape" or not editor.has_one_use(node.inputs[0]):
        return None
    conv = editor.emitted(before.inputs[0])
    _, channels, rows, columns, *_ = editor.shape(node.inputs[0])
    if (
        conv is None
        or conv.op != "conv"
        or not editor.has_one_use(conv.name)
        or editor.shape(conv.name)[1] != channels * rows * columns
        or any(editor.data(name) is None for name in conv.inputs[1:])
        or editor.shape(conv.inputs[2])[-1:] != (channels * rows * columns,)
    ):
        return None
    order = np.arange(channels * rows * columns).reshape(channels, -1).T.reshape(-1)

    def reorder(axis: int, name: str) -> str:
        def take(array: NDArray[np.float64]) -> NDArray[np.float64]:
            return array.take(order, axis=axis)

        like = editor.tensors[editor.resolve(name)]
        return editor.rearranged(f"{like.name}_by_phase", like, take)

    weights, bias = reorder(0, conv.inputs[1]), reorder(-1, conv.inputs[2])
    editor.drop(conv)
    editor.drop(before)
    result = editor.activation(f"{conv.name}_by_phase", editor.shape(conv.name),
                               editor.tensors[conv.name])  # fmt: skip
    editor.emit(replace(conv, inputs=(conv.inputs[0], weights, bias), outputs=(result,)))
    return result
