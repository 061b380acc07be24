"""A fixed graph as stream layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nnef_hw.architecture.architecture import Port, port_labels
from nnef_hw.architecture.kept_rows import KeptRows, find_kept_noise, find_kept_rows
from nnef_hw.errors import raise_all
from nnef_hw.ir import Graph, HostStream, Node, StreamOrder, Trait, stream_image
from nnef_hw.ir.layers import layer_of
from nnef_hw.streaming.filters import contraction, conv
from nnef_hw.streaming.foldings.plan import LayerGraph
from nnef_hw.streaming.foldings.support import check_streamable
from nnef_hw.streaming.layers import (
    argmax,
    data_movement,
    eltwise,
    integer_normalize,
    interpolate,
    log_mel,
    micro_frontend,
    normalize,
    places,
    pool,
    softmax,
    table,
)
from nnef_hw.streaming.layers.kept_caches import find_kept_caches
from nnef_hw.streaming.layers.layer import AnyContext, AnyLayer, StreamContext, lowers
from nnef_hw.streaming.layers.state import DelayLayer, state_layers

__all__ = ["lower"]

LAYERS = (
    argmax, contraction, conv, data_movement, eltwise, integer_normalize, interpolate, log_mel,
    micro_frontend, normalize, places, pool, softmax, table,
)  # fmt: skip
"""The modules that register how nodes become layers."""

lowers.require_all()


def lower(graph: Graph) -> LayerGraph:
    """Turn a fixed graph into layers, the same ones whenever it is asked.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`check_streamable` finds anything.
    """
    return graph.once(_lowered)


def _lowered(graph: Graph) -> LayerGraph:
    raise_all(check_streamable(graph))
    order = graph.once(StreamOrder)
    streams = {
        name: stream.tensor
        for source, stream in order.inputs.items()
        for name in (source, stream.tensor)
    }
    streams.update({name: name for name in graph.states})
    inputs = _ports("i", graph, graph.inputs, order.inputs, streams)
    layers: list[AnyLayer] = []
    keeping, caches = find_kept_noise(graph, find_kept_rows(graph)), find_kept_caches(graph)
    for node in graph.nodes:
        if node.op == "split_steps":
            # Its steps follow each other in the stream already.
            streams[node.name] = streams[node.inputs[0]]
        elif node.name in keeping.nodes:
            rows = keeping.rows.get(node.name)
            if rows is not None and rows.is_delay:
                layers.append(_delay(graph, node, rows, streams))
                streams[node.name] = node.name
            elif rows is not None:
                streams[node.name] = streams[rows.source]
        elif node.name in caches.nodes:
            continue
        elif not node.has(Trait.MOVES):
            streams[node.name] = node.name
            layer = layer_of(graph, node)
            cache = caches.products.get(node.name)
            context = StreamContext(layer, streams, order, keeping.rows, cache)
            layers.append(_layer(graph, context))
        elif node.name in order.moved:
            # Moves in a row are one: it stands for all, from what was computed last.
            origin, _ = order.origin(node.name)
            reordering = order.reordering(node.name)
            if reordering is not None and reordering.is_trivial:
                streams[node.name] = streams[origin]
            else:
                streams[node.name] = node.name
                move = layer_of(graph, node).reading(graph.tensor(origin))
                layers.append(_layer(graph, StreamContext(move, streams, order)))
    outputs = _ports("o", graph, graph.outputs, order.outputs, streams)
    kept = keeping.states | caches.states
    loops = {name: state for name, state in graph.states.items() if name not in kept}
    layers = [*state_layers(graph, loops, streams), *layers]
    names = {name for layer in layers for name in (*layer.sources, layer.tensor)}
    images = {name: stream_image(graph.tensor(name).shape) for name in sorted(names)}
    return LayerGraph(tuple(layers), inputs, outputs, images)


def _layer(graph: Graph, context: AnyContext) -> AnyLayer:
    node = context.layer.node
    return replace(lowers[node.op](context), repeats=graph.steps(node.name))


def _delay(graph: Graph, node: Node, rows: KeptRows, streams: Mapping[str, str]) -> DelayLayer:
    """Return the layer that gives rows of steps before."""
    tensor = graph.tensor(node.name)
    assert tensor.qtype is not None
    row = tensor.volume // rows.new
    return DelayLayer(
        name=node.name, node=node, sources=(streams[rows.source],), source=tensor.qtype,
        target=tensor.qtype, count=rows.past * row, frame=rows.new * row, code=rows.code,
    )  # fmt: skip


def _ports(
    prefix: str,
    graph: Graph,
    names: Sequence[str],
    sent: Mapping[str, HostStream],
    streams: Mapping[str, str],
) -> tuple[Port, ...]:
    """Return the ports of inputs or outputs, given how they are streamed."""
    ports: list[Port] = []
    for label, name in zip(port_labels(prefix, names), names, strict=True):
        stream = sent[name]
        qtype = graph.tensor(stream.tensor).qtype
        assert qtype is not None
        ports.append(Port(label, streams[stream.tensor], stream.image, qtype.bits, qtype.signed))
    return tuple(ports)
