"""Compute functions and arithmetic on images, with constants that vary from channel to channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_axes import LowerAxes
from nnef_hw.passes.forms.lower_broadcast import LowerBroadcast
from nnef_hw.passes.forms.lower_matmul import LowerMatmul
from nnef_hw.passes.forms.lower_scatter import LowerScatter
from nnef_hw.passes.rewriting.editor import Editor, channel_values
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import View, channels_first, is_image, reshaped
from nnef_hw.passes.structure.lower_rank import LowerRank

__all__ = ["LowerElementwise"]


@dataclass(frozen=True, slots=True)
class LowerElementwise(Pass):
    """Rewrite functions and arithmetic that no layer computes as they are.

    * a constant that repeats itself along an axis -> one without
    * arithmetic of the image that a layer computes and a constant that varies within a channel ->
      the same with a constant for each element; a quotient becomes a product
    * arithmetic of such an image whose channels a transpose has moved, and such a constant -> the
      same in front of the transpose
    * other operands that are not images, or such a constant -> the same operator between reshapes
      or transposes, on an image whose channels the constant varies along

    Left alone: operands of different shapes.
    """

    after: ClassVar[Reasons] = {
        LowerAxes: (
            "Arithmetic behind an operator along an axis meets the transpose of its result; "
            "LowerElementwise would put others around."
        ),
        LowerBroadcast: (
            "Arithmetic of two constants is computed once the smaller one is repeated; "
            "LowerElementwise would make a layer of it."
        ),
        LowerMatmul: (
            "A number for each column is added to the layer's result of two axes, not to an "
            "image of the product."
        ),
        LowerScatter: (
            "A constant that LowerScatter merges new elements with is a scale or an offset; a "
            "round later RaiseRank has made an image of it."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerRank: (
            "An operator of more than four axes becomes one of an image; LowerRank would put "
            "all its elements into one pixel."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if not node.has(Trait.ELEMENTWISE) or not _has_one_shape(editor, node):
                editor.keep(node)
                continue
            if _is_of_a_layer(editor, node):
                _emit_whole(editor, node)
                continue
            if (move := _move_of_a_layer(editor, node)) is not None:
                _emit_before(editor, node, move)
                continue
            node = _compacted(editor, node)
            view = next(_views(editor, node), None)
            if view is None:
                editor.keep(node)
            else:
                _emit(editor, node, view)
        return editor.finish()


def _has_one_shape(editor: Editor, node: Node) -> bool:
    shapes = {editor.shape(name) for name in node.inputs if editor.data(name) is None}
    return shapes == {editor.shape(node.name)}


def _is_of_a_layer(editor: Editor, node: Node) -> bool:
    """Whether a constant varies within the channels of an image that comes from a layer."""
    sources, arrays = _operands(editor, node)
    is_divided = node.op == "div" and sources[:1] == [node.inputs[0]]
    return (
        (node.has(Trait.ARITHMETIC) or is_divided)
        and len(sources) == len(arrays) == 1
        and _varies_within_channels(arrays[0], editor.shape(node.name))
        and _comes_from_a_layer(editor, sources[0])
    )


def _move_of_a_layer(editor: Editor, node: Node) -> Node | None:
    """Return the transpose of such an image that is an operand of arithmetic with a constant."""
    sources, arrays = _operands(editor, node)
    if not node.has(Trait.ARITHMETIC) or not len(sources) == len(arrays) == 1:
        return None
    move = editor.emitted(editor.resolve(sources[0]))
    if move is None or move.op != "transpose":
        return None
    [source], shape = move.inputs, editor.shape(node.name)
    constant = _compact(_before(_whole(arrays[0], shape), move=move))
    is_found = _varies_within_channels(constant, editor.shape(source))
    return move if is_found and _comes_from_a_layer(editor, source) else None


def _operands(editor: Editor, node: Node) -> tuple[list[str], list[Array]]:
    """Return the names of what is computed, and the constants, as small as they can be."""
    sources = [name for name in node.inputs if editor.data(name) is None]
    arrays = [_compact(data) for name in node.inputs if (data := editor.data(name)) is not None]
    return sources, arrays


def _varies_within_channels(constant: Array, shape: tuple[int, ...]) -> bool:
    return is_image(shape) and channel_values(constant, shape) is None


def _comes_from_a_layer(editor: Editor, source: str) -> bool:
    """Whether layers alone compute a tensor, and functions and arithmetic of what they do.

    Behind a move, the same operator on what was moved takes less: moves that undo each other
    cost nothing.
    """
    if editor.emitted(editor.resolve(source)) is None:
        return False
    pending, seen = [source], {source}
    while pending:
        node = editor.emitted(editor.resolve(pending.pop()))
        if node is not None and node.has(Trait.MOVES) and not _keeps_extents(editor, node):
            return False
        if node is not None and (node.has(Trait.ELEMENTWISE) or node.has(Trait.MOVES)):
            new = {name for name in node.inputs if editor.data(name) is None} - seen
            pending += sorted(new)
            seen |= new
    return True


def _keeps_extents(editor: Editor, node: Node) -> bool:
    """Whether a move leaves channels as they are, and the order of pixels."""
    before, after = (editor.shape(name) for name in (node.inputs[0], node.name))
    return node.has(Trait.RESHAPES) and before[:2] == after[:2]


def _emit_whole(editor: Editor, node: Node) -> None:
    """Emit arithmetic with a constant of the shape of the image."""
    shape, inputs = editor.shape(node.name), []
    is_whole = node.op != "div"
    for name in node.inputs:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is not None and node.op == "div":
            with np.errstate(divide="ignore"):
                inverse = 1.0 / _whole(tensor.data.astype(np.float64), shape)
            name = editor.constant(f"{tensor.name}_inverse", inverse)
        elif tensor.data is not None and tensor.shape != shape:
            name = editor.rearranged(f"{tensor.name}_whole", tensor, partial(_whole, shape=shape))
            is_whole = False
        inputs.append(name)
    if is_whole:
        editor.keep(node)
    else:
        op = "mul" if node.op == "div" else node.op
        editor.emit(replace(node, op=op, inputs=tuple(inputs)))


def _emit_before(editor: Editor, node: Node, move: Node) -> None:
    """Emit arithmetic of what a transpose moves, and the transpose behind."""
    shape, inputs = editor.shape(node.name), []
    for name in node.inputs:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is None:
            inputs.append(move.inputs[0])
        else:
            function = partial(_moved, move=move, shape=shape)
            inputs.append(editor.rearranged(f"{tensor.name}_before", tensor, function))
    before = editor.shape(move.inputs[0])
    result = editor.activation(f"{node.name}_before", before, editor.tensors[node.name])
    editor.emit(replace(node, inputs=tuple(inputs), outputs=(result,)))
    editor.emit(Node("transpose", (result,), node.outputs, move.attrs, node.location))


def _moved(data: Array, *, move: Node, shape: tuple[int, ...]) -> Array:
    return _before(_whole(data, shape), move=move)


def _before(data: Array, *, move: Node) -> Array:
    """Return a constant in the order that a transpose moves to that of the constant."""
    return data.transpose(np.argsort(move.attrs["axes"]))


def _whole(data: Array, shape: tuple[int, ...]) -> Array:
    """Return a constant in the shape of the result: NNEF broadcasts from the left."""
    return np.broadcast_to(data.reshape(data.shape + (1,) * (len(shape) - data.ndim)), shape)


def _compact(data: Array) -> Array:
    """Return a constant with an extent of 1 along the axes on which it repeats itself."""
    for axis in range(data.ndim):
        first = data.take([0], axis)
        if (data == first).all():
            data = first
    return data


def _compacted(editor: Editor, node: Node) -> Node:
    """Return the node with constants as small as they can be."""
    inputs = []
    for name in node.inputs:
        data = editor.data(name)
        small = _compact(data) if data is not None else None
        if data is not None and small is not None and small.size < data.size:
            like = editor.tensors[editor.resolve(name)]
            if like.quant is None:
                name = editor.constant(f"{like.name}_once", small, like)
                editor.changed = True
        inputs.append(name)
    return replace(node, inputs=tuple(inputs))


def _views(editor: Editor, node: Node) -> Iterator[View]:
    """Yield images to compute on, the best first; nothing if the node can stay as it is."""
    shape = editor.shape(node.name)
    arrays = [data for name in node.inputs if (data := editor.data(name)) is not None]
    if is_image(shape) and all(channel_values(data, shape) is not None for data in arrays):
        return
    constants = [_whole(data, shape) for data in arrays]
    varying: set[int] = set()
    for data in constants:
        varying.update(axis for axis, n in enumerate(_compact(data).shape) if n > 1)
    candidates = [reshaped(shape, image) for image in _shapes_before(editor, node)]
    core = tuple(n for n in shape if n > 1)
    if len(core) < 4:
        candidates.append(reshaped(shape, (1, *core) if core else (1, 1)))
    candidates += [channels_first(shape, varying), reshaped(shape, (1, prod(shape)))]
    yield from (view for view in candidates if is_image(view.shape) and _fits(view, constants))


def _shapes_before(editor: Editor, node: Node) -> Iterator[tuple[int, ...]]:
    """Yield shapes that operands had before they were reshaped."""
    for name in node.inputs:
        before = editor.emitted(editor.resolve(name))
        if before is not None and before.op == "reshape":
            yield editor.shape(before.inputs[0])


def _fits(view: View, constants: list[Array]) -> bool:
    seen = (_compact(view.array(data)) for data in constants)
    return all(channel_values(data, view.shape) is not None for data in seen)


def _emit(editor: Editor, node: Node, view: View) -> None:
    shape, inputs = editor.shape(node.name), []
    for name in node.inputs:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is None:
            inputs.append(view.enter(editor, node, name, f"{node.name}_image"))
        else:
            function = partial(_seen, view=view, shape=shape)
            inputs.append(editor.rearranged(f"{tensor.name}_channels", tensor, function))
    image = editor.activation(f"{node.name}_result", view.shape, editor.tensors[node.name])
    editor.emit(replace(node, inputs=tuple(inputs), outputs=(image,)))
    view.leave(editor, node, image, node.name)


def _seen(data: Array, *, view: View, shape: tuple[int, ...]) -> Array:
    return _compact(view.array(_whole(data, shape)))
