"""Gates of a recurrent cell: one layer for all of them, or a layer for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from nnef_hw.ir import Graph, Node, Tensor, Trait
from nnef_hw.ir.operators import SliceAttributes, WeightsAttributes

__all__ = ["apart"]

Part = tuple[int, int]
"""First channel, and that behind the last one."""


def apart(graph: Graph) -> Graph:
    """Return a fixed graph in which layers of loops that are read in parts are a layer for each.

    A linear layer, arithmetic or a function of which others read slices along the channels alone,
    and which depends on a state of a loop: one layer is less hardware, but its parts come one
    after the other, and the way around the loop takes as much longer. Every code is the same.

    The graph itself, if there is no such layer.
    """
    return graph.once(_rewritten)


def _rewritten(graph: Graph) -> Graph:
    editor = _Apart(graph)
    for node in reversed(graph.nodes):
        editor.take(node)
    return editor.finish()


class _Apart:
    """A graph being rewritten from its end to its begin."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors: dict[str, Tensor] = dict(graph.tensors)
        self._nodes: list[Node] = []
        self._slices: dict[str, dict[Part, str]] = {}
        self._read: set[str] = {*graph.outputs}
        self._read.update(state.result for state in graph.states.values())
        loops = [name for name, state in graph.states.items() if not state.goes_on]
        self._looped = graph.dependents(loops)
        self._changed = False

    def take(self, node: Node) -> None:
        """Take a node of which all readers have been taken."""
        part, slices = self._part(node), self._slices.pop(node.name, {})
        if part is not None:
            self._take_slice(node, part, slices)
            return
        if slices and node.name not in self._read and self._is_divisible(node, [*slices]):
            self._changed = True
            for (begin, end), name in slices.items():
                self._emit(self._part_of(node, begin, end, name))
            return
        for (begin, end), name in slices.items():
            self._emit(self._slice(node.name, begin, end, name))
        self._emit(node)

    def _take_slice(self, node: Node, part: Part, slices: dict[Part, str]) -> None:
        """Leave a slice, and slices of it, to what computes the whole."""
        source, (first, _) = node.inputs[0], part
        for (begin, end), name in slices.items():
            if not self._leave(source, (first + begin, first + end), name):
                self._emit(self._slice(node.name, begin, end, name))
        is_read = not slices or node.name in self._read
        if is_read and not self._leave(source, part, node.name):
            self._emit(node)

    def _leave(self, source: str, part: Part, name: str) -> bool:
        """Leave a part to its source's producer, unless that has been asked for it before."""
        return self._slices.setdefault(source, {}).setdefault(part, name) == name

    def finish(self) -> Graph:
        """Return the graph."""
        if not self._changed:
            return self._graph
        for source, slices in self._slices.items():
            for (begin, end), name in slices.items():
                self._nodes.append(self._slice(source, begin, end, name))
        return self._graph.replaced(nodes=tuple(reversed(self._nodes)), tensors=self._tensors)

    def _emit(self, node: Node) -> None:
        self._nodes.append(node)
        self._read.update(node.inputs)

    def _part(self, node: Node) -> Part | None:
        """Return the channels that a slice takes; None for other nodes."""
        if node.op != "slice" or len(self._tensors[node.name].shape) != 2:
            return None
        attrs = node.attributes(SliceAttributes)
        return (attrs.begin, attrs.end) if attrs.axis == 1 else None

    def _is_divisible(self, node: Node, parts: list[Part]) -> bool:
        """Whether each part can be computed alone, and nothing is computed twice."""
        if node.name not in self._looped or any(
            end > begin for (_, end), (begin, _) in pairwise(sorted(parts))
        ):
            return False
        if node.has(Trait.WEIGHTS):
            return node.op == "linear" and node.attributes(WeightsAttributes).groups == 1
        shape = self._tensors[node.name].shape
        return node.has(Trait.ELEMENTWISE) and all(
            self._tensors[name].shape == shape and self._tensors[name].data is None
            for name in node.inputs
        )

    def _part_of(self, node: Node, begin: int, end: int, name: str) -> Node:
        """Return a node that computes some channels of another one's result."""
        if node.has(Trait.WEIGHTS):
            requant = node.attrs["requant"].of_channels(slice(begin, end))
            inputs = (node.inputs[0], *self._rows(node, begin, end))
            return replace(node.with_attrs(requant=requant), inputs=inputs, outputs=(name,))
        inputs = tuple(self._sliced(source, begin, end) for source in node.inputs)
        return replace(node, inputs=inputs, outputs=(name,))

    def _sliced(self, source: str, begin: int, end: int) -> str:
        """Return the name of a part of a tensor whose producer has not been taken yet."""
        slices = self._slices.setdefault(source, {})
        if (begin, end) not in slices:
            tensor = self._tensors[source]
            name = self._add(f"{source}_{begin}", replace(tensor, shape=(1, end - begin)))
            slices[begin, end] = name
        return slices[begin, end]

    def _rows(self, node: Node, begin: int, end: int) -> Iterator[str]:
        """Name filter and bias of some channels."""
        for name, axis in zip(node.inputs[1:], (0, 1), strict=True):
            tensor = self._tensors[name]
            qtype, data = tensor.qtype, tensor.data
            assert qtype is not None
            assert data is not None
            part = data[begin:end] if axis == 0 else data[:, begin:end]
            if isinstance(qtype.scale, tuple):
                qtype = replace(qtype, scale=qtype.scale[begin:end])
            whole = replace(tensor, data=part, shape=part.shape, qtype=qtype)
            yield self._add(f"{name}_{begin}", whole)

    def _add(self, hint: str, tensor: Tensor) -> str:
        name = hint
        while name in self._tensors:
            name += "_"
        self._tensors[name] = replace(tensor, name=name)
        return name

    def _slice(self, source: str, begin: int, end: int, name: str) -> Node:
        attrs = {"axes": [1], "begin": [begin], "end": [end], "stride": [1]}
        producer = self._graph.producer(name) or self._graph.producer(source)
        location = None if producer is None else producer.location
        return Node("slice", (source,), (name,), attrs, location)
