"""Operators that the engine has no hardware for, though the fixed model computes them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant
from nnef_hw.engine.layers.contraction import MIDDLE
from nnef_hw.engine.layers.ends import find_heads, heads, tails
from nnef_hw.engine.layers.formats import ANYWHERE, Format, Image
from nnef_hw.engine.layers.layer import lowers
from nnef_hw.engine.layers.pieces import Piece, move_piece, nest_of
from nnef_hw.engine.layers.place import are_addressed
from nnef_hw.engine.layers.sum_factors import sum_factors
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import (
    Graph,
    Node,
    Stage,
    StreamOrder,
    Tensor,
    Trait,
    image_shape,
    layers,
    stream_image,
)
from nnef_hw.ir.operators import (
    ContractionAttributes,
    ConvAttributes,
    PoolAttributes,
    WindowAttributes,
)
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["check_engine", "find_move", "find_tails", "memory_image", "place_count"]

STREAM = "use --arch streaming"
_LEAST_LANES = 4
_UNEVEN = (
    f"its codes do not go from words to words of {_LEAST_LANES}: their numbers along its axes are "
    "no multiples of that"
)


def check_engine(graph: Graph) -> list[NnefHwError]:
    """List why a canonical or fixed graph does not run on the engine, one error per cause.

    Formats and rounding are known of fixed graphs only.
    """
    errors: list[NnefHwError] = []

    def refuse(reason: str, remedy: str, what: Node | Tensor | None = None) -> None:
        location = what.location if what else None
        errors.append(UnsupportedError(reason, remedy=remedy, location=location))

    order = graph.once(StreamOrder)
    begins = find_heads(graph, order)
    ahead = {name for head in begins.values() for name in (*head.names, *head.states)}
    for reason, remedy, tensor in _states(graph, order):
        if tensor.name not in ahead:
            refuse(reason, remedy, tensor)
    sources = [order.inputs[name].tensor for name in graph.inputs if name not in begins]
    ends = {node.name for node in find_tails(graph, order).values()}
    for node in graph.nodes:
        if node.name in ahead:
            continue
        for reason, remedy in _problems(graph, node, order, ends):
            refuse(f"{node.op} {node.name!r}: {reason}", remedy, node)
    constants = [
        operand.name
        for node in graph.nodes
        if graph.stage is Stage.FIXED and not node.has(Trait.MOVES) and node.name not in ahead
        for operand in layers.layer_of(graph, node).operands
        if operand.data is not None
    ]
    computed = (*graph.states, *(node.name for node in graph.nodes))
    inside = {head.node.name for head in begins.values()}
    samples = {order.origin(order.inputs[name].tensor)[0] for name in begins}
    for name in dict.fromkeys((*sources, *constants, *computed)):
        if name in ahead - inside or order.origin(name)[0] in samples:
            continue  # what a part in front of the engine takes, or keeps
        if graph.tensor(name).dtype == "integer":
            continue  # a place, which no memory of codes has
        qtype = graph.tensor(name).qtype
        if qtype is not None and qtype.bits > CODE_BITS and order.origin(name)[0] not in ends:
            refuse(
                f"tensor {name!r} has codes of {qtype.bits} bits",
                f"use activations of at most {CODE_BITS} bits",
            )
    borders = ahead | ends
    if not errors and not any(
        not node.has(Trait.MOVES) and node.name not in borders for node in graph.nodes
    ):
        refuse("the model has nothing to compute in the engine's array", STREAM)
    return errors


def _states(graph: Graph, order: StreamOrder) -> Iterator[tuple[str, str, Tensor]]:
    """Yield reasons why states cannot live on from frame to frame, remedies, tensors."""
    for name, state in graph.states.items():
        tensor = graph.tensor(name)
        if not state.goes_on:
            reason = f"the variable {name!r} keeps a value between the steps of a loop"
            yield f"{reason}, which the engine cannot", STREAM, tensor
        elif graph.tensor(state.result).data is not None:
            yield f"the next value of state {name!r} is a constant", STREAM, tensor
    for name in graph.outputs:
        origin = order.origin(name)[0]
        if origin in graph.states:
            reason = (
                f"output {name!r} is what the step before left in state {origin!r}, which the "
                "step's own value has replaced when outputs are sent"
            )
            result = graph.states[origin].result
            yield reason, f"give {result!r} as an output", graph.tensor(name)


def find_tails(graph: Graph, order: StreamOrder) -> dict[str, Node]:
    """Return by output the last nodes that are computed of the codes that leave, not in the array.

    Nobody else reads the result of such a node.
    """
    sent = [order.outputs[output].tensor for output in graph.outputs]
    kept = {order.origin(state.result)[0] for state in graph.states.values()}
    found = {}
    for output, name in zip(graph.outputs, sent, strict=True):
        node = graph.producer(name)
        readers = len(graph.consumers(name)) - (name != output)
        is_last = readers == 0 and sent.count(name) == 1 and name not in kept
        if node is not None and _is_masked(graph, node):
            continue  # what hides channels is in front of units
        if node is not None and node.op in tails and is_last:
            found[output] = node
    return found


def memory_image(graph: Graph, order: StreamOrder, origin: str) -> tuple[int, int, int]:
    """Return the image as which a computed or received tensor is in memory.

    An input is as all of its readers want it, if they want the same, and its stream need not be
    changed for that: the host may send it without any knowledge of rows and pixels.
    """
    usual = order.image(origin)
    if origin in graph.states or any(x.result == origin for x in graph.states.values()):
        return usual
    producer = graph.producer(origin)
    if producer is not None and not producer.has(Trait.MOVES):
        return usual
    read = {name for node in graph.nodes if not node.has(Trait.MOVES) for name in node.inputs}
    names = [name for name in (origin, *order.moved) if order.origin(name)[0] == origin]
    images = set()
    for name in names:
        if name == origin and name not in read:
            continue
        reordering = order.reordering(name)
        image = image_shape(graph.tensor(name).shape)
        if image is None or reordering is None or not reordering.is_trivial:
            return usual
        images.add(image)
    return images.pop() if len(images) == 1 else usual


def _problems(
    graph: Graph, node: Node, order: StreamOrder, ends: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield reasons and remedies."""
    if node.has(Trait.MOVES):
        yield from _moves(graph, node, order)
        return
    if node.has(Trait.ALONG_CHANNELS) and list(node.attrs["axes"]) != [1]:
        yield f"axes = {list(node.attrs['axes'])} are not computed", "use axes = [1]"
        return
    if node.name in ends:
        return
    if node.has(Trait.INDEXED):
        yield from _indexed(graph, node, order)
        return
    if node.op not in lowers:
        where = " but at the end of a network" if node.op in tails else ""
        where = " but of all samples of an input" if node.op in heads else where
        yield f"the engine does not compute it yet{where}", STREAM
        return
    gathers = issubclass(layers.layers[node.op], layers.Move)
    reads_all = gathers or node.has(Trait.CONTRACTS)
    read = [name for name in node.inputs if graph.tensor(name).data is None]
    for name in (*read[: None if reads_all else 1], *node.outputs):
        shape = graph.tensor(name).shape
        if image_shape(shape) is None:
            yield (
                f"tensor {name!r} of shape {list(shape)} is no image",
                "use [1, C] or [1, C, H, W]",
            )
            return
    if gathers:
        yield from _gathers(graph, node)
    if node.has(Trait.ARITHMETIC):
        shapes = [graph.tensor(name).shape for name in (*read, node.name)]
        if len(set(shapes)) > 1:
            yield "an operand is broadcast, which the engine does not do yet", STREAM
        elif not _has_factors(graph, node):
            yield "no factors of 26 bits round as TensorFlow Lite does", "use rounding = 'half_up'"
    if node.has(Trait.CONTRACTS):
        yield from _contraction(graph, node)
    if node.has(Trait.WINDOW):
        yield from _windows(node)
    requant = node.attrs.get("requant")
    if isinstance(requant, Requant) and requant.offset:
        yield "it adds to sums what is less than their step, as integer networks do", STREAM
    layer = _integers(graph, node)
    if isinstance(layer, layers.Convolution):
        weights = layer.weights
        if weights.min() < -128 or weights.max() > 127:
            yield "its weights less their zero point exceed 8 bits", STREAM


def _has_factors(graph: Graph, node: Node) -> bool:
    """Whether a sum can be computed with short factors; known of fixed graphs only."""
    layer = _integers(graph, node)
    if not isinstance(layer, layers.Sum) or not isinstance(layer.requant, TfliteAddRequant):
        return True
    if any(qtype.bits > CODE_BITS for qtype in layer.formats):
        return True  # refused for that
    first, second = (Format.of(qtype).differences for qtype in layer.formats)
    return sum_factors(layer.requant, first, second) is not None


def _integers(graph: Graph, node: Node) -> layers.Layer | None:
    """Return a node's integer layer; None of a graph that has no formats yet."""
    return layers.layer_of(graph, node) if graph.stage is Stage.FIXED else None


def find_move(graph: Graph, order: StreamOrder, node: Node) -> Piece | None:
    """Return the move of codes that a reshape or transpose makes in memory; None if nothing.

    Steps on the way need not exist.
    """
    target = _moved_image(graph, node.name)
    reordering = order.reordering(node.name) if node.name in order.moved else None
    if target is None or reordering is None:
        return None
    image = memory_image(graph, order, order.origin(node.name)[0])
    if reordering.is_trivial and image == target:
        return None
    return move_piece(Image(*image), Image(*target), reordering)


def _moved_image(graph: Graph, name: str) -> tuple[int, int, int] | None:
    """Return the image of a moved tensor; what only a state takes over is as that is in memory."""
    shape = graph.tensor(name).shape
    readers = [node for node in graph.consumers(name) if not node.has(Trait.MOVES)]
    is_next = any(state.result == name for state in graph.states.values())
    return stream_image(shape) if is_next and not readers else image_shape(shape)


def _is_masked(graph: Graph, node: Node) -> bool:
    """Whether an integer hides some of the channels that a node reads."""
    producer = graph.producer(node.inputs[0])
    if producer is None or producer.op not in layers.layers:
        return False
    return issubclass(layers.layers[producer.op], layers.CausalMask)


def place_count(layer: layers.Layer) -> int:
    """Return how many places an integer of a layer tells apart: rows, or channels."""
    if isinstance(layer, layers.Lookup):
        return len(layer.rows)
    first = layer.operands[0].shape
    return first[2] if isinstance(layer, layers.WriteRow) else first[1]


def _indexed(graph: Graph, node: Node, order: StreamOrder) -> Iterator[tuple[str, str]]:
    """Yield reasons why an integer does not choose a row, or what is hidden, and remedies."""
    index = graph.tensor(node.inputs[-1])
    if order.origin(index.name)[0] not in {order.inputs[name].tensor for name in graph.inputs}:
        yield f"its integer {index.name!r} is no input", STREAM
    if index.volume > 1:
        yield f"it takes {index.volume} integers, and a place is one", STREAM
    kind = layers.layers[node.op]
    if issubclass(kind, layers.WriteRow):
        yield from _rows(graph, node, order)
    elif issubclass(kind, layers.CausalMask):
        readers = graph.consumers(node.name)
        if any(not issubclass(layers.layers[x.op], layers.Softmax) for x in readers):
            yield "something else than a softmax reads it", STREAM
    elif image_shape(graph.tensor(node.name).shape) is None:
        yield f"its result of shape {list(graph.tensor(node.name).shape)} is no image", STREAM


def _rows(graph: Graph, node: Node, order: StreamOrder) -> Iterator[tuple[str, str]]:
    """Yield reasons why a row is not written to the place of a state, and remedies."""
    cache = node.inputs[0]
    name = order.origin(cache)[0]
    state = graph.states.get(name)
    if state is None or order.origin(state.result)[0] != node.name:
        yield f"its cache {cache!r} is no state that takes over what it writes", STREAM
        return
    others = [x for x in graph.states.values() if order.origin(x.result)[0] in {name, node.name}]
    moved = [name, *(x.name for x in order.origin(cache)[1])]
    if len(others) > 1 or any(len(graph.consumers(x)) != 1 for x in moved):
        yield f"something else reads its cache {name!r} as the step before left it", STREAM
    ways = [order.reordering(x) for x in (cache, state.result)]
    if any(way is None or not way.is_trivial for way in ways):
        yield f"rows of its cache {name!r} are not one behind the other", STREAM
    channels = graph.tensor(cache).shape[1]
    words = channels / _LEAST_LANES
    if words != int(words) or not are_addressed(int(words)):
        size = f"a row of {channels} codes is {words:g} words of {_LEAST_LANES}"
        yield f"{size}, and not one or two powers of two", STREAM


def _moves(graph: Graph, node: Node, order: StreamOrder) -> Iterator[tuple[str, str]]:
    if node.name not in order.moved:
        return
    target = _moved_image(graph, node.name)
    reordering = order.reordering(node.name)
    image = memory_image(graph, order, order.origin(node.name)[0])
    if target is None:
        shape = list(graph.tensor(node.name).shape)
        yield f"its result of shape {shape} is no image", "use [1, C] or [1, C, H, W]"
    elif reordering is None:
        yield "it takes apart what a transpose has put together", STREAM
    elif not reordering.is_trivial or image != target:
        piece = move_piece(Image(*image), Image(*target), reordering)
        if piece is None or nest_of(piece, _LEAST_LANES, ANYWHERE) is None:
            yield _UNEVEN, STREAM


def _gathers(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Yield the reasons that keep codes from going to other places."""
    formats = {graph.tensor(name).qtype for name in (*node.inputs, node.name)}
    if len(formats) > 1:
        yield "its operands have other formats than its result", STREAM
    if node.op == "concat" and node.attrs["axis"] == 1:
        shapes = [graph.tensor(name).shape for name in node.inputs[:-1]]
        if any(shape[1] % _LEAST_LANES for shape in shapes):
            yield f"channels of an operand before others are no multiple of {_LEAST_LANES}", STREAM


def _contraction(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Yield the reasons that keep codes of the second operand from being weights."""
    if node.attributes(ContractionAttributes).order[-1] == "m":
        yield "codes of a word of its second operand are of different matrices", STREAM
    layer = _integers(graph, node)
    if not isinstance(layer, layers.Contraction):
        return
    zero_point = Format.of(layer.second).zero_point
    if layer.second.bits <= CODE_BITS and zero_point != MIDDLE:
        yield (
            (
                f"codes of its second operand are weights of 8 bits less {MIDDLE}, "
                f"and the code of 0.0 is {zero_point} from the lowest one on"
            ),
            STREAM,
        )
    if layer.bias % (1 << layer.gain):
        steps = layer.bias / (1 << layer.gain)
        yield f"what is added to its sums is {steps:g} of their steps, no whole number", STREAM


def _windows(node: Node) -> Iterator[tuple[str, str]]:
    kind: Any = PoolAttributes if node.has(Trait.POOL) else ConvAttributes
    window: WindowAttributes = node.attributes(kind)
    if not any(map(any, window.padding)):
        return
    if window.border not in ("constant", "ignore"):
        yield f"border {window.border!r} is not computed", "use 'constant' or 'ignore'"
