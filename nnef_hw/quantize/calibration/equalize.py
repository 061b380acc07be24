"""Moving scales between layers, so that one format suits all channels between them.

After Nagel et al., "Data-free quantization through weight equalization and bias correction" (2019).
A layer's channel may be divided by any positive number that the next layer's weights for this
channel are multiplied with, as long as all between them, ReLU and pooling, lets it through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node, Trait, open_states
from nnef_hw.ir.operators import WeightsAttributes

__all__ = ["equalize"]

_ROUNDS = 20
_LIMIT = 2.0**8
"""Most that a channel is scaled by: biases of channels that hardly count stay small."""

_Arrays = dict[str, NDArray[np.float64]]


def equalize(graph: Graph) -> Graph:
    """Return a canonical graph with the same results, whose channels have more equal ranges.

    Scaled are pairs of layers of which the second is the only reader of the first, neither of
    them quantized by the model's author, nor anything between. A channel that one of them does
    not use stays as it is.
    """
    # A next value of a state is read in the next step.
    step = open_states(graph)
    pairs = list(_pairs(step))
    if not pairs:
        return graph
    arrays: _Arrays = {
        name: np.array(graph.constant(name), np.float64)
        for pair in pairs
        for node in pair
        for name in node.inputs[1:]
    }
    for _ in range(_ROUNDS):
        for first, second in pairs:
            _scale_pair(arrays, first, second)
    tensors = dict(graph.tensors)
    for name, data in arrays.items():
        tensors[name] = replace(tensors[name], data=data)
    return graph.replaced(tensors=tensors)


def _pairs(graph: Graph) -> Iterator[tuple[Node, Node]]:
    for first in graph.nodes:
        if not first.has(Trait.WEIGHTS) or not _is_free(graph, first):
            continue
        node: Node | None = _only_reader(graph, first)
        while (
            node is not None
            and node.has(Trait.LETS_SCALES_THROUGH)
            and _keeps_channels(graph, node)
        ):
            node = _only_reader(graph, node)
        if node is not None and node.has(Trait.WEIGHTS) and _is_free(graph, node):
            yield first, node


def _only_reader(graph: Graph, node: Node) -> Node | None:
    readers = graph.consumers(node.name)
    free = graph.tensor(node.name).quant is None and node.name not in graph.outputs
    return readers[0] if free and len(readers) == 1 else None


def _is_free(graph: Graph, node: Node) -> bool:
    """Whether a layer's constants are its own and not quantized, its limits not fixed."""
    return node.attrs.get("activation") != "clamp" and all(
        graph.tensor(name).quant is None and len(graph.consumers(name)) == 1
        for name in node.inputs[1:]
    )


def _keeps_channels(graph: Graph, node: Node) -> bool:
    source, target = graph.tensor(node.inputs[0]).shape, graph.tensor(node.name).shape
    return node.op != "reshape" or source[:2] == target[:2]


def _scale_pair(arrays: _Arrays, first: Node, second: Node) -> None:
    filters = arrays[first.inputs[1]], arrays[second.inputs[1]]
    groups = second.attributes(WeightsAttributes).groups
    # [groups, rows, channels of a group, taps]: a view, as filters are contiguous
    columns = filters[1].reshape(groups, len(filters[1]) // groups, filters[1].shape[1], -1)
    read_limits = np.abs(columns).max(axis=(1, 3)).reshape(-1)
    result_limits = np.abs(filters[0].reshape(len(filters[0]), -1)).max(axis=1)
    used = (read_limits > 0) & (result_limits > 0)
    factor = np.ones_like(result_limits)
    factor[used] = np.clip(np.sqrt(result_limits[used] / read_limits[used]), 1 / _LIMIT, _LIMIT)
    filters[0][...] /= factor.reshape(-1, *[1] * (filters[0].ndim - 1))
    arrays[first.inputs[2]] /= factor
    columns *= factor.reshape(groups, 1, -1, 1)
