"""Turn products with a constant matrix into linear layers, and give these one form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_cumsum import LowerCumsum
from nnef_hw.passes.forms.lower_einsum import LowerEinsum
from nnef_hw.passes.rewriting.editor import Editor, pixel_conv_node, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import channels_first
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic

__all__ = ["LowerMatmul"]


@dataclass(frozen=True, slots=True)
class LowerMatmul(Pass):
    """Rewrite ``matmul`` with a constant and ``linear`` of more than two axes to rank 2.

    * ``matmul(x, constant)`` with one row -> ``linear`` with the transposed constant
    * ``linear`` on [1, 1, K] -> ``linear`` on [1, K] between reshapes
    * either with several rows -> a 1x1 ``conv`` of an image with a pixel for each row
    * ``matmul(constant, x)`` -> a 1x1 ``conv`` of an image with a pixel for each column; ``linear``
      if there is one
    * either with an activation that is transposed -> a ``transpose`` in front of it

    Left alone: products of two activations.
    """

    after: ClassVar[Reasons] = {
        LowerCumsum: (
            "The matmul by a constant that LowerCumsum makes is a layer; left over, it would "
            "be LowerProduct's."
        ),
        LowerEinsum: (
            "The matmul by a constant that LowerEinsum makes is a layer; left over, it would "
            "be LowerProduct's."
        ),
    }
    before: ClassVar[Reasons] = {
        HoistArithmetic: (
            "HoistArithmetic looks at the transposes around the layer that a product becomes, "
            "not at those around the product."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "matmul":
                node = _with_plain_activation(editor, node)
            if node.op == "matmul" and _is_matrix_on_the_left(editor, node):
                _emit_product_from_the_left(editor, node)
                continue
            weights = editor.data(node.inputs[1]) if node.op in {"matmul", "linear"} else None
            if weights is None or not _is_matrix(editor, node):
                editor.keep(node)
                continue
            has_one_row = all(n == 1 for n in editor.shape(node.inputs[0])[:-1])
            rank = len(editor.shape(node.inputs[0]))
            if node.op == "linear" and rank == 2 and weights.ndim == 2 and has_one_row:
                editor.keep(node)
                continue
            like = editor.tensors[editor.resolve(node.inputs[1])]
            transpose = node.op == "matmul" and not node.attrs.get("transposeB", False)
            filter_name = editor.rearranged(
                f"{like.name}_matrix", like, partial(_matrix, transpose=transpose)
            )
            weights = _matrix(weights, transpose=transpose)
            if node.op == "matmul":
                bias = editor.constant(f"{node.name}_bias", np.zeros((1, len(weights))))
            else:
                bias = node.inputs[2]
            if has_one_row:
                _emit(editor, node, filter_name, bias, weights.shape)
            else:
                last = len(editor.shape(node.inputs[0])) - 1
                _emit_conv(editor, node, node.inputs[0], last, filter_name, bias)
        return editor.finish()


def _with_plain_activation(editor: Editor, node: Node) -> Node:
    """Emit a transpose of the activation that a product with a constant takes transposed."""
    is_constant = [editor.data(name) is not None for name in node.inputs]
    if sum(is_constant) != 1:
        return node
    place = is_constant.index(False)
    key = ("transposeA", "transposeB")[place]
    name = node.inputs[place]
    shape = editor.shape(name)
    if not node.attrs.get(key, False) or len(shape) < 2:
        return node
    axes = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    like = editor.tensors[editor.resolve(name)]
    turned = editor.activation(f"{node.name}_transposed", tuple(shape[axis] for axis in axes), like)
    editor.emit(Node("transpose", (name,), (turned,), {"axes": axes}, node.location))
    inputs = tuple(turned if n == place else other for n, other in enumerate(node.inputs))
    return replace(node.with_attrs(**{key: False}), inputs=inputs)


def _matrix(array: Array, *, transpose: bool) -> Array:
    array = np.swapaxes(array, -1, -2) if transpose else array
    return array.reshape(array.shape[-2:])


def _is_matrix(editor: Editor, node: Node) -> bool:
    """Whether every row of the activation is multiplied by the same matrix."""
    x, weights = editor.shape(node.inputs[0]), editor.shape(node.inputs[1])
    if len(weights) < 2 or any(n != 1 for n in weights[:-2]) or node.attrs.get("transposeA", False):
        return False
    return len(x) >= 2


def _is_matrix_on_the_left(editor: Editor, node: Node) -> bool:
    """Whether every column of the activation is multiplied by the same matrix."""
    matrix, x = (editor.shape(name) for name in node.inputs)
    return (
        editor.data(node.inputs[0]) is not None
        and editor.data(node.inputs[1]) is None
        and not node.attrs.get("transposeB", False)
        and len(x) >= max(len(matrix), 2)
        and len(matrix) >= 2
        and all(n == 1 for n in matrix[:-2])
    )


def _emit_product_from_the_left(editor: Editor, node: Node) -> None:
    like = editor.tensors[editor.resolve(node.inputs[0])]
    transpose = node.attrs.get("transposeA", False)
    weights = editor.rearranged(f"{like.name}_matrix", like, partial(_matrix, transpose=transpose))
    bias = editor.constant(f"{node.name}_bias", np.zeros((1, editor.shape(weights)[0])))
    axis = len(editor.shape(node.inputs[1])) - 2
    _emit_conv(editor, node, node.inputs[1], axis, weights, bias)


def _emit(editor: Editor, node: Node, weights: str, bias: str, extents: tuple[int, ...]) -> None:
    outputs, inputs = extents
    source, result = node.inputs[0], node.outputs[0]
    x, y = editor.tensors[editor.resolve(source)], editor.tensors[result]
    linear = Node("linear", (source, weights, bias), (result,), {}, node.location)
    if node.op == "matmul" and editor.graph.rounding == "tflite":
        linear = linear.with_attrs(is_product=True)  # which it does not round as a layer
    if len(x.shape) == 2:
        editor.emit(linear)
        return
    flat_in = editor.activation(f"{result}_row", (1, inputs), x)
    flat_out = editor.activation(f"{result}_result", (1, outputs), y)
    editor.emit(
        reshape_node(source, flat_in, (1, inputs), node),
        replace(linear, inputs=(flat_in, weights, bias), outputs=(flat_out,)),
        reshape_node(flat_out, result, y.shape, node),
    )


def _emit_conv(editor: Editor, node: Node, source: str, axis: int, weights: str, bias: str) -> None:
    """Emit a convolution of ``source`` whose channels are one axis."""
    result = node.outputs[0]
    shape, (outputs, inputs) = editor.shape(source), editor.shape(weights)
    view = channels_first(shape, [axis])
    rank = len(view.shape) - 2
    kernel = editor.rearranged(
        f"{weights}_filter",
        editor.tensors[weights],
        lambda array: array.reshape(outputs, inputs, *[1] * rank),
    )
    image = view.enter(editor, node, source, f"{result}_image")
    extents = (1, outputs, *view.shape[2:])
    sums = editor.activation(f"{result}_result", extents, editor.tensors[result])
    conv = pixel_conv_node((image, kernel, bias), sums, rank, node)
    if not rank:  # one column
        conv = Node("linear", conv.inputs, conv.outputs, {}, node.location)
    elif node.op == "linear" and editor.graph.rounding == "tflite":
        conv = conv.with_attrs(is_linear=True)  # which it rounds once
    editor.emit(conv)
    replace(view, shape=extents).leave(editor, node, sums, result)
