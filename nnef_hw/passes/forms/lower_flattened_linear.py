"""Let linear layers read images directly, without a flatten."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.ir.activation import activation_attrs
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["LowerFlattenedLinear"]

_RANK = 4
_OF_FIXED = ("requant",)
"""Attributes that a fixed graph has besides."""


@dataclass(frozen=True, slots=True)
class LowerFlattenedLinear(Pass):
    """Let a ``linear`` behind a flatten read its operand in the order in which that streams.

    * behind a ``reshape`` of a computed image [1, C, H, W] with H * W > 1 to [1, C*H*W]: a ``conv``
      whose filter [O, C, H, W] covers the whole image, and a ``reshape`` of its result
      [1, O, 1, 1] to [1, O]. Pixels then arrive in any order the image has. A ``linear`` of
      them in the order of the stream would take as many cycles, and a hundredth more of the
      engine, in whose memory pixels are whole words. An image of one channel is in that order
      already: there the ``linear`` stays.
    * behind the same of an input of the graph that nothing else reads, in any order: the ``linear``
      stays, of elements in the order of the input, which the host sends as one pixel. So does a
      ``conv`` whose filter covers a whole such input: it becomes a ``linear``.

    A ``transpose`` in front of the flatten becomes one of the filter.
    Left alone: every other ``linear`` and ``conv``.

    Parameters
    ----------
    images
        Tensors that stream as images, whoever reads them: states, and windows whose rows come one
        after the other in time.
    """

    images: Collection[str] = ()

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "linear" and editor.data(node.inputs[1]) is not None:
                self._read(editor, node)
            elif node.op == "conv" and self._covers_input(editor, node):
                _emit_linear(editor, node)
            else:
                editor.keep(node)
        return editor.finish()

    def _read(self, editor: Editor, node: Node) -> None:
        """Emit a ``linear`` that reads its operand as it streams."""
        image = _flattened(editor, node.inputs[0])
        source = self._sole_input(editor, node.inputs[0])
        if source is not None:
            _emit_in_order(editor, node, source)
        elif image is not None and self._is_window(image, editor.shape(image)):
            _emit_conv(editor, node, image)
        else:
            editor.keep(node)

    def _is_window(self, image: str, shape: tuple[int, ...]) -> bool:
        """Whether a layer of all elements of an image reads it as one."""
        return shape[2:] != (1, 1) and (shape[1] > 1 or image in self.images)

    def _covers_input(self, editor: Editor, node: Node) -> bool:
        """Whether a ``conv`` makes one pixel of all elements of an input that it alone reads.

        TensorFlow Lite rounds sums of a ``conv`` in another way: its are left alone.
        """
        shape, weights = editor.shape(node.inputs[0]), editor.data(node.inputs[1])
        if (
            weights is None
            or weights.shape[1:] != shape[1:]
            or any(map(any, node.attrs["padding"]))
        ):
            return False
        is_input = self._sole_input(editor, node.inputs[0]) == node.inputs[0]
        return is_input and editor.graph.rounding != "tflite"

    def _sole_input(self, editor: Editor, name: str) -> str | None:
        """Return the input of the graph, of several pixels, all of whose readers read a tensor."""
        names = [name, *(node.inputs[0] for node in _moves(editor, name))]
        source, shape = names[-1], editor.shape(names[-1])
        if source not in editor.graph.inputs or source in self.images:
            return None
        is_sole = all(map(editor.has_one_use, names))
        return source if is_sole and shape[0] == 1 and prod(shape[2:]) > 1 else None


def _emit_conv(editor: Editor, node: Node, image: str) -> None:
    """Emit a ``conv`` of a whole image in place of a ``linear`` of its elements."""
    shape = editor.shape(image)
    like, outputs = editor.tensors[node.inputs[1]], editor.shape(node.name)[1]
    function = partial(_filter, shape=shape, order=_order(editor, image, node.inputs[0]))
    kernel = editor.rearranged(f"{like.name}_image", like, function)
    attrs: dict[str, object] = {
        "border": "constant",
        "padding": [(0, 0), (0, 0)],
        "stride": [1, 1],
        "dilation": [1, 1],
        "groups": 1,
        **activation_attrs(node),
        **{key: node.attrs[key] for key in _OF_FIXED if key in node.attrs},
    }
    if editor.graph.rounding == "tflite" and "is_product" not in node.attrs:
        attrs["is_linear"] = True  # which it rounds once
    editor.tensors[kernel] = replace(editor.tensors[kernel], qtype=like.qtype)
    like = editor.tensors[node.name]
    result = editor.activation(f"{node.name}_conv", (1, outputs, 1, 1), like)
    editor.tensors[result] = replace(editor.tensors[result], qtype=like.qtype)
    inputs = (image, kernel, node.inputs[2])
    editor.emit(
        Node("conv", inputs, (result,), attrs, node.location),
        reshape_node(result, node.name, (1, outputs), node),
    )


def _emit_in_order(editor: Editor, node: Node, source: str) -> None:
    """Emit a ``linear`` of the elements of an input in their order."""
    order, shape = _order(editor, source, node.inputs[0]), editor.shape(node.inputs[0])
    moves = _moves(editor, node.inputs[0])
    if all(move.op == "reshape" for move in moves):
        editor.keep(node)
        return
    like = editor.tensors[node.inputs[1]]
    row = editor.activation(f"{node.name}_row", shape, editor.tensors[source])
    columns = editor.rearranged(
        f"{like.name}_row", like, partial(_filter, shape=shape, order=order)
    )
    editor.emit(
        reshape_node(source, row, shape, node),
        replace(node, inputs=(row, columns, node.inputs[2])),
    )


def _emit_linear(editor: Editor, node: Node) -> None:
    """Emit a ``linear`` in place of a ``conv`` whose filter covers a whole input."""
    outputs = editor.shape(node.name)[1]
    row = (1, prod(editor.shape(node.inputs[0])))
    like = editor.tensors[node.inputs[1]]
    source = editor.activation(f"{node.name}_row", row, editor.tensors[node.inputs[0]])
    columns = editor.rearranged(f"{like.name}_row", like, partial(_filter, shape=row))
    result = editor.activation(f"{node.name}_linear", (1, outputs), editor.tensors[node.name])
    editor.emit(
        reshape_node(node.inputs[0], source, row, node),
        Node(
            "linear",
            (source, columns, node.inputs[2]),
            (result,),
            activation_attrs(node),
            node.location,
        ),
        reshape_node(result, node.name, editor.shape(node.name), node),
    )


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
    array: Array, *, shape: tuple[int, ...], order: NDArray[np.int64] | None = None
) -> Array:
    columns = array if order is None else array[:, np.argsort(order)]
    return columns.reshape(len(array), *shape[1:])
