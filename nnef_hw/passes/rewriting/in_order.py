"""Operators that may be computed on their elements in order, whatever the axes are called."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nnef_hw.ir import Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.views import View

__all__ = ["emit_in_order", "outer_axes"]

Shape = tuple[int, ...]


def outer_axes(node: Node, operands: list[Shape], result: Shape) -> int | None:
    """Return how many axes are outside of what such an operator takes in a row.

    ``concat``, ``slice`` and ``pad`` along one axis take that and those behind it; functions, and
    arithmetic of equal shapes, take all. None for other operators.
    """
    if node.op == "concat":
        return int(node.attrs["axis"])
    if node.op == "slice" and len(node.attrs["axes"]) == 1 and node.attrs.get("stride") == [1]:
        return int(node.attrs["axes"][0])
    if node.op == "pad" and node.attrs.get("border", "constant") == "constant":
        padded = [axis for axis, pair in enumerate(node.attrs["padding"]) if any(pair)]
        return padded[0] if len(padded) == 1 else None
    if node.has(Trait.TABLE) or node.has(Trait.ARITHMETIC):
        return 0 if set(operands) == {result} else None
    return None


def emit_in_order(editor: Editor, node: Node, outer: int) -> None:
    """Emit a node on images: the pixels are its outer axes, the channels all others."""
    result = _view(editor.shape(node.name), outer)
    like = editor.tensors[node.name]
    image = editor.activation(f"{node.name}_in_order", result.shape, like)
    inputs = tuple(
        _view(editor.shape(name), outer).enter(editor, node, name, f"{node.name}_operand")
        for name in node.inputs
    )
    inner = prod(editor.shape(node.name)[outer + 1 :])
    new = replace(_along_channels(node, inner, len(result.shape)), inputs=inputs, outputs=(image,))
    editor.emit(new)
    result.leave(editor, node, image, node.name)


def _view(shape: Shape, outer: int) -> View:
    """Return the view whose stream has the elements in their order, the last axes as channels."""
    pixels = prod(shape[:outer])
    if pixels == 1:
        return View(tuple(range(len(shape))), (1, prod(shape)))
    axes = (*range(outer, len(shape)), *range(outer))
    return View(axes, (1, prod(shape[outer:]), pixels, 1))


def _along_channels(node: Node, inner: int, rank: int) -> Node:
    """Return a node with the attributes that it has in its view."""
    if node.op == "concat":
        return node.with_attrs(axis=1)
    if node.op == "slice":
        begin, end = (node.attrs[key][0] * inner for key in ("begin", "end"))
        return node.with_attrs(axes=[1], begin=[begin], end=[end])
    if node.op == "pad":
        [(before, behind)] = [pair for pair in node.attrs["padding"] if any(pair)]
        padding = [(0, 0), (before * inner, behind * inner)] + [(0, 0)] * (rank - 2)
        return node.with_attrs(padding=padding)
    return node
