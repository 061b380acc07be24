"""Turn reductions over the image or the channels into pools and convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.ir.quantization import negated
from nnef_hw.passes.forms.normalize_attributes import NormalizeAttributes
from nnef_hw.passes.rewriting.editor import Editor, pixel_conv_node, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import View, channels_first
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic

__all__ = ["LowerReduce"]

_SUMS = {"mean_reduce", "sum_reduce"}
_POOLS = {"mean_reduce": "avg_pool", "max_reduce": "max_pool", "sum_reduce": "box"}


@dataclass(frozen=True, slots=True)
class LowerReduce(Pass):
    """Rewrite reductions.

    * over rows and columns: ``mean_reduce`` -> ``avg_pool``, ``max_reduce`` -> ``max_pool``,
      ``sum_reduce`` -> ``box``; ``min_reduce`` -> ``max_pool`` between two ``neg``
    * over channels of images: ``mean_reduce`` and ``sum_reduce`` -> ``conv`` with equal weights
    * over other axes -> over rows and columns of an image whose channels are the axes that stay

    ``sum_reduce(normalize = true)`` is a ``mean_reduce``.
    """

    after: ClassVar[Reasons] = {
        HoistArithmetic: (
            "A reduction behind a transpose is one of the axes before it; LowerReduce would "
            "move the axes once more."
        ),
        NormalizeAttributes: "LowerReduce reads attributes that a model may leave out.",
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            op = "mean_reduce" if node.attrs.get("normalize") else node.op
            if op not in {*_POOLS, "min_reduce"}:
                editor.keep(node)
            elif not _is_of_images(editor, node, op):
                _emit_view(editor, node)
            elif op == "min_reduce":
                _emit_minimum(editor, node)
            else:
                _emit_pools(editor, node, op)
        return editor.finish()


def _is_of_images(editor: Editor, node: Node, op: str) -> bool:
    """Whether a reduction is one over rows and columns, or a sum over what are channels indeed."""
    shape, axes = editor.shape(node.inputs[0]), node.attrs["axes"]
    if len(shape) not in {3, 4} or shape[0] != 1 or not axes:
        return False
    if editor.graph.rounding == "tflite" and 1 in axes and max(axes) > 1:
        return False  # it rounds once
    before = editor.emitted(editor.resolve(node.inputs[0]))
    is_moved = before is not None and before.op == "transpose"
    is_sum = op in _SUMS and (list(axes) == [1] or not is_moved)
    return min(axes) > 1 or (min(axes) == 1 and is_sum)


def _emit_view(editor: Editor, node: Node) -> None:
    """Emit the reduction over rows and columns of a view."""
    shape = editor.shape(node.inputs[0])
    stay = [axis for axis in range(len(shape)) if axis not in node.attrs["axes"]]
    view = channels_first(shape, [axis for axis in stay if shape[axis] > 1])
    pixels = (*view.shape[2:], 1, 1)[:2]
    view = View(view.axes, (*view.shape[:2], *pixels))
    source = view.enter(editor, node, node.inputs[0], f"{node.name}_image")
    like = editor.tensors[node.name]
    image = editor.activation(f"{node.name}_result", (*view.shape[:2], 1, 1), like)
    editor.emit(
        replace(node.with_attrs(axes=[2, 3]), inputs=(source,), outputs=(image,)),
        reshape_node(image, node.name, like.shape, node),
    )


def _pool(editor: Editor, node: Node, op: str, source: str, result: str) -> Node:
    shape, axes = editor.shape(source), node.attrs["axes"]
    size = [n if axis in axes and axis > 1 else 1 for axis, n in enumerate(shape)]
    attrs: dict[str, object] = {
        "size": size,
        "border": "constant",
        "padding": [(0, 0)] * len(size),
        "stride": list(size),
        "dilation": [1] * len(size),
    }
    if op == "box":
        attrs["normalize"] = False
    if op == "avg_pool" and editor.graph.rounding == "tflite":
        attrs["is_reduction"] = True  # which it rounds in another way than a pool
    return Node(op, (source,), (result,), attrs, node.location)


def _emit_minimum(editor: Editor, node: Node) -> None:
    like = editor.tensors[node.name]
    source = editor.tensors[editor.resolve(node.inputs[0])]
    quant = editor.quantization(source.name)
    mirrored = replace(source, quant=quant and negated(quant))
    negative = editor.activation(f"{node.name}_negative", source.shape, mirrored)
    greatest = editor.activation(f"{node.name}_maximum", like.shape, mirrored)
    editor.emit(
        Node("neg", node.inputs, (negative,), {}, node.location),
        _pool(editor, node, "max_pool", negative, greatest),
        Node("neg", (greatest,), node.outputs, {}, node.location),
    )


def _emit_pools(editor: Editor, node: Node, op: str) -> None:
    source, like, axes = node.inputs[0], editor.tensors[node.name], node.attrs["axes"]
    if max(axes) > 1:
        result = node.name
        if 1 in axes:
            shape = (1, editor.shape(source)[1], *like.shape[2:])
            result = editor.activation(f"{node.name}_pooled", shape, like)
        editor.emit(_pool(editor, node, _POOLS[op], source, result))
        source = result
    if 1 not in axes:
        return
    channels, rank = editor.shape(source)[1], len(like.shape) - 2
    value = 1.0 / channels if op == "mean_reduce" else 1.0
    inputs = (
        source,
        editor.constant(f"{node.name}_filter", np.full((1, channels, *[1] * rank), value)),
        editor.constant(f"{node.name}_bias", np.zeros((1, 1))),
    )
    editor.emit(pixel_conv_node(inputs, node.name, rank, node))
