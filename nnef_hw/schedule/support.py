"""What the streaming architecture has no hardware for, though the fixed model computes it."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, Node, Reordering, find_reordering
from nnef_hw.tables import TABLE_BITS
from nnef_hw.tflite_numerics import TfliteAddRequant

__all__ = [
    "check_streamable",
    "image_shape",
    "input_stream",
    "is_for_host",
    "output_stream",
    "stream_reordering",
]


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, channels) of a tensor [1, C], [1, C, L] or [1, C, H, W]; None for others."""
    if not shape or shape[0] != 1 or not 2 <= len(shape) <= 4:
        return None
    channels, *extents = shape[1:]
    height, width = (*extents, 1, 1)[:2]
    return height, width, channels


def input_stream(graph: Graph, name: str) -> str:
    """Return the tensor that the host sends for an input: behind reshapes that alone read it."""
    while name not in graph.outputs:
        readers = graph.consumers(name)
        if len(readers) != 1 or readers[0].op != "reshape":
            break
        name = readers[0].outputs[0]
    return name


def output_stream(graph: Graph, name: str) -> str:
    """Return the tensor that the host makes an output of: before reshapes."""
    producer = graph.producer(name)
    while producer is not None and producer.op == "reshape":
        name = producer.inputs[0]
        producer = graph.producer(name)
    return name


def is_for_host(graph: Graph, name: str) -> bool:
    """Whether no layer reads a tensor, not behind reshapes either."""
    return all(
        node.op == "reshape" and is_for_host(graph, node.outputs[0])
        for node in graph.consumers(name)
    )


_BORDERS = {
    "avg_pool": ("constant", "ignore"),
    "box": ("constant",),
    "conv": ("constant",),
    "max_pool": ("constant", "ignore"),
    "pad": ("constant",),
}


def check_streamable(graph: Graph) -> list[NnefHwError]:
    """List why a canonical or fixed graph cannot be streamed, one error per cause."""
    errors: list[NnefHwError] = []

    def refuse(reason: str, remedy: str, node: Node | None = None) -> None:
        location = node.location if node else None
        errors.append(UnsupportedError(reason, remedy=remedy, location=location))

    for name in graph.inputs:
        stream = input_stream(graph, name)
        if not graph.consumers(stream) and stream not in graph.outputs:
            refuse(f"input {name!r} is never read", "remove it from the model")
    for node in graph.nodes:
        computed = [name for name in node.inputs if graph.tensor(name).data is None]
        for name in (*computed, *node.outputs):
            if image_shape(graph.tensor(name).shape) is None and node.op != "reshape":
                shape = list(graph.tensor(name).shape)
                refuse(
                    f"{node.op} {node.name!r}: tensor {name!r} of shape {shape} cannot be streamed",
                    "use shapes [1, C], [1, C, L] or [1, C, H, W]",
                    node,
                )
        for reason, remedy in _problems(graph, node):
            refuse(f"{node.op} {node.name!r}: {reason}", remedy, node)
    return errors


def _problems(graph: Graph, node: Node) -> Iterator[tuple[str, str]]:
    """Yield reasons and remedies."""
    attrs = node.attrs
    if isinstance(attrs.get("requant"), TfliteAddRequant):
        formats = [graph.tensor(name).qtype for name in node.inputs]
        bits = max(qtype.bits for qtype in formats if qtype is not None)
        if bits > TABLE_BITS:
            yield (
                f"operands of {bits} bits need tables of {1 << bits} entries",
                f"use activations of at most {TABLE_BITS} bits, or rounding = 'half_up'",
            )
    if any(map(any, attrs.get("padding", ()))):
        allowed = _BORDERS[node.op]
        if attrs["border"] not in allowed:
            names = " or ".join(map(repr, allowed))
            yield f"border {attrs['border']!r} is not streamed yet", f"use {names}"
    if node.op in {"softmax", "argmax_reduce"} and list(attrs["axes"]) != [1]:
        yield f"axes = {list(attrs['axes'])} are not streamed", "use axes = [1]"
    if node.op == "concat" and any(graph.tensor(name).data is not None for name in node.inputs):
        yield "a constant part is not streamed yet", "add it after the accelerator"


def stream_reordering(graph: Graph, node: Node) -> Reordering:
    """Return what a ``reshape`` or ``transpose`` of a canonical graph does to a stream."""
    before, after = (graph.tensor(name).shape for name in (*node.inputs, *node.outputs))
    reordering = find_reordering(node, before, after)
    assert reordering is not None, node.name
    return reordering
