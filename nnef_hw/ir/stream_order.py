"""The order in which a tensor's elements stream, and what changes it.

An image [1, C], [1, C, L] or [1, C, H, W] streams with its channels innermost: row, column,
channel. object other tensor, which no layer computes, streams in the order of its elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeAlias

from nnef_hw.ir.graph import Graph, Node
from nnef_hw.ir.operators import Trait

__all__ = ["HostStream", "Reordering", "StreamOrder", "image_shape", "stream_image"]

_AXES = 3
"""At least so many axes has a reordering."""

Axis: TypeAlias = tuple[int, int]
"""An extent, and the stride between its elements in the stream that comes."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """A stream whose axes, three or more, are given in another ``order``.

    ``extents`` are those of the stream that comes, outermost first.
    """

    extents: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def is_trivial(self) -> bool:
        """Whether the stream stays as it is."""
        return self.order == tuple(range(len(self.order)))

    @property
    def volume(self) -> int:
        """Elements of the stream."""
        return prod(self.extents)

    @property
    def turns(self) -> tuple[int, Reordering]:
        """Number of exchanges of the axes that do not stay outermost, and the exchange.

        Of a stream of rows whose pixels change places, one row after the other.
        """
        stay = next((n for n, axis in enumerate(self.order) if axis != n), len(self.order))
        ones = max(0, _AXES - len(self.order) + stay)
        extents = (1,) * ones + self.extents[stay:]
        order = (*range(ones), *(axis - stay + ones for axis in self.order[stay:]))
        return prod(self.extents[:stay]), Reordering(extents, order)


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


@dataclass(frozen=True, slots=True)
class HostStream:
    """Order in which the host sends an input, or takes an output.

    Parameters
    ----------
    tensor
        The tensor that it streams: behind reshapes of an input, before moves of an output.
    image
        (height, width, channels) of the stream: the host gives its elements this shape, channels
        outermost, and sends them pixel by pixel.
    """

    tensor: str
    image: tuple[int, int, int]


class StreamOrder:
    """Effect of the reshapes and transposes of a graph on its streams.

    The host sends inputs, and takes outputs, in any order that is theirs but for an exchange of two
    axes: it sends an image [1, H, W, C] as it is if that is what the layers want. What it does
    needs no hardware. A state streams in the order of its tensor, and so does its next value.

    Attributes
    ----------
    inputs, outputs
        The stream of each input and output of the graph.
    moved
        Results of reshapes and transposes whose elements layers or the host read in their order.
        Those that only others of them read are steps on the way: nothing has to exist for them.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        kept = {*graph.outputs, *(state.result for state in graph.states.values())}
        sent = [_behind_reshapes(graph, name, kept) for name in graph.inputs]
        self._sources = {
            source: HostStream(source, stream_image(graph.tensor(source).shape))
            for source in (*sent, *graph.states)
        }
        read = {name for node in graph.nodes if not node.has(Trait.MOVES) for name in node.inputs}
        read.update(state.result for state in graph.states.values())
        self._choose_inputs(frozenset(sent), read)
        self.inputs = {
            name: self._sources[source] for name, source in zip(graph.inputs, sent, strict=True)
        }
        self.outputs = {name: self._output(name) for name in graph.outputs}
        read.update(stream.tensor for stream in self.outputs.values())
        self.moved = tuple(
            node.name
            for node in graph.nodes
            if node.has(Trait.MOVES) and node.name in read and node.name not in self._sources
        )

    def origin(self, name: str) -> tuple[str, list[Node]]:
        """Return the computed or received tensor that one is made of, and the moves between."""
        moves: list[Node] = []
        producer = self._graph.producer(name)
        while name not in self._sources and producer is not None and producer.has(Trait.MOVES):
            moves.append(producer)
            name = producer.inputs[0]
            producer = self._graph.producer(name)
        moves.reverse()
        return name, moves

    def reordering(self, name: str) -> Reordering | None:
        """Return the joint effect on the stream of the reshapes and transposes before a tensor.

        The axes, three or more, are those that the whole move leaves together, whatever shapes the
        tensors have on the way. None if a reshape takes apart what a transpose has put together.
        """
        axes = self._as_read(name)
        if axes is None:
            return None
        volume = prod(count for count, _ in axes)
        axes = [(1, volume)] * (_AXES - len(axes)) + axes
        places = sorted(range(len(axes)), key=lambda place: -axes[place][1])
        extents = tuple(axes[place][0] for place in places)
        return Reordering(extents, tuple(map(places.index, range(len(axes)))))

    def image(self, origin: str) -> tuple[int, int, int]:
        """Return (height, width, channels) of the stream of a computed or received tensor."""
        source = self._sources.get(origin)
        return stream_image(self._graph.tensor(origin).shape) if source is None else source.image

    def _elements(self, name: str) -> list[Axis] | None:
        """Return the axes of a tensor's elements, in their order, in the stream that it is from."""
        origin, moves = self.origin(name)
        found: list[Axis] | None = _in_order(self.image(origin))
        for node in moves:
            if node.op == "transpose" and found is not None:
                shape = self._graph.tensor(node.inputs[0]).shape
                found = _exchanged(found, shape, node.attrs["axes"])
        return found

    def _as_read(self, name: str) -> list[Axis] | None:
        """Return the same as layers read it: pixel by pixel, if it is an image."""
        found, shape = self._elements(name), self._graph.tensor(name).shape
        if found is not None and image_shape(shape) is not None:
            found = _exchanged(found, shape, [0, *range(2, len(shape)), 1])
        return None if found is None else _merged(found)

    def _choose_inputs(self, sent: Collection[str], read: Iterable[str]) -> None:
        """Let the host send each input in the order in which most of its readers want it."""
        readers: dict[str, list[str]] = {}
        for name in sorted(read):
            origin = self.origin(name)[0]
            if origin in sent:
                readers.setdefault(origin, []).append(name)
        for source, names in readers.items():
            usual = self._sources[source]
            shape = self._graph.tensor(source).shape
            # As if it came in the order of its elements.
            self._sources[source] = replace(usual, image=(1, 1, prod(shape)))
            wanted = [(self._as_read(name), stream_image(self._graph.tensor(name).shape))
                      for name in names]  # fmt: skip
            found = (_exchange(axes, image) for axes, image in wanted)
            images = [usual.image, *(image for image in found if image is not None)]
            readers_of = Counter(None if axes is None else tuple(axes) for axes, _ in wanted)
            satisfied = {
                image: readers_of[tuple(_merged(_pixels(image)))] for image in dict.fromkeys(images)
            }
            self._sources[source] = replace(usual, image=max(satisfied, key=satisfied.__getitem__))

    def _output(self, name: str) -> HostStream:
        origin, _ = self.origin(name)
        elements = self._elements(name)
        image = self.image(origin)
        axes = None if elements is None else _merged(elements)
        if axes == _merged(_in_order(image)):
            return HostStream(origin, image)
        pixels, channels = prod(image[:2]), image[2]
        if axes is not None and len(axes) <= 1:
            return HostStream(origin, (1, 1, pixels * channels))
        if axes is not None and axes[0][1] == 1 and len(axes) == 2:
            # The stream's pixels are the second axis, the channels the first one.
            found = axes[1][0], axes[0][0]
            return HostStream(origin, image if found == (pixels, channels) else (1, *found))
        tensor = _before_reshapes(self._graph, name)
        return HostStream(tensor, stream_image(self._graph.tensor(tensor).shape))


def _behind_reshapes(graph: Graph, name: str, kept: Collection[str]) -> str:
    """Follow an input through reshapes that alone read it; stop in front of what is kept."""
    while name not in kept:
        readers = graph.consumers(name)
        if len(readers) != 1 or readers[0].op != "reshape":
            break
        if image_shape(graph.tensor(readers[0].name).shape) is None:
            break
        name = readers[0].name
    return name


def _before_reshapes(graph: Graph, name: str) -> str:
    """Return the tensor in front of the reshapes of an output."""
    producer = graph.producer(name)
    while producer is not None and producer.op == "reshape":
        name = producer.inputs[0]
        producer = graph.producer(name)
    return name


def _exchange(axes: list[Axis] | None, image: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """Return the image that a host has to send of elements that are read by these axes.

    None if that is more than an exchange of two axes. ``image`` has the extents of the pixels.
    """
    if axes is None or len(axes) > 2:
        return None
    if len(axes) < 2:
        return 1, 1, prod(count for count, _ in axes)
    (pixels, _), (channels, _) = axes
    return image if (prod(image[:2]), image[2]) == (pixels, channels) else (1, pixels, channels)


def _pixels(image: tuple[int, int, int]) -> list[Axis]:
    """Return the axes of a stream that the host sends, in the order of the tensor's elements."""
    height, width, channels = image
    return [(height * width, 1), (channels, height * width)]


def _in_order(image: tuple[int, int, int]) -> list[Axis]:
    """Return the axes of a tensor that streams as an image, and how far apart elements are."""
    height, width, channels = image
    return [(channels, 1), (height * width, channels)]


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
