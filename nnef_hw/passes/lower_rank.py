"""Compute tensors that are no images as images of the same elements."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor
from nnef_hw.passes.in_order import emit_in_order, outer_axes
from nnef_hw.passes.views import is_image

__all__ = ["LowerRank"]


@dataclass(frozen=True, slots=True)
class LowerRank:
    """Rewrite operators of tensors without a batch of 1, or with more than four axes.

    * ``pad`` of several axes -> one after the other
    * ``concat``, ``slice``, ``pad`` along any axis -> the same along channels, which are this axis
      and those behind it; what is outside are pixels
    * functions, and arithmetic of activations of equal shapes -> the same of one pixel

    Left alone: constant operands, and borders that continue the tensor.
    """

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
                if outer is None:
                    editor.keep(node)
                else:
                    emit_in_order(editor, node, outer)
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
