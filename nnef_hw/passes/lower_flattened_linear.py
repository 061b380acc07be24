"""Read images where they are: no flatten before a linear layer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import prod

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor, reshape_node

__all__ = ["LowerFlattenedLinear"]


@dataclass(frozen=True, slots=True)
class LowerFlattenedLinear:
    """Rewrite ``linear`` behind a ``reshape`` of [1, C, H, W] with H * W > 1 to [1, C*H*W].

    It becomes a ``conv`` whose filter [O, C, H, W] covers the whole image, and a ``reshape`` of
    its result [1, O, 1, 1] to [1, O]: pixels then arrive in any order the image has.
    Left alone: every other ``linear``.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op != "linear":
                editor.keep(node)
                continue
            before, weights = editor.producer(node.inputs[0]), editor.data(node.inputs[1])
            shape = editor.shape(before.inputs[0]) if before and before.op == "reshape" else ()
            is_image = len(shape) == 4 and shape[0] == 1 and shape[2:] != (1, 1)
            is_flat = editor.shape(node.inputs[0]) == (1, prod(shape))
            if before is None or weights is None or not is_image or not is_flat:
                editor.keep(node)
                continue
            like, outputs = editor.tensors[node.inputs[1]], len(weights)
            filter_shape = (outputs, *shape[1:])
            kernel = editor.rearranged(
                f"{like.name}_image", like, partial(np.reshape, shape=filter_shape)
            )
            attrs = {
                "border": "constant",
                "padding": [(0, 0), (0, 0)],
                "stride": [1, 1],
                "dilation": [1, 1],
                "groups": 1,
                "activation": node.attrs.get("activation"),
            }
            image = (1, outputs, 1, 1)
            result = editor.activation(f"{node.name}_conv", image, editor.tensors[node.name])
            inputs = (before.inputs[0], kernel, node.inputs[2])
            editor.emit(
                Node("conv", inputs, (result,), attrs, node.location),
                reshape_node(result, node.name, (1, outputs), node),
            )
        return editor.finish()
