"""Turn linear interpolation into convolutions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Quantization
from nnef_hw.passes.images.interpolated_codes import are_codes
from nnef_hw.passes.rewriting.along_axis import emit_along_axis
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.sink_transposes import SinkTransposes
from nnef_hw.reference.real.registry import Evaluation, evaluate

__all__ = ["LowerMultilinear"]

_WEIGHT_BITS = 8
_CONTINUED = {"reflect", "reflect-even", "replicate"}


@dataclass(frozen=True, slots=True)
class LowerMultilinear(Pass):
    """Rewrite ``multilinear_upsample``.

    * methods ``symmetric`` and ``asymmetric`` -> a ``deconv`` of every channel by itself; with a
      border that continues the image, a ``pad`` of one element is in front of it
    * method ``aligned``, whose weights differ from place to place -> for each axis a ``conv`` of
      1x1 whose channels are the places on the axis, between two ``transpose``

    Of codes that TensorFlow Lite interpolates, the weights are integers over a power of two where
    its 10 bits hold them, which is so for factors of 2, 4 and 8.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "The transposes that LowerMultilinear adds meet their readers a round later, when "
            "these are rewritten too."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op != "multilinear_upsample":
                editor.keep(node)
            elif node.attrs["method"] == "aligned":
                _lower_aligned(editor, node)
            else:
                _lower(editor, node)
        return editor.finish()


def _lower_aligned(editor: Editor, node: Node) -> None:
    factor, source = list(node.attrs["factor"]), node.inputs[0]
    axes = [axis for axis, count in enumerate(factor, start=2) if count > 1]
    for axis in axes:
        weights = _aligned_weights(node, editor.shape(source)[axis], factor[axis - 2])
        result = node.name if axis == axes[-1] else ""
        source = emit_along_axis(editor, node, source, axis, weights, result)
    if not axes:
        editor.emit(Node("copy", (source,), node.outputs, {}, node.location))


def _aligned_weights(node: Node, extent: int, factor: int) -> NDArray[np.float64]:
    """Return the weight of each element in each result along an axis: [results, elements]."""
    attrs = {**node.attrs, "factor": [factor]}
    units = np.eye(extent)[np.newaxis]
    call = Evaluation(replace(node, attrs=attrs), (units,), ((1, extent, extent * factor),))
    weights: NDArray[np.float64] = evaluate(call)[0][0].T
    return weights


def _lower(editor: Editor, node: Node) -> None:
    factor, source = list(node.attrs["factor"]), node.inputs[0]
    shape, rank = editor.shape(source), len(factor)
    is_symmetric = node.attrs["method"] == "symmetric"
    before = 0
    if node.attrs["border"] in _CONTINUED:
        before = int(is_symmetric)
        like = editor.tensors[editor.resolve(source)]
        extents = (n + before + 1 for n in shape[2:])
        source = editor.activation(f"{node.name}_padded", (*shape[:2], *extents), like)
        attrs = {"padding": [(0, 0)] * 2 + [(before, 1)] * rank, "border": node.attrs["border"],
                 "value": 0.0}  # fmt: skip
        editor.emit(Node("pad", node.inputs, (source,), attrs, node.location))
    triangles = [_triangle(count, is_symmetric) for count in factor]
    kernel = reduce(np.multiply.outer, (weights for weights, _ in triangles))
    channels = shape[1]
    weights = np.broadcast_to(kernel, (channels, 1, *kernel.shape))
    inputs = (
        source,
        editor.constant(f"{node.name}_filter", weights),
        editor.constant(f"{node.name}_bias", np.zeros((1, channels))),
    )
    exact: dict[str, object] = {}
    quant = _integer_weights(kernel) if are_codes(editor, node) else None
    if quant is not None:
        editor.tensors[inputs[1]] = replace(editor.tensors[inputs[1]], quant=quant)
        exact = {"is_interpolation": True}  # which it rounds in another way than a convolution
    attrs = {
        "border": "constant",
        "padding": [
            (before * count - first, 0) for count, (_, first) in zip(factor, triangles, strict=True)
        ],
        "stride": factor,
        "dilation": [1] * rank,
        "output_shape": list(editor.shape(node.name)),
        "groups": channels,
        **exact,
    }
    editor.emit(Node("deconv", inputs, node.outputs, attrs, node.location))


def _integer_weights(kernel: NDArray[np.float64]) -> Quantization | None:
    """Return the quantization of weights that are integers over a power of two, at most 8 bits."""
    for bits in range(_WEIGHT_BITS + 1):
        codes = kernel * (1 << bits)
        if np.array_equal(codes, np.round(codes)):
            args = {"zero_point": 0, "scale": 1.0 / (1 << bits), "bits": _WEIGHT_BITS,
                    "signed": False, "symmetric": False}  # fmt: skip
            return Quantization("zero_point_linear_quantize", args)
    return None


def _triangle(factor: int, is_symmetric: bool) -> tuple[NDArray[np.float64], int]:
    """Return an element's weights in the results around it, and the place of the first result."""
    center = (factor - 1) / 2 if is_symmetric else 0.0
    place = np.arange(-factor, 2 * factor + 1)
    weights = 1.0 - np.abs(place - center) / factor
    inside = weights > 0.0
    return weights[inside], int(place[inside][0])
