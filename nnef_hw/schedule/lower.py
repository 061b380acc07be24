"""A fixed graph as stream layers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from typing import Any

from nnef_hw.errors import UnsupportedError, raise_all
from nnef_hw.ir import Graph
from nnef_hw.schedule import argmax, conv, eltwise, moves, pool, softmax, table
from nnef_hw.schedule.layer import LOWERINGS, Call, Layer
from nnef_hw.schedule.plan import LayerGraph, Port
from nnef_hw.schedule.support import (
    check_streamable,
    image_shape,
    input_stream,
    is_for_host,
    output_stream,
    stream_reordering,
)

__all__ = ["lower"]

LAYERS = (argmax, conv, eltwise, moves, pool, softmax, table)
"""The modules that register how nodes become layers."""


def lower(graph: Graph) -> LayerGraph:
    """Turn a fixed graph into layers.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`check_streamable` finds anything.
    """
    raise_all(check_streamable(graph))
    sources = [input_stream(graph, name) for name in graph.inputs]
    sinks = [output_stream(graph, name) for name in graph.outputs]
    streams = dict(zip((*graph.inputs, *sources), sources * 2, strict=True))
    inputs = _ports("i", graph, graph.inputs, sources, streams)
    layers: list[Layer[Any]] = []
    for node in graph.nodes:
        result = node.outputs[0]
        if node.op == "reshape" and (result in streams or is_for_host(graph, result)):
            continue
        if node.op in {"reshape", "transpose"} and stream_reordering(graph, node).is_trivial:
            streams[node.outputs[0]] = streams[node.inputs[0]]
        else:
            streams[node.outputs[0]] = node.outputs[0]
            layers.append(LOWERINGS[node.op](Call(graph, node, streams)))
    if not layers:
        raise UnsupportedError(f"graph {graph.name!r} has nothing to compute")
    outputs = _ports("o", graph, graph.outputs, sinks, streams)
    return LayerGraph(tuple(layers), inputs, outputs)


def _ports(
    prefix: str,
    graph: Graph,
    names: Sequence[str],
    tensors: Sequence[str],
    streams: Mapping[str, str],
) -> tuple[Port, ...]:
    """Return the ports of inputs or outputs, of which these tensors are streamed."""
    ports: list[Port] = []
    for label, name in zip(_labels(prefix, names), tensors, strict=True):
        tensor = graph.tensor(name)
        image = image_shape(tensor.shape)
        assert image is not None
        assert tensor.qtype is not None
        ports.append(Port(label, streams[name], image, tensor.qtype.bits, tensor.qtype.signed))
    return tuple(ports)


def _labels(prefix: str, names: Sequence[str]) -> list[str]:
    """Return different identifiers, without two underscores in a row: these end a port's name."""
    if len(names) == 1:
        return [prefix]
    labels: list[str] = []
    for name in names:
        label = re.sub(r"[\W_]+", "_", f"{prefix}_{name}", flags=re.ASCII).rstrip("_")
        others = (f"{label}_{n}" for n in count(2))
        labels.append(next(text for text in chain([label], others) if text not in labels))
    return labels
