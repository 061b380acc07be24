"""Turn linear interpolation into transposed convolution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor

__all__ = ["LowerMultilinear"]


@dataclass(frozen=True, slots=True)
class LowerMultilinear:
    """Rewrite ``multilinear_upsample`` as a ``deconv`` of every channel by itself.

    With border ``replicate``, a ``pad`` of one element is in front of it.
    Left alone: method ``aligned``, whose weights differ from place to place.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "multilinear_upsample" and node.attrs["method"] != "aligned":
                _lower(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _lower(editor: Editor, node: Node) -> None:
    factor, source = list(node.attrs["factor"]), node.inputs[0]
    shape, rank = editor.shape(source), len(factor)
    is_symmetric = node.attrs["method"] == "symmetric"
    before = 0
    if node.attrs["border"] == "replicate":
        before = int(is_symmetric)
        like = editor.tensors[editor.resolve(source)]
        extents = (n + before + 1 for n in shape[2:])
        source = editor.activation(f"{node.name}_padded", (*shape[:2], *extents), like)
        attrs = {"padding": [(0, 0)] * 2 + [(before, 1)] * rank, "border": "replicate",
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
    attrs = {
        "border": "constant",
        "padding": [
            (before * count - first, 0) for count, (_, first) in zip(factor, triangles, strict=True)
        ],
        "stride": factor,
        "dilation": [1] * rank,
        "output_shape": list(editor.shape(node.name)),
        "groups": channels,
    }
    editor.emit(Node("deconv", inputs, node.outputs, attrs, node.location))


def _triangle(factor: int, is_symmetric: bool) -> tuple[NDArray[np.float64], int]:
    """Return what an element adds to the results around it, and the place of the first of them."""
    center = (factor - 1) / 2 if is_symmetric else 0.0
    place = np.arange(-factor, 2 * factor + 1)
    weights = 1.0 - np.abs(place - center) / factor
    inside = weights > 0.0
    return weights[inside], int(place[inside][0])
