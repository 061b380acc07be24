"""Costs of streams in another order, in the whole graph and around some nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nnef_hw.ir import Graph, Node, StreamOrder, Trait

__all__ = ["Neighbourhoods", "Surroundings", "stream_costs"]

_IMPOSSIBLE = 1 << 40
"""Cost of an order that no hardware makes, in codes."""
_READER = "neg"
"""Operator of the node that stands for all readers outside of a part of a graph."""


def stream_costs(graph: Graph) -> Mapping[str, int]:
    """Count the codes of frames that are kept to be read in another order, by the move's result."""
    order, costs = graph.once(StreamOrder), {}
    for name in order.moved:
        reordering = order.reordering(name)
        if reordering is None:
            costs[name] = _IMPOSSIBLE
        elif not reordering.is_trivial:
            costs[name] = graph.tensor(name).volume
    return costs


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The part of a graph that decides what the streams of some nodes cost.

    Parameters
    ----------
    graph
        These nodes, the moves before and behind them, and all moves of an input before them: the
        host sends it in the order in which most of its readers want it.
    streams
        The inputs and results in it.
    sources
        The computed tensors and inputs that the nodes' operands are made of.
    """

    graph: Graph
    streams: frozenset[str]
    sources: frozenset[str]

    def meets(self, streams: Collection[str], sources: Collection[str]) -> bool:
        """Whether a change here is also one of others with these streams and sources."""
        return not (
            self.streams.isdisjoint(streams)
            and self.streams.isdisjoint(sources)
            and self.sources.isdisjoint(streams)
        )


class Neighbourhoods:
    """Finds what surrounds nodes of a graph, in a time that does not depend on the graph's size."""

    def __init__(self, graph: Graph, order: StreamOrder) -> None:
        self._graph = graph
        self._places = {node.name: place for place, node in enumerate(graph.nodes)}
        self._moves: dict[str, list[Node]] = {}
        self._reads = Counter(state.result for state in graph.states.values())
        for node in graph.nodes:
            if node.has(Trait.MOVES):
                self._moves.setdefault(node.inputs[0], []).append(node)
            else:
                self._reads.update(set(node.inputs))
        self._sent: dict[str, list[str]] = {}
        for output, stream in order.outputs.items():
            self._sent.setdefault(stream.tensor, []).append(output)
        self._inputs, self._outputs = frozenset(graph.inputs), frozenset(graph.outputs)

    def around(self, names: Collection[str]) -> Surroundings:
        """Return the streams and nodes around some nodes."""
        nodes: dict[str, Node] = {}
        sources: set[str] = set()
        behind: list[str] = []
        for name in names:
            node = nodes[name] = self._graph.nodes[self._places[name]]
            behind += node.outputs
            for operand in node.inputs:
                source, moves = self._source(operand)
                nodes.update((move.name, move) for move in moves)
                sources.add(source)
        inputs = sources & self._inputs
        behind += inputs
        while behind:
            for move in self._moves.get(behind.pop(), ()):
                if move.name not in nodes:
                    nodes[move.name] = move
                    behind.append(move.name)
        streams = frozenset((*inputs, *(name for node in nodes.values() for name in node.outputs)))
        part = self._part(nodes, names, inputs, streams)
        return Surroundings(part, streams, frozenset(sources))

    def _source(self, name: str) -> tuple[str, list[Node]]:
        """Return the computed tensor or input that one is made of, and the moves between."""
        moves = []
        producer = self._graph.producer(name)
        while producer is not None and producer.has(Trait.MOVES):
            moves.append(producer)
            name = producer.inputs[0]
            producer = self._graph.producer(name)
        return name, moves

    def _part(
        self,
        nodes: Collection[str],
        names: Collection[str],
        inputs: Collection[str],
        streams: frozenset[str],
    ) -> Graph:
        """Return the part with these nodes and inputs; all other readers are one more node."""
        found = [self._graph.nodes[place] for place in sorted(map(self._places.__getitem__, nodes))]
        ours = Counter(name for node in found if node.name in names for name in set(node.inputs))
        read = tuple(
            name
            for name in sorted(streams)
            if self._reads[name] > ours[name] or not streams.issuperset(self._sent.get(name, ()))
        )
        tensors = {*streams, *(name for node in found for name in node.inputs)}
        if read:
            found.append(Node(_READER, read, ("",)))
        return Graph(
            name=self._graph.name,
            inputs=tuple(sorted(inputs)),
            outputs=tuple(sorted(streams & self._outputs)),
            tensors={name: self._graph.tensor(name) for name in tensors},
            nodes=tuple(found),
        )
