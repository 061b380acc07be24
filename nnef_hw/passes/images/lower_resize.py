"""Turn resizing into operators of the standard that do the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import Fields
from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_gather import MOST_PARTS
from nnef_hw.passes.images.interpolated_codes import (
    are_codes,
    interpolate_node,
    why_not_interpolated,
)
from nnef_hw.passes.rewriting.along_axis import emit_along_axis
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.passes.rewriting.views import View, is_image
from nnef_hw.reference.real.registry import Evaluation, evaluate

__all__ = ["LowerResize"]

_PLANE = 2
"""Axes that rows and columns are."""


@dataclass(frozen=True, slots=True)
class LowerResize(Pass):
    """Rewrite ``resize`` of rows and columns.

    * by whole factors -> a ``nearest_upsample``, ``nearest_downsample``, ``area_downsample`` or
      ``multilinear_upsample`` that computes the same from noise, whatever its coordinates and
      rounding are called
    * that takes elements as they are -> a ``gather`` along each axis, if that has few parts
    * others -> a ``conv`` of 1x1 along each axis, whose channels are the places on it

    * of other axes -> the same of an image whose rows and columns they are; of more than two axes
      -> one of the first two, then one of the others
    * between codes that TensorFlow Lite computes -> an ``interpolate``

    Left alone: codes that no hardware computes as TensorFlow Lite does.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op != "resize" or editor.data(node.inputs[0]) is not None:
                editor.keep(node)
            elif not _is_spatial(editor, node):
                _emit_image(editor, node)
            elif node.attrs["interpolation"] == "linear" and are_codes(editor, node):
                _lower_codes(editor, node)
            elif (new := _equivalent(editor, node)) is not None:
                editor.emit(new)
            else:
                _emit_axes(editor, node)
        return editor.finish()


def _lower_codes(editor: Editor, node: Node) -> None:
    quant, source = editor.tensors[node.name].quant, editor.shape(node.inputs[0])
    if why_not_interpolated(node, source, quant) is None:
        editor.emit(interpolate_node(node))
    else:
        editor.keep(node)


def _is_spatial(editor: Editor, node: Node) -> bool:
    source = editor.shape(node.inputs[0])
    return is_image(source) and len(source) > 2 and all(n > 1 for n in _resized(editor, node))


def _resized(editor: Editor, node: Node) -> list[int]:
    """Return the axes that do not stay as they are."""
    extents = zip(editor.shape(node.inputs[0]), editor.shape(node.name), strict=True)
    scales = node.attrs["scale"]
    return [n for n, (x, y) in enumerate(extents) if x != y or scales[n] != 1]


def _emit_image(editor: Editor, node: Node) -> None:
    """Emit a resize of rows and columns, which are the axes that do not stay as they are."""
    axes, like = _resized(editor, node), editor.tensors[node.name]
    before, source = editor.shape(node.inputs[0]), node.inputs[0]
    if len(axes) > _PLANE:
        first = axes[:_PLANE]
        shape = tuple(n if axis in first else before[axis] for axis, n in enumerate(like.shape))
        inner = editor.activation(f"{node.name}_plane", shape, like)
        scale = [s if axis in first else 1.0 for axis, s in enumerate(node.attrs["scale"])]
        part = replace(node, outputs=(inner,)).with_attrs(size=list(shape), scale=scale)
        scale = [1.0 if axis in first else s for axis, s in enumerate(node.attrs["scale"])]
        editor.emit(part, replace(node, inputs=(inner,)).with_attrs(scale=scale))
        return
    if not axes:
        editor.emit(Node("copy", (source,), node.outputs, {}, node.location))
        return
    kept = [axis for axis in range(len(before)) if axis not in axes]
    order = (*kept, *axes)
    depth = prod(before[axis] for axis in kept)
    view = View(order, (1, depth, *(before[axis] for axis in axes)))
    image = view.enter(editor, node, source, f"{node.name}_image")
    size = [1, depth, *(like.shape[axis] for axis in axes)]
    scale = [1.0, 1.0, *(node.attrs["scale"][axis] for axis in axes)]
    resized = editor.activation(f"{node.name}_resized", tuple(size), like)
    new = replace(node, inputs=(image,), outputs=(resized,)).with_attrs(size=size, scale=scale)
    editor.emit(new)
    view.leave(editor, node, resized, node.name)


def _emit_axes(editor: Editor, node: Node) -> None:
    """Emit what happens along each axis."""
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = list(editor.shape(source))
    changed = [
        (axis, weights)
        for axis in range(2, len(shape))
        if not np.array_equal(weights := _weights(node, axis, shape[axis]), np.eye(shape[axis]))
    ]
    for axis, weights in changed:
        shape[axis] = len(weights)
        result = node.name if axis == changed[-1][0] else ""
        index = weights.argmax(axis=1)
        is_chosen = np.array_equal(weights, np.eye(weights.shape[1])[index])
        if is_chosen and np.count_nonzero(np.diff(index) != 1) < MOST_PARTS:
            result = result or editor.activation(f"{node.name}_axis{axis}", tuple(shape), like)
            places = editor.constant(f"{result}_places", index)
            editor.tensors[places] = replace(editor.tensors[places], dtype="integer")
            inputs = (source, places)
            editor.emit(Node("gather", inputs, (result,), {"axis": axis}, node.location))
            source = result
        else:
            source = emit_along_axis(editor, node, source, axis, weights, result)
    if not changed:
        editor.emit(Node("copy", (source,), node.outputs, {}, node.location))


def _weights(node: Node, axis: int, extent: int) -> NDArray[np.float64]:
    """Return the weight of each element in each result along an axis: [results, elements]."""
    rank = len(node.attrs["size"])
    size = [extent, *[1] * (rank - 1)]
    unit = np.eye(extent).reshape(extent, *(extent if n == axis else 1 for n in range(1, rank)))
    size[axis] = node.attrs["size"][axis]
    scale = [node.attrs["scale"][n] if n == axis else 1.0 for n in range(rank)]
    found = _evaluate(node.with_attrs(size=size, scale=scale), unit, size)
    weights: NDArray[np.float64] = found.reshape(extent, -1).T
    return weights


def _equivalent(editor: Editor, node: Node) -> Node | None:
    source, result = editor.shape(node.inputs[0]), editor.shape(node.name)
    probe = np.random.default_rng(0).normal(size=(1, 1, *source[2:]))
    size = [1, 1, *result[2:]]
    wanted = _evaluate(node.with_attrs(size=size), probe, size)
    for op, attrs in _candidates(source[2:], result[2:]):
        other = Node(op, node.inputs, node.outputs, attrs, node.location)
        if np.allclose(_evaluate(other, probe, size), wanted, rtol=0, atol=1e-9):
            return other
    return None


def _evaluate(node: Node, x: NDArray[np.float64], shape: list[int]) -> Array:
    return evaluate(Evaluation(node, (x,), (tuple(shape),)))[0]


def _candidates(source: tuple[int, ...], result: tuple[int, ...]) -> Iterator[tuple[str, Fields]]:
    """Yield operators and attributes whose result has the right extents."""
    pairs = list(zip(source, result, strict=True))
    if all(after % before == 0 for before, after in pairs):
        factor = [after // before for before, after in pairs]
        yield "nearest_upsample", {"factor": factor}
        for method in ("symmetric", "asymmetric", "aligned"):
            attrs = {"factor": factor, "method": method, "border": "replicate"}
            yield "multilinear_upsample", attrs
    elif all(before % after == 0 for before, after in pairs):
        factor = [before // after for before, after in pairs]
        yield "nearest_downsample", {"factor": factor}
        yield "area_downsample", {"factor": factor}
