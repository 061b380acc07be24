"""The order in which a tensor's elements stream, and what changes it.

An image [1, C], [1, C, L] or [1, C, H, W] streams with its channels innermost: row, column,
channel. Any other tensor, which no layer computes, streams in the order of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.operators import Trait

__all__ = [
    "Reordering",
    "find_reordering",
    "image_shape",
    "input_stream",
    "output_stream",
    "reordered_streams",
    "stream_image",
    "stream_origin",
]

_AXES = 3

Axis: TypeAlias = tuple[int, int]
"""An extent, and the stride between its elements in the stream that comes."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """A stream of ``extents``, outermost first, whose axes are given in another ``order``."""

    extents: tuple[int, int, int]
    order: tuple[int, int, int]

    @property
    def is_trivial(self) -> bool:
        """Whether the stream stays as it is."""
        return self.order == (0, 1, 2)


def image_shape(shape: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, channels) of a tensor [1, C], [1, C, L] or [1, C, H, W]; None for others."""
    if not shape or shape[0] != 1 or not 2 <= len(shape) <= 4:
        return None
    channels, *extents = shape[1:]
    height, width = (*extents, 1, 1)[:2]
    return height, width, channels


def stream_image(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """(height, width, channels) of the stream of a tensor; what is no image is one pixel."""
    return image_shape(shape) or (1, 1, prod(shape))


def input_stream(graph: Graph, name: str) -> str:
    """Return the tensor that the host sends for an input: behind reshapes that alone read it."""
    while name not in graph.outputs:
        readers = graph.consumers(name)
        if len(readers) != 1 or readers[0].op != "reshape":
            break
        if image_shape(graph.tensor(readers[0].name).shape) is None:
            break
        name = readers[0].name
    return name


def output_stream(graph: Graph, name: str) -> str:
    """Return the tensor that the host makes an output of: before reshapes."""
    producer = graph.producer(name)
    while producer is not None and producer.op == "reshape":
        name = producer.inputs[0]
        producer = graph.producer(name)
    return name


def reordered_streams(graph: Graph) -> tuple[str, ...]:
    """Return the results of reshapes and transposes whose elements layers or the host read.

    Those that only others of them read are steps on the way: nothing has to exist for them.
    """
    sources = {input_stream(graph, name) for name in graph.inputs}
    read = {output_stream(graph, name) for name in graph.outputs}
    read.update(name for node in graph.nodes if not node.has(Trait.MOVES) for name in node.inputs)
    return tuple(
        node.name
        for node in graph.nodes
        if node.has(Trait.MOVES) and node.name in read and node.name not in sources
    )


def stream_origin(graph: Graph, name: str) -> tuple[str, list[Node]]:
    """Return the computed or received tensor that a tensor is made of, and the moves between."""
    sources = {input_stream(graph, source) for source in graph.inputs}
    moves: list[Node] = []
    producer = graph.producer(name)
    while name not in sources and producer is not None and producer.has(Trait.MOVES):
        moves.insert(0, producer)
        name = producer.inputs[0]
        producer = graph.producer(name)
    return name, moves


def find_reordering(graph: Graph, name: str) -> Reordering | None:
    """Return what the reshapes and transposes before a tensor together do to the stream.

    The axes are those that the whole move leaves together, whatever shapes the tensors have on
    the way. None if there are more than three.
    """
    origin, moves = stream_origin(graph, name)
    shape = graph.tensor(origin).shape
    found: list[Axis] | None = _in_order(shape)
    for node in moves:
        if node.op == "transpose" and found is not None:
            found = _exchanged(found, graph.tensor(node.inputs[0]).shape, node.attrs["axes"])
    after = graph.tensor(name).shape
    if found is not None and image_shape(after) is not None:
        found = _exchanged(found, after, [0, *range(2, len(after)), 1])
    axes = None if found is None else _merged(found)
    if axes is None or len(axes) > _AXES:
        return None
    axes = [(1, prod(shape))] * (_AXES - len(axes)) + axes
    places = sorted(range(_AXES), key=lambda place: -axes[place][1])
    first, second, third = (axes[place][0] for place in places)
    order = tuple(places.index(place) for place in range(_AXES))
    return Reordering((first, second, third), (order[0], order[1], order[2]))


def _in_order(shape: tuple[int, ...]) -> list[Axis]:
    """Return the axes of a tensor, and how far apart its elements are in its stream."""
    if image_shape(shape) is None:
        return [(prod(shape), 1)]
    pixels = prod(shape[2:])
    return [(shape[1], 1), (pixels, shape[1])]


def _exchanged(axes: list[Axis], shape: tuple[int, ...], order: Sequence[int]) -> list[Axis] | None:
    """Return the axes of a tensor of ``shape`` whose axes are given in another order.

    None if the shape's axes are not made of whole parts of these.
    """
    remaining = list(axes)
    parts: list[list[Axis]] = []
    for extent in reversed(shape):
        parts.append([])
        while extent > 1:
            count, stride = remaining.pop()
            if extent % count == 0:
                length = count
            elif count % extent == 0:
                length = extent
                remaining.append((count // extent, stride * extent))
            else:
                return None
            parts[-1].insert(0, (length, stride))
            extent //= length
    parts.reverse()
    return [axis for place in order for axis in parts[place]]


def _merged(axes: list[Axis]) -> list[Axis]:
    """Return as few axes as there can be, without any of extent 1."""
    merged: list[Axis] = []
    for count, stride in axes:
        if merged and count > 1 and merged[-1][1] == count * stride:
            merged[-1] = (merged[-1][0] * count, stride)
        elif count > 1:
            merged.append((count, stride))
    return merged
