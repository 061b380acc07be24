"""Fold batch normalization and constant scales and offsets into convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Quantization, Trait
from nnef_hw.ir.activation import activation_attrs
from nnef_hw.passes.rewriting.editor import Editor, channel_values, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.passes.rewriting.scaled_filter import scaled_filter

__all__ = ["FoldAffine", "pixel_affine"]

FloatArray = NDArray[np.float64]

_STEPS = "zero_point_linear_quantize"
_WHOLE = 1e-4
"""By so much of a step may a bias miss one."""


@dataclass(frozen=True, slots=True)
class FoldAffine(Pass):
    """Remove ``batch_normalization`` and ``add``/``sub``/``mul``/``div`` with channel constants.

    * behind a ``conv``, ``deconv`` or ``linear`` that nobody else reads: into its filter and bias,
      also from behind a ``reshape`` that leaves the channels as they are, or, of one number for all
      channels, from behind any moves
    * elsewhere: a depthwise 1x1 ``conv``, on [1, C, 1, 1] between reshapes if the rank is 2
    * the filter of such a ``conv`` from codes to codes, if the bias lies on its steps: numbers
      whose codes are their signs
    * such a ``conv`` behind another ``conv`` that nobody else reads: into that one
    * an offset behind an ``add``, into a layer whose result that alone reads
    * what changes nothing: a ``copy``

    A filter that the model's author quantized keeps its codes, in other steps. Nothing is folded
    into a layer whose sum or bias is quantized, or whose codes would not fit, nor such a ``conv``
    into another. Arithmetic that TensorFlow Lite quantized has another rounding than its
    convolutions: it stays.
    Left alone: constants that vary within a channel or give no finite scale, division by an
    activation, other ranks.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            found = None if _is_rounded(editor, node) else _affine(editor, node)
            if found is None:
                editor.keep(node)
                continue
            source, scale, offset = found
            if node.op != "conv" and _changes_nothing(editor, node, scale, offset):
                editor.emit(Node("copy", (source,), node.outputs, {}, node.location))
                continue
            if (scale == 1).all() and (total := _sum_before(editor, source, node)):
                _emit_offset(editor, node, total, offset)
                continue
            is_one_number = np.ptp(scale) == np.ptp(offset) == 0
            before = _layer_before(
                editor,
                source,
                behind_reshapes=node.op != "conv",
                behind_moves=node.op != "conv" and bool(is_one_number),
            )
            of_layer = scale, offset
            if is_one_number and before:
                count = _channels(editor, before[0])
                of_layer = np.full(count, scale[0]), np.full(count, offset[0])
            if before and _can_scale(editor, before, node, of_layer[0]):
                _emit_scaled(editor, before, node, *of_layer)
            elif (
                node.op != "conv"
                and len(editor.shape(source)) in {2, 4}
                and editor.shape(source)[0] == 1
            ):
                _emit_depthwise(editor, node, source, scale, offset)
            elif node.op == "conv" and (new := _with_signs(editor, node, scale, offset)):
                editor.emit(new)
            else:
                editor.keep(node)
        return editor.finish()


def _changes_nothing(editor: Editor, node: Node, scale: FloatArray, offset: FloatArray) -> bool:
    is_plain = node.attrs.get("activation") is None and editor.tensors[node.name].quant is None
    return is_plain and bool((scale == 1).all() and not offset.any())


@dataclass(frozen=True, slots=True)
class _Sum:
    """A sum that one node alone reads, and the layers of an operand with which it may change."""

    node: Node
    position: int
    before: list[Node]


def _sum_before(editor: Editor, source: str, node: Node) -> _Sum | None:
    """Return the sum that a tensor is, if an offset may go into one of its operands."""
    total = editor.emitted(editor.resolve(source)) if editor.has_one_use(source) else None
    if total is None or total.op != "add" or total.attrs.get("activation") is not None:
        return None
    if editor.tensors[total.name].quant is not None or _is_rounded(editor, total):
        return None
    for position, operand in enumerate(total.inputs):
        if editor.shape(operand) == editor.shape(total.name):
            before = _layer_before(editor, operand, behind_reshapes=True)
            if before and _can_scale(editor, before, node, np.ones(editor.shape(operand)[1])):
                return _Sum(total, position, before)
    return None


def _emit_offset(editor: Editor, node: Node, total: _Sum, offset: FloatArray) -> None:
    """Emit a sum one of whose operands has the offset in it."""
    operand = total.node.inputs[total.position]
    shifted = editor.activation(
        f"{operand}_shifted", editor.shape(operand), editor.tensors[editor.resolve(operand)]
    )
    stand_in = Node("add", (operand,), (shifted,), {}, node.location)
    editor.drop(total.node)
    _emit_scaled(editor, total.before, stand_in, np.ones_like(offset), offset)
    inputs = tuple(
        shifted if place == total.position else name for place, name in enumerate(total.node.inputs)
    )
    attrs = {**total.node.attrs, **activation_attrs(node)}
    editor.emit(replace(total.node, inputs=inputs, outputs=node.outputs, attrs=attrs))


def _with_signs(editor: Editor, node: Node, scale: FloatArray, offset: FloatArray) -> Node | None:
    """Return a node whose filter's codes are signs, so that powers of two are exact.

    None if it does not map codes onto codes, has such a filter, or a bias between its steps.
    """
    source, weights, bias = node.inputs
    like, before = editor.tensors[editor.resolve(weights)], editor.quantization(source)
    formats = before, editor.tensors[node.name].quant
    if like.quant is not None or any(q is None or q.op != _STEPS for q in formats):
        return None
    assert before is not None
    steps = np.where(scale == 0, 1.0, np.abs(scale))
    places = offset / (steps * np.asarray(before.args["scale"]).reshape(-1))
    if not np.allclose(places, np.round(places), rtol=0, atol=_WHOLE):
        return None
    column = (-1, 1, 1, 1)
    args = {"zero_point": 0, "scale": steps.reshape(column), "bits": 8, "signed": True,
            "symmetric": True}  # fmt: skip
    name = editor.constant(f"{weights}_signs", scale.reshape(column), like)
    editor.tensors[name] = replace(editor.tensors[name], quant=Quantization(_STEPS, args))
    return replace(node, inputs=(source, name, bias))


def _is_rounded(editor: Editor, node: Node) -> bool:
    """Whether arithmetic on codes is rounded in a way of its own."""
    is_own = editor.graph.rounding == "tflite" and node.has(Trait.ARITHMETIC)
    return is_own and editor.tensors[node.name].quant is not None


def _channels(editor: Editor, layer: Node) -> int:
    """Return the channels of a layer's result."""
    return editor.shape(layer.name)[1]


def _layer_before(
    editor: Editor, source: str, *, behind_reshapes: bool, behind_moves: bool = False
) -> list[Node]:
    """Return the layer that computes a tensor, and what moves its result, if nobody else reads it.

    None of them if it is not a layer, or its channels are not those of the tensor, unless it may be
    behind any moves.
    """
    nodes: list[Node] = []
    one_use = editor.is_read_once if behind_moves else editor.has_one_use
    while one_use(source) and (node := editor.emitted(editor.resolve(source))):
        nodes.insert(0, node)
        if not (node.op == "reshape" or (behind_moves and node.has(Trait.MOVES))):
            is_layer = node.has(Trait.WEIGHTS) or node.op == "deconv"
            is_linear = is_layer and node.attrs.get("activation") is None
            return nodes if is_linear and _has_constants(editor, node) else []
        source = node.inputs[0]
        keeps_channels = editor.shape(source)[:2] == editor.shape(node.name)[:2]
        if not (behind_moves or (behind_reshapes and keeps_channels)):
            break
    return []


def _can_scale(editor: Editor, before: Sequence[Node], node: Node, scale: FloatArray) -> bool:
    """Whether no code that the author chose would change."""
    layer = before[0]
    weights = editor.tensors[layer.inputs[1]]
    names = [*(step.name for step in before), *layer.inputs[2:], *node.inputs[1:]]
    if any(editor.tensors[editor.resolve(name)].quant is not None for name in names):
        return False
    if weights.quant is None:
        return True
    return layer.has(Trait.WEIGHTS) and scaled_filter(weights, scale) is not None


def _has_constants(editor: Editor, node: Node) -> bool:
    return all(editor.data(name) is not None for name in node.inputs[1:])


def _affine(editor: Editor, node: Node) -> tuple[str, FloatArray, FloatArray] | None:
    """Return input, scale and offset of ``y = scale[c] * x + offset[c]``."""
    if node.op == "conv":
        return pixel_affine(editor, node)
    if node.op not in {"batch_normalization", "add", "sub", "mul", "div"}:
        return None
    values = [editor.data(name) for name in node.inputs]
    position = next((i for i, value in enumerate(values) if value is None), 0)
    shape = editor.shape(node.inputs[position])
    if shape != editor.shape(node.outputs[0]) or len(shape) < 2:
        return None
    constants = [
        None if value is None else channel_values(value, shape)
        for i, value in enumerate(values)
        if i != position
    ]
    operands = [value for value in constants if value is not None]
    if len(operands) != len(node.inputs) - 1:
        return None
    with np.errstate(all="ignore"):
        found = _coefficients(node, position, operands)
    if found is None or not all(np.isfinite(values).all() for values in found):
        return None
    return node.inputs[position], *found


def pixel_affine(editor: Editor, node: Node) -> tuple[str, FloatArray, FloatArray] | None:
    """Return input, scale and offset of a ``conv`` of single elements; None if it is none."""
    channels = editor.shape(node.inputs[0])[1]
    window = (
        node.attrs["groups"],
        list(node.attrs["stride"]),
        [*map(tuple, node.attrs["padding"])],
    )
    if window != (channels, [1, 1], [(0, 0), (0, 0)]) or not _has_constants(editor, node):
        return None
    scale, offset = (_data(editor, name) for name in node.inputs[1:])
    if scale.shape != (channels, 1, 1, 1) or offset.size != channels:
        return None
    return node.inputs[0], scale.reshape(-1), offset.reshape(-1)


def _coefficients(
    node: Node, position: int, constants: list[FloatArray]
) -> tuple[FloatArray, FloatArray] | None:
    if node.op == "batch_normalization":
        if position != 0:
            return None
        mean, variance, offset, gain = constants
        scale = gain / np.sqrt(variance + node.attrs["epsilon"])
        return scale, offset - mean * scale
    (value,) = constants
    one, zero = np.ones_like(value), np.zeros_like(value)
    if node.op == "add":
        return one, value
    if node.op == "sub":
        return (one, -value) if position == 0 else (-one, value)
    if node.op == "mul":
        return value, zero
    return (1.0 / value, zero) if position == 0 and value.all() else None


def _emit_scaled(
    editor: Editor, before: Sequence[Node], node: Node, scale: FloatArray, offset: FloatArray
) -> None:
    layer, *moves = before
    for step in before:
        editor.drop(step)
    like, result = editor.tensors[node.name], node.name
    if moves:
        result = editor.activation(f"{node.name}_folded", editor.shape(layer.name), like)
    editor.emit(_scaled(editor, layer, node, result, scale, offset))
    for n, move in enumerate(moves, start=1):
        source, result = result, node.name
        if n < len(moves):
            result = editor.activation(f"{node.name}_moved", editor.shape(move.name), like)
        if move.op == "reshape":
            editor.emit(reshape_node(source, result, editor.shape(result), node))
        else:
            editor.emit(replace(move, inputs=(source,), outputs=(result,)))


def _scaled(
    editor: Editor, layer: Node, node: Node, result: str, scale: FloatArray, offset: FloatArray
) -> Node:
    weights, bias = (editor.tensors[name] for name in layer.inputs[1:])
    kernel = _data(editor, weights.name)
    if layer.op == "deconv":  # [inC, outC/groups, ...]
        groups = len(scale) // kernel.shape[1]
        columns = kernel.reshape(groups, -1, kernel.shape[1], math.prod(kernel.shape[2:]))
        new_kernel = (columns * scale.reshape(groups, 1, -1, 1)).reshape(kernel.shape)
    else:
        new_kernel = kernel * scale.reshape(-1, *[1] * (kernel.ndim - 1))
    quant = weights.quant
    if quant is not None and (found := scaled_filter(weights, scale)) is not None:
        new_kernel, quant = found
    new_bias = _data(editor, bias.name).reshape(1, -1) * scale + offset
    filter_name = editor.constant(f"{weights.name}_folded", new_kernel, weights)
    editor.tensors[filter_name] = replace(editor.tensors[filter_name], quant=quant)
    bias_name = editor.constant(f"{bias.name}_folded", new_bias, bias)
    inputs = (layer.inputs[0], filter_name, bias_name)
    layer = layer.with_attrs(**activation_attrs(node))
    return replace(layer, inputs=inputs, outputs=(result,))


def _data(editor: Editor, name: str) -> Array:
    data = editor.data(name)
    assert data is not None, name
    return data.astype(np.float64)


def _emit_depthwise(
    editor: Editor, node: Node, source: str, scale: FloatArray, offset: FloatArray
) -> None:
    name, shape, channels = node.name, editor.shape(source), len(scale)
    weights = editor.constant(f"{name}_scale", scale.reshape(-1, 1, 1, 1))
    bias = editor.constant(f"{name}_offset", offset.reshape(1, -1))
    attrs = {
        "border": "constant",
        "padding": [(0, 0), (0, 0)],
        "stride": [1, 1],
        "dilation": [1, 1],
        "groups": channels,
        **activation_attrs(node),
    }
    if len(shape) == 4:
        editor.emit(Node("conv", (source, weights, bias), (name,), attrs, node.location))
        return
    like, image = editor.tensors[name], (1, channels, 1, 1)
    before = editor.activation(f"{name}_image", image, editor.tensors[editor.resolve(source)])
    after = editor.activation(f"{name}_conv", image, like)
    editor.emit(
        reshape_node(source, before, image, node),
        Node("conv", (before, weights, bias), (after,), attrs, node.location),
        reshape_node(after, name, shape, node),
    )
