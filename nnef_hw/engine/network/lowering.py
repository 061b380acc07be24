"""A fixed graph becomes the engine's layers, in the order in which they run."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from nnef_hw.architecture.architecture import Port, port_labels
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers import contraction, conv, gather, pairs, pool, unit_functions
from nnef_hw.engine.layers.constant import ConstantLayer, KeptState, LookupLayer, expanded
from nnef_hw.engine.layers.ends import Head, Tail, find_heads, heads
from nnef_hw.engine.layers.formats import LANES, Image, Residual
from nnef_hw.engine.layers.layer import AnyContext, EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.pieces import is_idle
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.pool import engine_table
from nnef_hw.engine.layers.support import (
    check_engine,
    find_move,
    find_tails,
    memory_image,
    place_count,
)
from nnef_hw.engine.network.network import Input, Network, Sink
from nnef_hw.errors import raise_all
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Graph, HostStream, Node, StreamOrder, Trait
from nnef_hw.ir.layers import CausalMask, Layer, Sum, Table, WriteRow, layer_of

__all__ = ["lower"]

LAYERS = (contraction, conv, gather, pairs, pool, unit_functions)
"""The modules that register how nodes become layers."""


def lower(graph: Graph, device: Device) -> Network:
    """Turn a fixed graph into layers; sums are computed by the layer of their later operand.

    They are the same ones whenever it is asked for a device.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`.check_engine` finds anything.
    """
    return graph.once(_lowered, device)


def _lowered(graph: Graph, device: Device) -> Network:
    raise_all(check_engine(graph))
    return _Lowering(graph, device).network()


class _Lowering:
    """The layers of a graph so far, and the tensors that they make or rename."""

    def __init__(self, graph: Graph, device: Device) -> None:
        self._graph, self._device = graph, device
        self._order = graph.once(StreamOrder)
        self._tails = find_tails(graph, self._order)
        self._heads = find_heads(graph, self._order)
        self._ahead = set(
            chain.from_iterable((*head.names, *head.states) for head in self._heads.values())
        )
        # The tensor in memory of every one of the graph's.
        self._tensors: dict[str, str] = {}
        self._layers: list[EngineLayer] = []
        # Tensors of which places behind a chosen one do not count.
        self._hidden: dict[str, Place] = {}

    def network(self) -> Network:
        """Return the network, with what is between its layers and the ports."""
        graph = self._graph
        for name in graph.inputs:
            head = self._heads.get(name)
            source = self._order.inputs[name].tensor if head is None else head.node.name
            self._tensors |= {name: source, source: source}
        self._tensors |= {name: name for name in graph.states if name not in self._ahead}
        # What is behind the last node of an output is that, or a move which the host makes.
        tails = {node.name for node in self._tails.values()}
        for node in graph.nodes:
            if self._order.origin(node.name)[0] not in tails and node.name not in self._ahead:
                self._add(node)
        inputs = zip(port_labels("i", graph.inputs), graph.inputs, strict=True)
        sources = tuple(self._source(label, name) for label, name in inputs)
        images = {source.tensor: source.image for source in sources}
        images |= {layer.tensor: layer.target for layer in self._layers}
        states = tuple(
            KeptState.of(graph, name, self._tensors[state.result])
            for name, state in graph.states.items()
            if name not in self._ahead
        )
        outputs = zip(port_labels("o", graph.outputs), graph.outputs, strict=True)
        sinks = tuple(self._sink(label, name, images) for label, name in outputs)
        return Network(graph.name, tuple(self._layers), sources, sinks, states)

    def _add(self, node: Node) -> None:
        if node.has(Trait.MOVES):
            self._add_move(node)
        elif node.has(Trait.INDEXED):
            self._add_indexed(node)
        else:
            self._add_computed(node)

    def _add_move(self, node: Node) -> None:
        """Add a move of codes, unless it leaves words as they are, however long these are."""
        graph, order = self._graph, self._order
        move = find_move(graph, order, node)
        if move is None or all(is_idle(move, lanes) for lanes in LANES):
            self._tensors.setdefault(node.name, self._tensors[node.inputs[0]])
            return
        read = layer_of(graph, node).reading(graph.tensor(order.origin(node.name)[0]))
        context: AnyContext = EngineContext(read, self._tensors, self._device)
        self._layers.append(gather.lower_move(context, move))
        self._tensors[node.name] = node.name

    def _add_indexed(self, node: Node) -> None:
        """Add what an integer of an input chooses: a row of a table or cache, or what is masked."""
        self._tensors[node.name] = node.name
        context: AnyContext = EngineContext(
            layer_of(self._graph, node), self._tensors, self._device
        )
        place = self._place(context.layer)
        if isinstance(context.layer, CausalMask):
            self._tensors[node.name] = self._tensors[node.inputs[0]]
            self._hidden[node.name] = place
        elif isinstance(context.layer, WriteRow):
            self._write_row(context, place)
        else:
            self._layers.append(LookupLayer.lowered(context, place))

    def _add_computed(self, node: Node) -> None:
        """Add a layer, or what a sum or a function is to the layer before it."""
        layers = self._layers
        self._tensors[node.name] = node.name
        context: AnyContext = EngineContext(
            expanded(layer_of(self._graph, node)), self._tensors, self._device
        )
        self._write_constants(context)
        is_sum = isinstance(context.layer, Sum)
        if is_sum:
            self._put_longer_last(context)
        place = self._last_reader(context)
        if place is not None and isinstance(context.layer, Table) and layers[place].may_look_up:
            changed: Fields = {"tensor": node.name, "table": engine_table(context)}
            layers[place] = replace(layers[place], **changed)
        elif place is not None and is_sum and _may_add(context, layers[place]):
            layers[place] = _fused(context, layers[place])
        else:
            layers.append(lowers[node.op](context))
        if node.inputs[0] in self._hidden:
            changed = {"place": self._hidden[node.inputs[0]]}
            layers[-1] = replace(layers[-1], **changed)

    def _source(self, label: str, name: str) -> Input:
        """Return an input, with what stands between its port and the array."""
        graph, order = self._graph, self._order
        stream, head = order.inputs[name], self._heads.get(name)
        port = self._port(label, stream, stream.tensor)
        if head is None:
            return Input(port, port.tensor, Image(*memory_image(graph, order, port.tensor)))
        node = head.node
        made = heads[node.op](layer_of(graph, node), self._device, bool(head.states))
        image, qtype = memory_image(graph, order, node.name), graph.tensor(node.name).qtype
        assert qtype is not None
        inner = Port(port.name, node.name, image, qtype.bits, qtype.signed)
        return Input(inner, node.name, Image(*image), Head(node, port, made))

    def _sink(self, label: str, name: str, images: dict[str, Image]) -> Sink:
        """Return an output, with what stands between memory and its port."""
        stream, tail = self._order.outputs[name], self._tails.get(name)
        result = self._tensors[stream.tensor if tail is None else tail.inputs[0]]
        qtype = self._graph.tensor(result).qtype
        assert qtype is not None
        port = self._port(label, stream, result if tail is None else tail.name)
        behind = None if tail is None else Tail.of(layer_of(self._graph, tail), self._device)
        return Sink(port, result, images[result], qtype.bits, qtype.signed, behind)

    def _port(self, label: str, stream: HostStream, tensor: str) -> Port:
        qtype = self._graph.tensor(stream.tensor).qtype
        assert qtype is not None
        return Port(label, tensor, stream.image, qtype.bits, qtype.signed)

    def _place(self, layer: Layer) -> Place:
        """Return the input whose integer a layer takes, and of how many places it is one."""
        origin = self._order.origin(layer.operands[-1].name)[0]
        ports = [self._order.inputs[name].tensor for name in self._graph.inputs]
        return Place(ports.index(origin), place_count(layer))

    def _write_row(self, context: EngineContext[WriteRow], place: Place) -> None:
        """Let the layer that computes a row write it to its place, if nothing else needs it.

        Otherwise a layer of its own moves the row there. What the cache was before nobody reads.
        """
        row, layers = context.operands[1], self._layers
        n = next((n for n, layer in enumerate(layers) if layer.tensor == row), None)
        if n is None or not layers[n].may_write_row or not self._is_read_here(context, row):
            layers.append(gather.row_layer(context, place))
            return
        changed: Fields = {"tensor": context.layer.result.name, "row": place}
        layers[n] = replace(layers[n], **changed)

    def _write_constants(self, context: AnyContext) -> None:
        """Put constant operands in front of the layer whose codes they meet: it may add them."""
        layers, tensors = self._layers, self._tensors
        others = {tensors[x.name] for x in context.layer.operands if x.data is None}
        places = [n for n, layer in enumerate(layers) if layer.tensor in others]
        for constant in context.layer.operands:
            if constant.data is not None:
                layers.insert(
                    max(places, default=len(layers)), ConstantLayer.of(context.layer, constant)
                )
                tensors[constant.name] = constant.name

    def _put_longer_last(self, context: EngineContext[Sum]) -> None:
        """Let that operand come later of which a code takes more products, if the order is free.

        The sum is computed by the layer of the later one, where there is time for it.
        """
        layers = self._layers
        places = [n for n, layer in enumerate(layers) if layer.tensor in context.operands]
        if len(places) < 2:
            return
        *_, early, late = places
        between = {layer.tensor for layer in layers[early:late]}
        long, short = layers[early], layers[late]
        is_free = between.isdisjoint(short.operands) and self._is_read_here(context, long.tensor)
        if is_free and _may_add(context, long) and short.products < long.products:
            layers.insert(early, layers.pop(late))

    def _last_reader(self, context: AnyContext) -> int | None:
        """Return the place of the later operand's layer, if a node alone reads its result."""
        places = (n for n, x in enumerate(self._layers) if x.tensor in context.operands)
        later = max(places, default=None)
        if later is None:
            return None
        return later if self._is_read_here(context, self._layers[later].tensor) else None

    def _is_read_here(self, context: AnyContext, tensor: str) -> bool:
        """Whether a layer alone reads a tensor."""
        graph = self._graph
        aliases = [name for name, stands in context.tensors.items() if stands == tensor]
        readers: list[Node] = [
            node for name in aliases for node in graph.consumers(name)
            # moves that are layers of their own read it, too, also those to come
            if not node.has(Trait.MOVES) or context.tensors.get(node.name) != tensor
        ]  # fmt: skip
        kept = (*graph.outputs, *(state.result for state in graph.states.values()))
        is_kept = any(context.tensors.get(name) == tensor for name in kept)
        return readers == [context.layer.node] and not is_kept


def _may_add(context: EngineContext[Sum], layer: EngineLayer) -> bool:
    """Whether a layer has nothing behind its sums yet, and the operands are two tensors."""
    return len({*context.operands}) > 1 and layer.may_add


def _fused(context: EngineContext[Sum], layer: EngineLayer) -> EngineLayer:
    own = context.operands.index(layer.tensor)
    residual = Residual.of(context.layer, own, context.operands[1 - own])
    changed: Fields = {"tensor": context.layer.result.name, "residual": residual}
    return replace(layer, **changed)
