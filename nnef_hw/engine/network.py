"""A fixed graph as layers of the engine, one after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from nnef_hw.architecture import Port
from nnef_hw.devices import Device
from nnef_hw.engine import conv, depthwise, pool
from nnef_hw.engine.conv import ConvLayer
from nnef_hw.engine.layer import Call, Format, Image, Layer, Residual, lowers
from nnef_hw.engine.pool import engine_table
from nnef_hw.engine.support import check_engine, is_tail, tail_of
from nnef_hw.engine.tail import Tail
from nnef_hw.errors import raise_all
from nnef_hw.ir import Graph, HostStream, Node, StreamOrder, Trait

__all__ = ["Loading", "Network", "lower"]

LAYERS = (conv, depthwise, pool)
"""The modules that register how nodes become layers."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How codes of the input become words: rows of codes, of which windows are words.

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
    """

    rows: int
    length: int
    lead: int
    real: int
    window: int
    step: int
    pad: int

    @classmethod
    def of(cls, image: Image, lanes: int) -> Loading:
        """Return that of an image as it is: every pixel in whole words."""
        length = image.blocks(lanes) * lanes
        return cls(image.pixels, length, 0, image.channels, lanes, lanes, 0)

    @classmethod
    def packed(cls, layer: ConvLayer, lanes: int) -> Loading:
        """Return that of the operand of a layer whose windows have their rows in one word."""
        channels, columns = layer.source.channels, layer.window.kernel[1]
        stride, (left, _) = layer.window.stride[1], layer.window.padding[1]
        lead, real = left * channels, layer.source.width * channels
        window = columns * channels
        reach = (layer.target.width - 1) * stride * channels + window
        return cls(
            layer.source.height, max(reach, lead + real), lead, real, window, stride * channels,
            layer.pad,
        )  # fmt: skip

    @property
    def cycles(self) -> int:
        """Cycles that it takes."""
        return self.rows * self.length

    @property
    def words(self) -> int:
        """Words that it makes."""
        return self.rows * ((self.length - self.window) // self.step + 1)


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in the order in which they run, between an input and an output.

    Parameters
    ----------
    name
        Name of the model.
    layers
        The layers.
    input, output
        The ports.
    source, result
        Tensor that is loaded, and the one that is sent.
    result_bits, result_signed
        Format of the codes that are sent.
    tail
        What stands between these and the output.
    """

    name: str
    layers: tuple[Layer, ...]
    input: Port
    output: Port
    source: str
    result: str
    result_bits: int
    result_signed: bool
    tail: Tail | None

    @property
    def ports(self) -> tuple[Port, Port]:
        """Input and output."""
        return self.input, self.output

    @property
    def result_image(self) -> Image:
        """Image of what is sent."""
        for layer in self.layers:
            if layer.tensor == self.result:
                return layer.target
        return Image(*self.input.image)

    def loading(self, lanes: int) -> tuple[Loading, tuple[Layer, ...]]:
        """Return how the input is loaded for words of so many codes, and the layers that follow."""
        readers = [layer for layer in self.layers if self.source in layer.operands]
        image = Image(*self.input.image)
        plain = Loading.of(image, lanes), self.layers
        if len(readers) != 1 or self.result == self.source:
            return plain
        [reader] = readers
        if not isinstance(reader, ConvLayer) or reader.operand != self.source:
            return plain
        packed = reader.packed(lanes)
        if packed is None:
            return plain
        layers = tuple(packed if layer is reader else layer for layer in self.layers)
        return Loading.packed(reader, lanes), layers


def lower(graph: Graph, device: Device) -> Network:
    """Turn a fixed graph into layers; sums are computed by the layer of their later operand.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If :func:`.check_engine` finds anything.
    """
    raise_all(check_engine(graph))
    [name] = graph.inputs
    order = StreamOrder(graph)
    sent, received = order.inputs[name], order.outputs[graph.outputs[0]]
    source = sent.tensor
    tensors = {name: source, source: source}
    tail = tail_of(graph)
    layers: list[Layer] = []
    for node in graph.nodes:
        if is_tail(graph, node):
            continue
        if node.has(Trait.MOVES):
            tensors.setdefault(node.name, tensors[node.inputs[0]])
            continue
        tensors[node.name] = node.name
        call = Call(graph, node, tensors)
        if node.has(Trait.ARITHMETIC):
            _put_longer_last(call, layers)
        place = _last_reader(call, layers)
        if place is not None and node.has(Trait.TABLE) and layers[place].table is None:
            changed: dict[str, Any] = {"tensor": node.name, "table": engine_table(call)}
            layers[place] = replace(layers[place], **changed)
        elif place is not None and node.has(Trait.ARITHMETIC) and _may_add(call, layers[place]):
            layers[place] = _fused(call, layers[place])
        else:
            layers.append(lowers[node.op](call))
    result = tensors[received.tensor if tail is None else tail.inputs[0]]
    qtype = graph.tensor(result).qtype
    assert qtype is not None
    return Network(
        name=graph.name,
        layers=tuple(layers),
        input=_port("i", graph, sent, source),
        output=_port("o", graph, received, result if tail is None else tail.name),
        source=source,
        result=result,
        result_bits=qtype.bits,
        result_signed=qtype.signed,
        tail=None if tail is None else Tail.of(graph, tail, device),
    )


def _port(name: str, graph: Graph, stream: HostStream, tensor: str) -> Port:
    qtype = graph.tensor(stream.tensor).qtype
    assert qtype is not None
    return Port(name, tensor, stream.image, qtype.bits, qtype.signed)


def _may_add(call: Call, layer: Layer) -> bool:
    """Whether a layer has nothing behind its sums yet, and the operands are two tensors."""
    names = {call.tensors[name] for name in call.node.inputs}
    return len(names) > 1 and layer.residual is None and layer.table is None


def _put_longer_last(call: Call, layers: list[Layer]) -> None:
    """Let that operand come later of which a code takes more products, if the order is free.

    The sum is computed by the layer of the later one, where there is time for it.
    """
    names = [call.tensors.get(name) for name in call.node.inputs]
    places = [n for n, layer in enumerate(layers) if layer.tensor in names]
    if len(places) < 2:
        return
    *_, early, late = places
    between = {layer.tensor for layer in layers[early:late]}
    long, short = layers[early], layers[late]
    is_free = between.isdisjoint(short.operands) and _is_read_here(call, long.tensor)
    if is_free and _may_add(call, long) and short.products < long.products:
        layers.insert(early, layers.pop(late))


def _last_reader(call: Call, layers: list[Layer]) -> int | None:
    """Return the place of the later layer of a node's operands, if nobody else reads its result."""
    names = [call.tensors.get(name) for name in call.node.inputs]
    later = max((n for n, layer in enumerate(layers) if layer.tensor in names), default=None)
    if later is None:
        return None
    return later if _is_read_here(call, layers[later].tensor) else None


def _is_read_here(call: Call, tensor: str) -> bool:
    """Whether a node alone reads a tensor."""
    graph = call.graph
    aliases = [name for name, stands in call.tensors.items() if stands == tensor]
    readers: list[Node] = [
        node for name in aliases for node in graph.consumers(name) if not node.has(Trait.MOVES)
    ]
    is_output = any(call.tensors.get(name) == tensor for name in graph.outputs)
    return readers == [call.node] and not is_output


def _fused(call: Call, layer: Layer) -> Layer:
    node = call.node
    names = [call.tensors[name] for name in node.inputs]
    own = names.index(layer.tensor)
    formats = [call.format(name) for name in node.inputs]
    residual = Residual.of(
        node, node.attrs["requant"], own, formats, Format.of(call.qtype(node.name)), names[1 - own]
    )
    changed: dict[str, Any] = {"tensor": node.name, "residual": residual}
    return replace(layer, **changed)
