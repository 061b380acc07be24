"""Turn a leaky ReLU with a slope for each channel into products and maxima."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.functions.lower_clamp import LARGEST, LowerClamp
from nnef_hw.passes.rewriting.editor import Editor, channel_values
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerPrelu"]


@dataclass(frozen=True, slots=True)
class LowerPrelu(Pass):
    """Rewrite ``prelu``.

    * of codes that TensorFlow Lite multiplies -> the sum of ``relu(x)`` and ``alpha * min(x, 0)``,
      one of which is always 0
    * slopes of at most 1 -> ``max(x, alpha * x)``; of at least 1 -> ``min(x, alpha * x)``
    * slopes on both sides of 1 -> both, one after the other, with 1 for the slopes of the other

    Left alone: slopes that are computed or vary within a channel. One slope for all is
    :class:`.LowerClamp`'s.
    """

    after: ClassVar[Reasons] = {
        LowerClamp: (
            "One slope for all channels is a leaky_relu; LowerPrelu would make a product and "
            "a maximum of it."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            data = editor.data(node.inputs[1]) if node.op == "prelu" else None
            slopes = None
            if data is not None and data.size > 1:
                slopes = channel_values(data, editor.shape(node.name))
            if slopes is None or editor.shape(node.inputs[0]) != editor.shape(node.name):
                editor.keep(node)
            elif graph.rounding == "tflite" and editor.tensors[node.name].quant is not None:
                _lower_codes(editor, node)
            else:
                _lower(editor, node, slopes)
        return editor.finish()


def _lower_codes(editor: Editor, node: Node) -> None:
    """Emit a sum of what its kernel computes above and below 0."""
    source, slopes = node.inputs
    like = editor.tensors[node.name]
    quant = editor.quantization(source)
    above = editor.activation(f"{node.name}_above", like.shape, like)
    negative = editor.activation(f"{node.name}_negative", like.shape, replace(like, quant=quant))
    below = editor.activation(f"{node.name}_below", like.shape, like)
    limits = {"a": -LARGEST, "b": 0.0}
    editor.emit(
        Node("relu", (source,), (above,), {}, node.location),
        Node("clamp", (source,), (negative,), limits, node.location),
        Node("mul", (negative, slopes), (below,), {}, node.location),
        Node("add", (above, below), node.outputs, {}, node.location),
    )


def _lower(editor: Editor, node: Node, slopes: NDArray[np.float64]) -> None:
    steps = [
        (op, limited)
        for op, limited in (("max", np.minimum(slopes, 1.0)), ("min", np.maximum(slopes, 1.0)))
        if (limited != 1.0).any()
    ] or [("max", slopes)]
    source, like = node.inputs[0], editor.tensors[node.name]
    for n, (op, limited) in enumerate(steps, 1):
        result = node.name
        if n < len(steps):
            result = editor.activation(f"{node.name}_{op}", like.shape, like)
        product = editor.activation(f"{result}_product", like.shape, like)
        alpha = editor.constant(f"{result}_slopes", limited.reshape(1, -1))
        editor.emit(
            Node("mul", (source, alpha), (product,), {}, node.location),
            Node(op, (source, product), (result,), {}, node.location),
        )
        source = result
