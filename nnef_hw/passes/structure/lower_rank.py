"""Compute tensors that are no images as images of the same elements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.in_order import emit_in_order, outer_axes
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import View, is_image, reshaped
from nnef_hw.passes.structure.raise_rank import RaiseRank

__all__ = ["LowerRank"]

Shape = tuple[int, ...]

_RANK = 4


@dataclass(frozen=True, slots=True)
class LowerRank(Pass):
    """Rewrite operators of tensors without a batch of 1, or with more than four axes.

    * ``pad`` of several axes -> one after the other
    * ``concat``, ``slice``, ``pad`` along any axis -> the same along channels, which are this axis
      and those behind it; what is outside are pixels
    * functions, and arithmetic of activations of equal shapes -> the same of one pixel
    * arithmetic of activations of other shapes -> the same of images, whose axes are those in a row
      along which the same operands are repeated

    Left alone: constant operands, and borders that continue the tensor.
    """

    before: ClassVar[Reasons] = {
        RaiseRank: (
            "An operator that can be one of channels, in order, is not given a fourth axis before."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            shapes = [editor.shape(name) for name in node.inputs]
            result = editor.shape(node.outputs[0])
            if all(map(is_image, (*shapes, result))) or not result:
                editor.keep(node)
            elif node.op == "pad" and sum(map(any, node.attrs["padding"])) > 1:
                _emit_axes(editor, node)
            else:
                is_computed = all(editor.data(name) is None for name in node.inputs)
                outer = outer_axes(node, shapes, result) if is_computed else None
                groups = _repeated_groups(node, shapes, result) if is_computed else None
                if outer is not None:
                    emit_in_order(editor, node, outer)
                elif groups is not None:
                    _emit_groups(editor, node, groups)
                else:
                    editor.keep(node)
        return editor.finish()


def _emit_axes(editor: Editor, node: Node) -> None:
    """Emit a pad of each axis."""
    source, like = node.inputs[0], editor.tensors[node.name]
    padding = [tuple(pair) for pair in node.attrs["padding"]]
    shape = list(editor.shape(source))
    axes = [axis for axis, pair in enumerate(padding) if any(pair)]
    for axis in axes:
        shape[axis] += sum(padding[axis])
        last = axis == axes[-1]
        name = node.name if last else editor.activation(f"{node.name}_axis{axis}", (*shape,), like)
        pairs = [pair if n == axis else (0, 0) for n, pair in enumerate(padding)]
        editor.emit(
            Node("pad", (source,), (name,), {**node.attrs, "padding": pairs}, node.location)
        )
        source = name


def _repeated_groups(node: Node, operands: list[Shape], result: Shape) -> list[int] | None:
    """Return where groups of axes begin along which the same operands are repeated.

    None if it is no arithmetic, or of more groups than images have axes.
    """
    if not node.has(Trait.ARITHMETIC):
        return None
    extents = [(*shape, *[1] * (len(result) - len(shape))) for shape in operands]
    patterns = [
        tuple(shape[axis] != extent for shape in extents)
        for axis, extent in enumerate(result)
        if extent > 1
    ]
    axes = [axis for axis, extent in enumerate(result) if extent > 1]
    begins = [axis for n, axis in enumerate(axes) if n == 0 or patterns[n] != patterns[n - 1]]
    return begins if 0 < len(begins) < _RANK else None


def _emit_groups(editor: Editor, node: Node, begins: list[int]) -> None:
    """Emit arithmetic whose axes are the products of each group's."""
    like = editor.tensors[node.name]
    ends = [*begins[1:], len(like.shape)]

    def view(name: str) -> View:
        shape = editor.shape(name)
        shape = (*shape, *[1] * (len(like.shape) - len(shape)))
        return reshaped(editor.shape(name), (1, *map(prod, map(shape.__getitem__, spans))))

    spans = [slice(begin, end) for begin, end in zip(begins, ends, strict=True)]
    result = view(node.name)
    image = editor.activation(f"{node.name}_image", result.shape, like)
    inputs = tuple(
        view(name).enter(editor, node, name, f"{node.name}_operand") for name in node.inputs
    )
    editor.emit(replace(node, inputs=inputs, outputs=(image,)))
    result.leave(editor, node, image, node.name)
