"""A fixed graph as layers of the engine, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nnef_hw.architecture.architecture import Port, port_labels
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers import contraction, conv, gather, pairs, pool, unit_functions
from nnef_hw.engine.layers.constant import (
    ConstantLayer,
    KeptState,
    LookupLayer,
    expanded,
)
from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.ends import Head, HeadNodes, Tail, find_heads, heads
from nnef_hw.engine.layers.layer import (
    LANES,
    AnyContext,
    EngineContext,
    EngineLayer,
    Image,
    Residual,
    lowers,
)
from nnef_hw.engine.layers.pieces import WordView, is_idle
from nnef_hw.engine.layers.place import Place
from nnef_hw.engine.layers.pool import engine_table
from nnef_hw.engine.layers.support import (
    check_engine,
    find_move,
    find_tails,
    memory_image,
    place_count,
)
from nnef_hw.errors import raise_all
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import Graph, HostStream, Node, StreamOrder, Trait
from nnef_hw.ir.layers import CausalMask, Layer, Sum, Table, WriteRow, layer_of

__all__ = ["Arrangement", "Loading", "Network", "lower"]

LAYERS = (contraction, conv, gather, pairs, pool, unit_functions)
"""The modules that register how nodes become layers."""


@dataclass(frozen=True, slots=True)
class Loading:
    """Words that beats of an input become: rows of codes, of which windows are words.

    Parameters
    ----------
    rows, length
        Rows, and codes of each, padding included.
    lead, real
        Codes of padding in front; codes that come, behind which padding follows.
    window, step
        Codes up to the first word of a row, and from a word to the next one.
    pad
        Code of the padding.
    codes
        Codes of a beat: one; or those of a word, where none of it is padding, or of a pixel of
        which several are in a word. Rows, windows and steps are counted in beats.
    """

    rows: int
    length: int
    lead: int
    real: int
    window: int
    step: int
    pad: int
    codes: int = 1

    @classmethod
    def of(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of an image as it is: every pixel in whole words."""
        if image.channels % lanes == 0:
            return cls.by_word(image, lanes)
        return cls.by_code(image, lanes)

    @classmethod
    def filled(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of pixels whose first word is filled up with the codes before."""
        if image.channels < lanes or image.channels % lanes == 0:
            return cls.by_word(image, min(image.channels, lanes))
        window = image.channels - (image.blocks(lanes) - 1) * lanes
        return cls(image.pixels, image.channels, 0, image.channels, window, lanes, 0)

    @classmethod
    def by_code(cls, image: Image, lanes: int) -> Loading:
        """Return the loading of an image as it is, of which each beat brings a code."""
        length = image.blocks(lanes) * lanes
        return cls(image.pixels, length, 0, image.channels, lanes, lanes, 0)

    @classmethod
    def by_word(cls, image: Image, codes: int) -> Loading:
        """Return the loading of pixels of which each beat brings a word, or its upper codes."""
        beats = image.channels // codes
        return cls(image.pixels, beats, 0, beats, 1, 1, 0, codes)

    @classmethod
    def packed(cls, layer: ConvLayer) -> Loading:
        """Return the loading of a layer's operand whose windows have their rows in one word."""
        window, stride = layer.window.kernel[1], layer.window.stride[1]
        lead, real = layer.window.padding[1][0], layer.source.width
        reach = (layer.target.width - 1) * stride + window
        return cls(
            layer.source.height, max(reach, lead + real), lead, real, window, stride, layer.pad,
            layer.source.channels,
        )  # fmt: skip

    @classmethod
    def joined(cls, image: Image, together: int) -> Loading:
        """Return the loading of an image of which so many pixels of a row are a word."""
        return cls(image.height, image.width, 0, image.width, together, together, 0, image.channels)

    @property
    def is_padded(self) -> bool:
        """Whether any beats are padding."""
        return self.real < self.length

    @property
    def cycles(self) -> int:
        """Cycles that it takes."""
        return self.rows * self.length

    @property
    def words(self) -> int:
        """Words that it makes."""
        return self.rows * ((self.length - self.window) // self.step + 1)


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the array.

    Parameters
    ----------
    port
        Its port; behind a head what that gives.
    tensor, image
        The tensor that it brings, and that one's image in memory.
    head
        What stands between the port and the array.
    """

    port: Port
    tensor: str
    image: Image
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    """An output.

    Parameters
    ----------
    port
        Its port.
    tensor, image
        The tensor that is sent, and its image in memory.
    bits, signed
        Format of its codes.
    tail
        What stands between these and the port.
    """

    port: Port
    tensor: str
    image: Image
    bits: int
    signed: bool
    tail: Tail | None

    @property
    def instance(self) -> str:
        """Name of the tail's instance: that of the only one is ``tail``."""
        return f"tail{self.port.name.removeprefix('o')}"

    @property
    def codes(self) -> int:
        """Codes that are sent."""
        return self.image.pixels * self.image.channels


class Arrangement(NamedTuple):
    """A network for words of some size.

    Attributes
    ----------
    loadings
        How inputs become words.
    layers
        Layers that follow.
    states
        States, with the names of their next values among these.
    beginnings
        Layers that run once, before the first frame and behind initial values of states.
    filled
        States that never change, which are in memory when the FPGA is configured.
    """

    loadings: tuple[Loading, ...]
    layers: tuple[EngineLayer, ...]
    states: tuple[KeptState, ...]
    beginnings: tuple[EngineLayer, ...] = ()
    filled: tuple[KeptState, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in the order in which they run, between inputs and outputs.

    Parameters
    ----------
    name
        Name of the model.
    layers
        The layers.
    sources, sinks
        Inputs and outputs, in the order in which they are loaded and sent.
    states
        What a frame leaves for the next one.
    """

    name: str
    layers: tuple[EngineLayer, ...]
    sources: tuple[Input, ...]
    sinks: tuple[Sink, ...]
    states: tuple[KeptState, ...] = ()

    def fits(self, lanes: int) -> bool:
        """Whether codes that change their places do so in words of so many."""
        moves = [layer for layer in self.layers if isinstance(layer, gather.GatherLayer)]
        rows = [layer for layer in self.layers if layer.row is not None]
        are_whole = all(row.target.channels % lanes == 0 for row in rows)
        return are_whole and all(layer.fits(lanes) for layer in moves)

    @property
    def sent(self) -> frozenset[str]:
        """Names of the tensors that are outputs."""
        return frozenset(sink.tensor for sink in self.sinks)

    @property
    def _kept(self) -> frozenset[str]:
        """Names of the tensors that are there when all layers have run: sent, or kept."""
        return self.sent | {state.result for state in self.states}

    def arranged(self, lanes: int) -> Arrangement:
        """Return how inputs are loaded for words of so many codes, and the layers that follow."""
        loadings, layers = [], list(self.layers)
        for source in self.sources:
            loading = Loading.of(source.image, lanes)
            readers = [n for n, layer in enumerate(layers) if source.tensor in layer.operands]
            reader = layers[readers[0]] if readers else None
            is_alone = len(readers) == 1 and source.tensor not in self._kept
            layer = reader
            if is_alone and isinstance(reader, ConvLayer) and reader.operands == (source.tensor,):
                loading, layer = _loading(reader, source.image, lanes)
            if source.port.image[2] % loading.codes or (source.head and loading.codes > 1):
                # The host's pixels are others than those in memory, and end within a word; and
                # what a head gives are single codes.
                loading, layer = Loading.by_code(source.image, lanes), reader
            if readers and layer is not None:
                layers[readers[0]] = layer
            loadings.append(loading)
        names: dict[str, str] = {}
        working = tuple(self._working(layers, lanes, names))
        states = tuple(state.renamed(names) for state in self.states)
        return Arrangement(tuple(loadings), working, states)

    def _working(
        self, layers: Sequence[EngineLayer], lanes: int, names: dict[str, str]
    ) -> Iterator[EngineLayer]:
        """Return the layers without moves of whole words that nobody needs.

        Words that stay as they are, in their order, whose tensors get other ``names``, and those
        that products of two activations find where they come from.
        """
        sent = self.sent
        views: dict[str, WordView] = {}
        found: list[EngineLayer] = []
        for layer in layers:
            own = layer.renamed(names)
            if isinstance(own, gather.GatherLayer):
                view = own.view(lanes)
                if own.is_idle(lanes) and own.tensor not in sent:
                    names[own.tensor] = own.operand
                    continue
                before = views.get(own.operand)
                whole = view if before is None or view is None else before.behind(view)
                if whole is not None:
                    views[own.tensor] = whole
            found.append(own.viewing(views, lanes) if isinstance(own, ContractionLayer) else own)
        read = {names.get(name, name) for name in self._kept}
        for own in reversed(found):
            is_read = not isinstance(own, gather.GatherLayer) or own.tensor in read
            read |= {*own.operands} if is_read else set()
        return (x for x in found if not isinstance(x, gather.GatherLayer) or x.tensor in read)


def _loading(layer: ConvLayer, image: Image, lanes: int) -> tuple[Loading, ConvLayer]:
    """Return how the only layer that reads an input has it loaded, and that layer then."""
    packed = layer.packed(lanes)
    if packed is not None:
        return Loading.packed(layer), packed
    together = layer.pixels_together(lanes)
    if together > 1:
        return Loading.joined(image, together), layer.joined(lanes)
    return Loading.filled(image, lanes), layer.filled(lanes)


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
    order = graph.once(StreamOrder)
    ends = find_tails(graph, order)
    tail_names = {node.name for node in ends.values()}
    begins = find_heads(graph, order)
    ahead = {name for head in begins.values() for name in (*head.names, *head.states)}
    tensors: dict[str, str] = {}
    for name in graph.inputs:
        head = begins.get(name)
        source = order.inputs[name].tensor if head is None else head.node.name
        tensors |= {name: source, source: source}
    tensors |= {name: name for name in graph.states if name not in ahead}
    layers: list[EngineLayer] = []
    hidden: dict[str, Place] = {}
    for node in graph.nodes:
        if order.origin(node.name)[0] in tail_names:
            # The last node of an output, or a move behind it, which the host makes.
            continue
        if node.name in ahead:
            continue
        if node.has(Trait.MOVES):
            move = find_move(graph, order, node)
            if move is None or all(is_idle(move, lanes) for lanes in LANES):
                tensors.setdefault(node.name, tensors[node.inputs[0]])
            else:
                read = layer_of(graph, node).reading(graph.tensor(order.origin(node.name)[0]))
                layers.append(gather.lower_move(EngineContext(read, tensors, device), move))
                tensors[node.name] = node.name
            continue
        tensors[node.name] = node.name
        if node.has(Trait.INDEXED):
            indexed: AnyContext = EngineContext(layer_of(graph, node), tensors, device)
            chosen = _place(graph, order, indexed.layer)
            if isinstance(indexed.layer, CausalMask):
                tensors[node.name], hidden[node.name] = tensors[node.inputs[0]], chosen
            elif isinstance(indexed.layer, WriteRow):
                _write_row(graph, indexed, chosen, layers)
            else:
                layers.append(LookupLayer.lowered(indexed, chosen))
            continue
        layer = expanded(layer_of(graph, node))
        context: AnyContext = EngineContext(layer, tensors, device)
        _write_constants(context, layers, tensors)
        is_sum = isinstance(context.layer, Sum)
        if is_sum:
            _put_longer_last(graph, context, layers)
        place = _last_reader(graph, context, layers)
        if place is not None and isinstance(context.layer, Table) and layers[place].may_look_up:
            changed: Fields = {"tensor": node.name, "table": engine_table(context)}
            layers[place] = replace(layers[place], **changed)
        elif place is not None and is_sum and _may_add(context, layers[place]):
            layers[place] = _fused(context, layers[place])
        else:
            layers.append(lowers[node.op](context))
        if node.inputs[0] in hidden:
            changed = {"place": hidden[node.inputs[0]]}
            layers[-1] = replace(layers[-1], **changed)
    sources = []
    labels = port_labels("i", graph.inputs)
    for label, name in zip(labels, graph.inputs, strict=True):
        sent = order.inputs[name]
        sources.append(_input(graph, order, device, _port(label, graph, sent, sent.tensor),
                              begins.get(name)))  # fmt: skip
    images = {source.tensor: source.image for source in sources}
    images |= {layer.tensor: layer.target for layer in layers}
    states = tuple(
        KeptState.of(graph, name, tensors[state.result])
        for name, state in graph.states.items()
        if name not in ahead
    )
    sinks = []
    for label, name in zip(port_labels("o", graph.outputs), graph.outputs, strict=True):
        received, tail = order.outputs[name], ends.get(name)
        result = tensors[received.tensor if tail is None else tail.inputs[0]]
        qtype = graph.tensor(result).qtype
        assert qtype is not None
        port = _port(label, graph, received, result if tail is None else tail.name)
        behind = None if tail is None else Tail.of(layer_of(graph, tail), device)
        sinks.append(Sink(port, result, images[result], qtype.bits, qtype.signed, behind))
    return Network(graph.name, tuple(layers), tuple(sources), tuple(sinks), states)


def _input(
    graph: Graph, order: StreamOrder, device: Device, port: Port, begin: HeadNodes | None
) -> Input:
    """Return an input, with what stands between its port and the array."""
    if begin is None:
        return Input(port, port.tensor, Image(*memory_image(graph, order, port.tensor)))
    node = begin.node
    made = heads[node.op](layer_of(graph, node), device, bool(begin.states))
    image, qtype = memory_image(graph, order, node.name), graph.tensor(node.name).qtype
    assert qtype is not None
    inner = Port(port.name, node.name, image, qtype.bits, qtype.signed)
    return Input(inner, node.name, Image(*image), Head(node, port, made))


def _write_row(
    graph: Graph, context: EngineContext[WriteRow], place: Place, layers: list[EngineLayer]
) -> None:
    """Let the layer that computes a row write it to its place, if nothing else needs it.

    Otherwise a layer of its own moves the row there. What the cache was before nobody reads.
    """
    row = context.operands[1]
    n = next((n for n, layer in enumerate(layers) if layer.tensor == row), None)
    if n is None or not layers[n].may_write_row or not _is_read_here(graph, context, row):
        layers.append(gather.row_layer(context, place))
        return
    changed: Fields = {"tensor": context.layer.result.name, "row": place}
    layers[n] = replace(layers[n], **changed)


def _place(graph: Graph, order: StreamOrder, layer: Layer) -> Place:
    """Return the input whose integer a layer takes, and of how many places it is one."""
    origin = order.origin(layer.operands[-1].name)[0]
    port = [order.inputs[name].tensor for name in graph.inputs].index(origin)
    return Place(port, place_count(layer))


def _port(name: str, graph: Graph, stream: HostStream, tensor: str) -> Port:
    qtype = graph.tensor(stream.tensor).qtype
    assert qtype is not None
    return Port(name, tensor, stream.image, qtype.bits, qtype.signed)


def _write_constants(
    context: AnyContext, layers: list[EngineLayer], tensors: dict[str, str]
) -> None:
    """Put constant operands in front of the layer whose codes they meet: it may add them."""
    others = {tensors[x.name] for x in context.layer.operands if x.data is None}
    places = [n for n, layer in enumerate(layers) if layer.tensor in others]
    for constant in context.layer.operands:
        if constant.data is not None:
            layers.insert(
                max(places, default=len(layers)), ConstantLayer.of(context.layer, constant)
            )
            tensors[constant.name] = constant.name


def _may_add(context: EngineContext[Sum], layer: EngineLayer) -> bool:
    """Whether a layer has nothing behind its sums yet, and the operands are two tensors."""
    return len({*context.operands}) > 1 and layer.may_add


def _put_longer_last(graph: Graph, context: EngineContext[Sum], layers: list[EngineLayer]) -> None:
    """Let that operand come later of which a code takes more products, if the order is free.

    The sum is computed by the layer of the later one, where there is time for it.
    """
    places = [n for n, layer in enumerate(layers) if layer.tensor in context.operands]
    if len(places) < 2:
        return
    *_, early, late = places
    between = {layer.tensor for layer in layers[early:late]}
    long, short = layers[early], layers[late]
    is_free = between.isdisjoint(short.operands) and _is_read_here(graph, context, long.tensor)
    if is_free and _may_add(context, long) and short.products < long.products:
        layers.insert(early, layers.pop(late))


def _last_reader(graph: Graph, context: AnyContext, layers: list[EngineLayer]) -> int | None:
    """Return the place of the later layer of a node's operands, if nobody else reads its result."""
    places = (n for n, layer in enumerate(layers) if layer.tensor in context.operands)
    later = max(places, default=None)
    if later is None:
        return None
    return later if _is_read_here(graph, context, layers[later].tensor) else None


def _is_read_here(graph: Graph, context: AnyContext, tensor: str) -> bool:
    """Whether a layer alone reads a tensor."""
    aliases = [name for name, stands in context.tensors.items() if stands == tensor]
    readers: list[Node] = [
        node for name in aliases for node in graph.consumers(name)
        # moves that are layers of their own read it, too, also those to come
        if not node.has(Trait.MOVES) or context.tensors.get(node.name) != tensor
    ]  # fmt: skip
    kept = (*graph.outputs, *(state.result for state in graph.states.values()))
    is_kept = any(context.tensors.get(name) == tensor for name in kept)
    return readers == [context.layer.node] and not is_kept


def _fused(context: EngineContext[Sum], layer: EngineLayer) -> EngineLayer:
    own = context.operands.index(layer.tensor)
    residual = Residual.of(context.layer, own, context.operands[1 - own])
    changed: Fields = {"tensor": context.layer.result.name, "residual": residual}
    return replace(layer, **changed)
