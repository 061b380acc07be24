"""What the engine has no hardware for, though the fixed model computes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nnef_hw.engine.layer import lowers
from nnef_hw.engine.tail import tails
from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, Node, Trait, image_shape, input_stream, output_stream
from nnef_hw.ir.operators import ConvAttributes, PoolAttributes, WindowAttributes
from nnef_hw.numerics import AddRequant, Requant
from nnef_hw.parts.engine import CODE_BITS

__all__ = ["check_engine", "is_tail", "tail_of"]

STREAM = "use --arch streaming"


def check_engine(graph: Graph) -> list[NnefHwError]:
    """List why a canonical or fixed graph does not run on the engine, one error per cause.

    Formats and rounding are known of fixed graphs only.
    """
    errors: list[NnefHwError] = []

    def refuse(reason: str, remedy: str, node: Node | None = None) -> None:
        location = node.location if node else None
        errors.append(UnsupportedError(reason, remedy=remedy, location=location))

    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        if len(names) != 1:
            refuse(f"the model has {len(names)} {what}s; the engine takes one", STREAM)
    if errors:
        return errors
    source = input_stream(graph, graph.inputs[0])
    if image_shape(graph.tensor(source).shape) is None:
        shape = list(graph.tensor(source).shape)
        refuse(f"input {source!r} of shape {shape} is no image", "use shapes [1, C], [1, C, H, W]")
    for node in graph.nodes:
        for reason, remedy in _problems(graph, node):
            refuse(f"{node.op} {node.name!r}: {reason}", remedy, node)
    for name in dict.fromkeys((source, *(node.name for node in graph.nodes))):
        qtype = graph.tensor(name).qtype
        if qtype is not None and qtype.bits > CODE_BITS and not _is_result(graph, name):
            refuse(
                f"tensor {name!r} has codes of {qtype.bits} bits",
                f"use activations of at most {CODE_BITS} bits",
            )
    if not errors and not any(
        not node.has(Trait.MOVES) and not is_tail(graph, node) for node in graph.nodes
    ):
        refuse("the model has nothing to compute in the engine's array", STREAM)
    return errors


def tail_of(graph: Graph) -> Node | None:
    """Return the last node if it is computed of the codes that leave, not in the array."""
    name = output_stream(graph, graph.outputs[0])
    node = graph.producer(name)
    if (
        node is None
        or node.op not in tails
        or len(graph.consumers(name)) > (name != graph.outputs[0])
    ):
        return None
    return node


def is_tail(graph: Graph, node: Node) -> bool:
    """Whether a node is computed of the codes that leave."""
    tail = tail_of(graph)
    return tail is not None and tail.name == node.name


def _is_result(graph: Graph, name: str) -> bool:
    """Whether a tensor is the result of the last node, which is never in the engine's memory."""
    tail = tail_of(graph)
    return tail is not None and tail.name in (name, output_stream(graph, name))


def _problems(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Yield reasons and remedies."""
    if node.has(Trait.MOVES):
        yield from _moves(graph, node)
        return
    if is_tail(graph, node):
        if node.has(Trait.ALONG_CHANNELS) and list(node.attrs["axes"]) != [1]:
            yield f"axes = {list(node.attrs['axes'])} are not computed", "use axes = [1]"
        return
    if node.op not in lowers:
        where = " but at the end of a network" if node.op in tails else ""
        yield f"the engine does not compute it yet{where}", STREAM
        return
    for name in (*node.inputs[:1], *node.outputs):
        shape = graph.tensor(name).shape
        if image_shape(shape) is None:
            yield (
                f"tensor {name!r} of shape {list(shape)} is no image",
                "use [1, C] or [1, C, H, W]",
            )
            return
    if node.has(Trait.ARITHMETIC):
        shapes = [graph.tensor(name).shape for name in (*node.inputs, node.name)]
        if any(graph.tensor(name).data is not None for name in node.inputs):
            yield "a constant operand is not added yet", STREAM
        elif len(set(shapes)) > 1:
            yield "an operand is broadcast, which the engine does not do yet", STREAM
    if node.has(Trait.WINDOW):
        yield from _windows(node)
    requant = node.attrs.get("requant")
    if requant is not None and not isinstance(requant, Requant | AddRequant):
        yield "its sums are rounded as TensorFlow Lite does, not yet here", STREAM
    if node.has(Trait.WEIGHTS):
        weights = graph.tensor(node.inputs[1])
        if weights.qtype is not None and weights.data is not None:
            codes = weights.data.astype(int) - weights.qtype.zero_point
            if codes.size and (codes.min() < -128 or codes.max() > 127):
                yield "its weights less their zero point exceed 8 bits", STREAM


def _moves(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Only a change of the shape that leaves the image as it is costs nothing."""
    shapes = [graph.tensor(name).shape for name in (node.inputs[0], node.name)]
    images = [image_shape(shape) for shape in shapes]
    behind = node.name in _border(graph)
    if not behind and (None in images or images[0] != images[1] or not node.has(Trait.RESHAPES)):
        yield "the engine does not reorder codes yet", STREAM


def _border(graph: Graph) -> set[str]:
    """Return the results of reshapes that are left to the host."""
    names = set()
    for ends, stop in (
        (graph.outputs, output_stream(graph, graph.outputs[0])),
        ((input_stream(graph, graph.inputs[0]),), graph.inputs[0]),
    ):
        name = ends[0]
        while name != stop:
            names.add(name)
            producer = graph.producer(name)
            assert producer is not None
            name = producer.inputs[0]
    return names


def _windows(node: Node) -> Iterator[tuple[str, str]]:
    kind: Any = PoolAttributes if node.has(Trait.POOL) else ConvAttributes
    window: WindowAttributes = node.attributes(kind)
    if not any(map(any, window.padding)):
        return
    if window.border not in ("constant", "ignore"):
        yield f"border {window.border!r} is not computed", "use 'constant' or 'ignore'"
    elif window.border == "ignore" and not node.has(Trait.KEEPS_FORMAT):
        yield "averages that leave padding out are not computed yet", STREAM
