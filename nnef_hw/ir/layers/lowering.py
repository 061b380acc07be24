"""The only way from nodes of a fixed graph to integer layers."""

from __future__ import annotations

from collections.abc import Mapping

from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.layers import (
    audio,
    contraction,
    convolution,
    elementwise,
    functions,
    integer_functions,
    moves,
    normalization,
    places,
    pool,
    steps,
)
from nnef_hw.ir.layers.layer import Layer, layers

__all__ = ["layer_of", "layers_of"]

LAYERS = (
    audio, contraction, convolution, elementwise, functions, integer_functions, moves,
    normalization, places, pool, steps,
)  # fmt: skip
"""The modules that register classes of layers."""

layers.require_all()


def layers_of(graph: Graph) -> Mapping[str, Layer]:
    """Return the layers of a fixed graph by the name of what they compute; each is made once."""
    return graph.once(_lower)


def layer_of(graph: Graph, node: Node) -> Layer:
    """Return the layer of a node of a fixed graph."""
    return layers_of(graph)[node.name]


def _lower(graph: Graph) -> Mapping[str, Layer]:
    return {node.name: layers[node.op].of(graph, node) for node in graph.nodes}
