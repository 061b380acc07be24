"""Editor of the passes: a graph being rewritten, and queries about its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Quantization, Tensor, Trait
from nnef_hw.ir.quantization import rearranged

__all__ = [
    "Editor",
    "Step",
    "channel_values",
    "emit_part",
    "emit_steps",
    "is_trivial",
    "pixel_conv_node",
    "reshape_node",
    "slice_node",
]

Step = tuple[str, tuple[int, ...], Mapping[str, object]]


class Editor:
    """A new graph in the making: passes emit nodes into it one after the other.

    Parameters
    ----------
    graph
        The graph that is read; it stays as it is.

    Attributes
    ----------
    changed
        Whether anything was rewritten.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self._nodes: dict[int, Node] = {}
        self._emitted: dict[str, int] = {}
        self._readers: dict[str, list[int]] = {}
        self._counts: dict[str, int] = {}
        self._places = count()
        self.changed = False
        self._aliases: dict[str, str] = {}
        self._uses: dict[str, int] = {}
        self._producers: dict[str, Node] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self._uses[name] = self._uses.get(name, 0) + 1
            for name in node.outputs:
                self._producers[name] = node
        for name in graph.outputs:
            self._uses[name] = self._uses.get(name, 0) + 1

    def keep(self, node: Node) -> None:
        """Emit a node of the old graph, its arguments replaced as :meth:`alias` was told."""
        inputs = tuple(map(self.resolve, node.inputs))
        place = next(self._places)
        self._nodes[place] = node if inputs == node.inputs else replace(node, inputs=inputs)
        self._note(place)

    def emit(self, *nodes: Node) -> None:
        """Emit new nodes in place of old ones."""
        self.changed = True
        for node in nodes:
            self.keep(node)

    def alias(self, old: str, new: str) -> None:
        """Let later nodes read ``new`` where the old graph read ``old``."""
        self.changed = True
        self._aliases[old] = self.resolve(new)

    def drop(self, node: Node) -> None:
        """Remove a node that was emitted before."""
        self.changed = True
        place = self._emitted[node.name]
        del self._nodes[place]
        for name in node.outputs:
            self._emitted.pop(name, None)

    def rename(self, source: str, result: str) -> None:
        """Let the nodes emitted so far compute and read ``result`` in place of ``source``."""
        self.changed = True
        places = {*self._readers.pop(source, ()), self._emitted.pop(source)}
        for place in sorted(places & self._nodes.keys()):
            node = self._nodes[place]
            self._nodes[place] = replace(
                node,
                inputs=tuple(result if name == source else name for name in node.inputs),
                outputs=tuple(result if name == source else name for name in node.outputs),
            )
            self._note(place)
        quant = self.tensors[source].quant
        self.tensors[result] = replace(self.tensors[result], quant=quant)
        self.alias(source, result)

    def _note(self, place: int) -> None:
        node = self._nodes[place]
        for name in dict.fromkeys(node.inputs):
            self._readers.setdefault(name, []).append(place)
        for name in node.outputs:
            self._emitted[name] = place

    def resolve(self, name: str) -> str:
        """Name that stands for a tensor of the old graph, which may have been renamed since."""
        while name in self._aliases:
            name = self._aliases[name]
        return name

    def constant(self, hint: str, data: Array, like: Tensor | None = None) -> str:
        """Add a constant and return its name; label and location are those of ``like``."""
        data = np.asarray(data)
        tensor = Tensor(self._unique(hint), data.shape, data=data)
        if like is not None:
            tensor = replace(tensor, label=like.label, location=like.location, dtype=like.dtype)
        self.tensors[tensor.name] = tensor
        return tensor.name

    def rearranged(self, hint: str, like: Tensor, function: Callable[[Array], Array]) -> str:
        """Add the constant ``like`` with its elements moved, and return its name."""
        assert like.data is not None, like.name
        name = self.constant(hint, function(like.data), like)
        if like.quant is not None:
            quant = rearranged(like.quant, like.shape, function)
            self.tensors[name] = replace(self.tensors[name], quant=quant)
        return name

    def activation(self, hint: str, shape: tuple[int, ...], like: Tensor) -> str:
        """Add an activation and return its name; it has ``like``'s dtype, quant and location."""
        name = self._unique(hint)
        self.tensors[name] = Tensor(
            name, shape, like.dtype, location=like.location, quant=like.quant
        )
        return name

    def add(self, hint: str, like: Tensor) -> str:
        """Add a tensor that differs from ``like`` in its name only, and return that."""
        name = self._unique(hint)
        self.tensors[name] = replace(like, name=name)
        return name

    def data(self, name: str) -> Array | None:
        """Value of a constant, None for activations."""
        return self.tensors[self.resolve(name)].data

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor."""
        return self.tensors[self.resolve(name)].shape

    def producer(self, name: str) -> Node | None:
        """Node of the old graph that computes a tensor."""
        return self._producers.get(name)

    def emitted(self, name: str) -> Node | None:
        """Node emitted so far that computes a tensor."""
        place = self._emitted.get(name)
        return None if place is None else self._nodes[place]

    def quantization(self, name: str) -> Quantization | None:
        """Return the author's quantization of an activation, also from behind what moves it."""
        name = self.resolve(name)
        while self.tensors[name].quant is None:
            node = self.emitted(name)
            if node is None or not node.has(Trait.KEEPS_FORMAT):
                return None
            name = self.resolve(node.inputs[0])
        return self.tensors[name].quant

    def has_one_use(self, name: str) -> bool:
        """Whether exactly one argument or graph result refers to a tensor of the old graph."""
        return self._uses.get(name, 0) == 1

    def is_read_once(self, name: str) -> bool:
        """Whether one argument or graph result refers to a tensor of the old graph or a new one."""
        if self._uses.get(name, 0) or name in self._producers:
            return self.has_one_use(name)
        return sum(place in self._nodes for place in self._readers.get(name, ())) == 1

    def finish(self) -> Graph:
        """Return the new graph, or the old one itself if nothing was rewritten."""
        if not self.changed:
            return self.graph
        return self.graph.replaced(nodes=tuple(self._nodes.values()), tensors=self.tensors)

    def _unique(self, hint: str) -> str:
        name, count = hint, self._counts.get(hint, 2)
        while name in self.tensors:
            name, count = f"{hint}_{count}", count + 1
        self._counts[hint] = count
        return name


def reshape_node(source: str, result: str, shape: Sequence[int], like: Node) -> Node:
    """Build a ``reshape`` in its canonical form: the whole shape is given."""
    attrs = {"shape": list(shape), "axis_start": 0, "axis_count": -1}
    return Node("reshape", (source,), (result,), attrs, like.location)


def slice_node(source: str, result: str, axis: int, begin: int, end: int, like: Node) -> Node:
    """Build a ``slice`` of one axis in its canonical form."""
    attrs = {"axes": [axis], "begin": [begin], "end": [end], "stride": [1]}
    return Node("slice", (source,), (result,), attrs, like.location)


def emit_part(editor: Editor, node: Node, source: str, axis: int, begin: int, end: int) -> str:
    """Emit a part of a tensor for a node; return its name, the tensor's own if it is all of it."""
    like = editor.tensors[editor.resolve(source)]
    if (begin, end) == (0, like.shape[axis]):
        return source
    shape = (*like.shape[:axis], end - begin, *like.shape[axis + 1 :])
    name = editor.activation(f"{node.name}_part", shape, like)
    editor.emit(slice_node(source, name, axis, begin, end, node))
    return name


def emit_steps(editor: Editor, node: Node, source: str, hint: str, steps: Sequence[Step]) -> str:
    """Emit operators that follow each other for a node; return the name of the last result.

    A step is an operator, its result's shape and its attributes; a ``reshape`` has the shape alone.
    """
    like = editor.tensors[editor.resolve(source)]
    for op, shape, attrs in steps:
        name = editor.activation(hint, shape, like)
        if op == "reshape":
            editor.emit(reshape_node(source, name, shape, node))
        else:
            editor.emit(Node(op, (source,), (name,), dict(attrs), node.location))
        source = name
    return source


def pixel_conv_node(inputs: Sequence[str], result: str, rank: int, like: Node) -> Node:
    """Build a ``conv`` of an image of ``rank`` spatial axes whose filters are one pixel."""
    attrs = {
        "border": "constant",
        "padding": [(0, 0)] * rank,
        "stride": [1] * rank,
        "dilation": [1] * rank,
        "groups": 1,
    }
    return Node("conv", tuple(inputs), (result,), attrs, like.location)


def is_trivial(values: Sequence[object], trivial: object) -> bool:
    """Whether all entries of an attribute (a missing one too) equal ``trivial``."""
    return all((tuple(v) if isinstance(v, list) else v) == trivial for v in values)


def channel_values(data: Array, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """Return a constant as one value per channel of an activation [1, C, ...].

    None if it does not broadcast (left-aligned) along everything but the channels.
    """
    if data.ndim > len(shape):
        return None
    extents = data.shape + (1,) * (len(shape) - data.ndim)
    if any(n != 1 for axis, n in enumerate(extents) if axis != 1):
        return None
    channels = shape[1] if len(shape) > 1 else 1
    if len(extents) > 1 and extents[1] not in {1, channels}:
        return None
    return np.broadcast_to(data.reshape(-1).astype(np.float64), (channels,))
