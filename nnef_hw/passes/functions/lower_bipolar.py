"""Activations of one bit, -s and +s: a comparison with 0, then two codes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Quantization, Tensor, Trait
from nnef_hw.passes.fusing.fold_affine import FoldAffine
from nnef_hw.passes.fusing.fuse_activation import FuseActivation
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.scaled_filter import scaled_filter

__all__ = ["LowerBipolar"]

_AFFINE = {"batch_normalization", "add", "sub", "mul", "div"}
"""Operators that become convolutions of each channel, if their operands are constant."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LowerBipolar(Pass):
    """Replace ``linear_quantize`` of one bit from -s to s on activations.

    The numbers stay: ``u = relu(k * x + 1/2)`` in steps of 1 is 0 or 1, for each k > 0 that of
    whether x is at least 0, and ``2 * s * u - s`` is the result. Behind a layer with the author's
    codes k makes its accumulator's steps 1, so the comparison stays exact in integers.

    Left alone: several numbers for the channels, results of affine operators that are still to
    become layers, and of operators that only move values, of which others are quantized.
    """

    after: ClassVar[Reasons] = {
        FoldAffine: (
            "A scale and an offset in front of a sign are part of the layer whose result is "
            "compared."
        ),
    }
    before: ClassVar[Reasons] = {
        FuseActivation: (
            "The relu that stands for the comparison becomes part of the layer at once; else "
            "CollapseFunctions would join it with the scale behind it."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for name in graph.inputs:
            high = _high(graph.tensor(name))
            reader = next((node for node in graph.nodes if name in node.inputs), None)
            if high is not None and reader is not None:
                self._input(editor, name, high, reader)
        for node in graph.nodes:
            high = _high(graph.tensor(node.outputs[0])) if len(node.outputs) == 1 else None
            if high is not None and node.has(Trait.KEEPS_FORMAT):
                if _high(graph.tensor(node.inputs[0])) == high:
                    editor.tensors[node.name] = replace(editor.tensors[node.name], quant=None)
                editor.keep(node)
            elif high is None or _is_pending(editor, node):
                editor.keep(node)
            else:
                self._result(editor, node, high)
        return editor.finish()

    @staticmethod
    def _input(editor: Editor, name: str, high: float, reader: Node) -> None:
        tensor = editor.tensors[name] = replace(editor.tensors[name], quant=None)
        result = editor.activation(f"{name}_sign", tensor.shape, tensor)
        first = Node("copy", (name,), (name,), {}, reader.location)
        _emit_sign(editor, first, _scaled(editor, first, name, 0.5 / high), result, high)
        editor.alias(name, result)

    @staticmethod
    def _result(editor: Editor, node: Node, high: float) -> None:
        like = editor.tensors[node.name] = replace(editor.tensors[node.name], quant=None)
        if node.op == "requantize":
            moved = _scaled(editor, node, node.inputs[0], 0.5 / high)
        elif node.has(Trait.WEIGHTS) and (layer := _normalized(editor, node)) is not None:
            moved = editor.activation(f"{node.name}_moved", like.shape, like)
            editor.emit(replace(layer, outputs=(moved,)))
        else:
            real = editor.activation(f"{node.name}_real", like.shape, like)
            editor.emit(replace(node, outputs=(real,)))
            moved = _scaled(editor, node, real, 0.5 / high)
        _emit_sign(editor, node, moved, node.name, high)


def _high(tensor: Tensor) -> float | None:
    """Return s of an activation with the values -s and s, None for others."""
    quant = tensor.quant
    if quant is None or tensor.data is not None or quant.op != "linear_quantize":
        return None
    low, high = (np.asarray(quant.args[key], np.float64) for key in ("min", "max"))
    if quant.args["bits"] != 1 or low.size != 1 or high.size != 1 or -low.item() != high.item():
        return None
    return high.item() if high.item() > 0 else None


def _is_pending(editor: Editor, node: Node) -> bool:
    """Whether a result is that of an operator that other passes rewrite first."""
    return node.op in _AFFINE and any(editor.data(name) is not None for name in node.inputs)


def _scaled(editor: Editor, node: Node, source: str, factor: float) -> str:
    """Emit ``factor * source + 1/2`` and return its name."""
    like = replace(editor.tensors[editor.resolve(source)], quant=None)
    product = editor.activation(f"{node.name}_scaled", like.shape, like)
    result = editor.activation(f"{node.name}_moved", like.shape, like)
    one, half = (editor.constant(f"{node.name}_{word}", np.array(value))
                 for word, value in (("factor", factor), ("half", 0.5)))  # fmt: skip
    editor.emit(
        Node("mul", (source, one), (product,), {}, node.location),
        Node("add", (product, half), (result,), {}, node.location),
    )
    return result


def _normalized(editor: Editor, node: Node) -> Node | None:
    """Return a layer whose accumulator counts in steps of 1, plus 1/2.

    None if the steps are not known, or it has an activation.
    """
    weights = editor.tensors[editor.resolve(node.inputs[1])]
    bias, step = editor.data(node.inputs[2]), _step(editor, node.inputs[0])
    quant = weights.quant
    if quant is None or bias is None or step is None or node.attrs.get("activation") is not None:
        return None
    steps = np.asarray(quant.args["max" if quant.op == "linear_quantize" else "scale"], np.float64)
    rows = np.broadcast_to(
        steps.reshape(steps.shape + (1,) * (len(weights.shape) - steps.ndim)), weights.shape
    ).reshape(weights.shape[0], -1)
    if not (rows == rows[:, :1]).all():
        return None
    factors = 1.0 / (step * rows[:, 0])
    found = scaled_filter(weights, factors)
    if found is None:
        return None
    data, scaled_quant = found
    name = editor.constant(f"{weights.name}_counting", data, weights)
    editor.tensors[name] = replace(editor.tensors[name], quant=scaled_quant)
    offset = np.broadcast_to(bias.astype(np.float64).reshape(1, -1), (1, len(factors)))
    bias_name = editor.constant(f"{node.name}_offset", offset * factors + 0.5)
    return replace(node, inputs=(node.inputs[0], name, bias_name))


def _step(editor: Editor, name: str) -> float | None:
    """Return the step in which an activation is quantized, from where its values come."""
    name = editor.resolve(name)
    quant, node = editor.tensors[name].quant, editor.emitted(name)
    while quant is None and node is not None and node.has(Trait.KEEPS_FORMAT):
        name = editor.resolve(node.inputs[0])
        quant, node = editor.tensors[name].quant, editor.emitted(name)
    if quant is None or quant.op != "zero_point_linear_quantize":
        return None
    scale = np.asarray(quant.args["scale"], np.float64)
    return scale.item() if scale.size == 1 else None


def _emit_sign(editor: Editor, node: Node, moved: str, result: str, high: float) -> None:
    """Emit ``2 * high * u - high`` of ``u = relu(moved)``, which is 0 or 1."""
    like = editor.tensors[result]
    unit = editor.activation(f"{node.name}_bit", like.shape, like)
    product = editor.activation(f"{node.name}_both", like.shape, like)
    editor.tensors[unit] = replace(editor.tensors[unit], quant=_ternary(1.0))
    editor.tensors[result] = replace(like, quant=_ternary(high))
    two, one = (editor.constant(f"{node.name}_{word}", np.array(value))
                for word, value in (("range", 2 * high), ("high", high)))  # fmt: skip
    editor.emit(
        Node("relu", (moved,), (unit,), {}, node.location),
        Node("mul", (unit, two), (product,), {}, node.location),
        Node("sub", (product, one), (result,), {}, node.location),
    )


def _ternary(scale: float) -> Quantization:
    """Return the format of -scale, 0 and scale."""
    args = {"zero_point": 0, "scale": scale, "bits": 2, "signed": True, "symmetric": True}
    return Quantization("zero_point_linear_quantize", args)
