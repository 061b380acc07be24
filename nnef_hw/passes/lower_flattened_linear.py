"""Let linear layers read images directly, without a flatten."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.activation import activation_attrs
from nnef_hw.passes.editor import Editor, reshape_node

__all__ = ["LowerFlattenedLinear"]

_RANK = 4


@dataclass(frozen=True, slots=True)
class LowerFlattenedLinear:
    """Rewrite ``linear`` behind a ``reshape`` of [1, C, H, W] with H * W > 1 to [1, C*H*W].

    It becomes a ``conv`` whose filter [O, C, H, W] covers the whole image, and a ``reshape`` of
    its result [1, O, 1, 1] to [1, O]: pixels then arrive in any order the image has. A
    ``transpose`` in front of the flatten becomes one of the filter.
    Left alone: every other ``linear``.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op != "linear":
                editor.keep(node)
                continue
            weights, image = editor.data(node.inputs[1]), _flattened(editor, node.inputs[0])
            shape = editor.shape(image) if image else ()
            if weights is None or image is None or shape[2:] == (1, 1):
                editor.keep(node)
                continue
            like, outputs = editor.tensors[node.inputs[1]], len(weights)
            function = partial(_filter, shape=shape, order=_order(editor, image, node.inputs[0]))
            kernel = editor.rearranged(f"{like.name}_image", like, function)
            attrs: dict[str, Any] = {
                "border": "constant",
                "padding": [(0, 0), (0, 0)],
                "stride": [1, 1],
                "dilation": [1, 1],
                "groups": 1,
                **activation_attrs(node),
            }
            if graph.rounding == "tflite" and "is_product" not in node.attrs:
                attrs["is_linear"] = True  # which it rounds once
            like = editor.tensors[node.name]
            result = editor.activation(f"{node.name}_conv", (1, outputs, 1, 1), like)
            inputs = (image, kernel, node.inputs[2])
            editor.emit(
                Node("conv", inputs, (result,), attrs, node.location),
                reshape_node(result, node.name, (1, outputs), node),
            )
        return editor.finish()


def _moves(editor: Editor, name: str) -> list[Node]:
    """Return the reshapes and transposes before a tensor, the last one first."""
    moves = []
    node = editor.producer(name)
    while node is not None and node.has(Trait.MOVES):
        moves.append(node)
        node = editor.producer(node.inputs[0])
    return moves


def _flattened(editor: Editor, name: str) -> str | None:
    """Return the first image [1, C, H, W] in the moves that flatten it to a row, or None."""
    volume = prod(editor.shape(name))
    if editor.shape(name) != (1, volume):
        return None
    images = [
        node.inputs[0]
        for node in _moves(editor, name)
        if len(editor.shape(node.inputs[0])) == _RANK and editor.shape(node.inputs[0])[0] == 1
    ]
    return images[-1] if images else None


def _order(editor: Editor, image: str, row: str) -> NDArray[np.int64]:
    """Return the index in the image of each element of the row."""
    moves = _moves(editor, row)
    names = [node.inputs[0] for node in moves]
    elements = np.arange(prod(editor.shape(image))).reshape(editor.shape(image))
    for node in reversed(moves[: names.index(image) + 1]):
        if node.op == "transpose":
            elements = elements.transpose(node.attrs["axes"])
        elements = elements.reshape(editor.shape(node.name))
    return elements.reshape(-1)


def _filter(
    array: NDArray[Any], *, shape: tuple[int, ...], order: NDArray[np.int64]
) -> NDArray[Any]:
    return array[:, np.argsort(order)].reshape(len(array), *shape[1:])
