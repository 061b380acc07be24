"""A linear map along one axis of an image: every result is a weighted sum of its elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Node
from nnef_hw.passes.rewriting.editor import Editor, pixel_conv_node

__all__ = ["emit_along_axis"]


def emit_along_axis(
    editor: Editor, node: Node, source: str, axis: int, weights: NDArray[np.float64], result: str
) -> str:
    """Emit a ``conv`` of 1x1 whose channels are the places on the axis, between two transposes.

    Parameters
    ----------
    source
        Tensor [1, C, ...] that is read.
    axis
        Rows, columns: 2 and above.
    weights
        Of each element in each result: [results, elements].
    result
        Name of what is computed; empty for a new one, which is returned.
    """
    hint, like = f"{node.name}_axis{axis}", editor.tensors[node.name]
    shape = editor.shape(source)
    count, extent = weights.shape
    swap = list(range(len(shape)))
    swap[1], swap[axis] = axis, 1
    before = tuple(shape[n] for n in swap)
    after = (before[0], count, *before[2:])
    inner = editor.activation(f"{hint}_places", before, like)
    outer = editor.activation(f"{hint}_results", after, like)
    result = result or editor.activation(hint, tuple(after[n] for n in swap), like)
    rank = len(shape) - 2
    inputs = (
        inner,
        editor.constant(f"{hint}_filter", weights.reshape(count, extent, *[1] * rank)),
        editor.constant(f"{hint}_bias", np.zeros((1, count))),
    )
    editor.emit(
        Node("transpose", (source,), (inner,), {"axes": swap}, node.location),
        pixel_conv_node(inputs, outer, rank, node),
        Node("transpose", (outer,), (result,), {"axes": swap}, node.location),
    )
    return result
