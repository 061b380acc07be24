"""The hash that identifies a graph, independent of where and how it is stored."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.frontend.nnef.writing.graph_json import encode_graph
from nnef_hw.ir import Graph

__all__ = ["graph_hash", "structure_hash"]

_CANONICAL = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|u1"}


def graph_hash(graph: Graph) -> str:
    """Return the SHA-256 of a graph's canonical bytes, in hex.

    It covers the name, the stage, inputs, outputs, nodes in order with all attributes, and tensors
    with shapes, labels, QTypes and values; not source locations, the order of the tensor table or
    the width that values are stored in.
    """
    value = encode_graph(
        graph, lambda _, data: _digest(data), lambda _, __, data: _digest(data), locations=False
    )
    value["tensors"].sort(key=lambda tensor: tensor["name"])
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def structure_hash(graph: Graph) -> str:
    """Return the hash of a graph's structure, in which names and labels do not count.

    Equal for a network that two front ends read from two formats.
    """
    order = dict.fromkeys(graph.inputs)
    for node in graph.nodes:
        order.update(dict.fromkeys((*node.inputs, *node.outputs)))
    order.update(dict.fromkeys((*graph.outputs, *graph.states)))
    names = {name: f"t{index}" for index, name in enumerate(order)}
    return graph_hash(
        replace(
            graph,
            name="",
            inputs=tuple(names[name] for name in graph.inputs),
            outputs=tuple(names[name] for name in graph.outputs),
            tensors={
                names[name]: replace(graph.tensor(name), name=names[name], label=None)
                for name in order
            },
            nodes=tuple(
                replace(
                    node,
                    inputs=tuple(names[name] for name in node.inputs),
                    outputs=tuple(names[name] for name in node.outputs),
                )
                for node in graph.nodes
            ),
            states={
                names[name]: replace(state, result=names[state.result], label=None)
                for name, state in graph.states.items()
            },
        )
    )


def _digest(data: Array) -> list[AttributeValue]:
    canonical = np.ascontiguousarray(data, _CANONICAL[data.dtype.kind])
    kind = "i" if data.dtype.kind == "u" else data.dtype.kind
    return [kind, list(data.shape), hashlib.sha256(canonical.tobytes()).hexdigest()]
