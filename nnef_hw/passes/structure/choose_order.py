"""Join and take apart streams in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from nnef_hw.ir import Graph, Node, StreamOrder
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.in_order import emit_in_order, outer_axes
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.passes.structure.stream_costs import Neighbourhoods, Surroundings, stream_costs

__all__ = ["ChooseOrder"]


@dataclass(frozen=True, slots=True)
class ChooseOrder(Pass):
    """Compute operators on their elements in order, where fewer codes wait in memories then.

    * ``concat`` and ``slice`` along an axis -> the same of channels that are this axis and those
      behind it, of pixels that are those before it
    * functions, and arithmetic of activations of equal shapes -> the same of one pixel

    So the heads of a detector, [1, anchors, 4], are joined as the layers before them give them. The
    change that saves most is made first, together with those that meet none of its streams.

    Left alone: networks whose streams need no other order.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        order = graph.once(StreamOrder)
        costs = stream_costs(graph)
        if not costs:
            return graph
        changes = _chosen(graph, order, costs)
        return _reordered(graph, set().union(*(c.names for c in changes))) if changes else graph


@dataclass(frozen=True, slots=True)
class _Change:
    """Nodes that are better computed in order: what surrounds them, and the codes that it saves."""

    names: set[str]
    around: Surroundings
    saving: int


def _chosen(graph: Graph, order: StreamOrder, costs: Mapping[str, int]) -> list[_Change]:
    """Return the changes that save most, of those that meet the best of them."""
    neighbourhoods = Neighbourhoods(graph, order)
    found = (_change(neighbourhoods, costs, names) for names in _candidates(graph, order))
    chosen: list[_Change] = []
    streams, sources = set[str](), set[str]()
    for change in sorted(filter(None, found), key=lambda change: -change.saving):
        if not change.around.meets(streams, sources):
            chosen.append(change)
            streams |= change.around.streams
            sources |= change.around.sources
    return chosen


def _change(
    neighbourhoods: Neighbourhoods, costs: Mapping[str, int], names: set[str]
) -> _Change | None:
    """Return the change of cost if these nodes are computed in order; None if it saves nothing."""
    around = neighbourhoods.around(names)
    cost = sum(costs.get(name, 0) for name in around.streams)
    if cost:
        cost -= sum(stream_costs(_reordered(around.graph, names)).values())
    return _Change(names, around, cost) if cost > 0 else None


def _candidates(graph: Graph, order: StreamOrder) -> Iterator[set[str]]:
    """Yield nodes that might be computed in another order: all without moves between them, each."""
    groups: dict[str, set[str]] = {}
    for node in graph.nodes:
        if _outer(graph, node) is None:
            continue
        group = groups[node.name] = {node.name}
        for origin, moves in map(order.origin, node.inputs):
            other = groups.get(origin, group)
            if other is group or any(move.op != "reshape" for move in moves):
                continue
            small, group = sorted((other, group), key=len)
            group |= small
            groups.update(dict.fromkeys(small, group))
    unique = {id(group): group for group in groups.values()}
    yield from unique.values()
    yield from ({name} for name in groups)


def _outer(graph: Graph, node: Node) -> int | None:
    """Return the outer axes of a node that may be computed in order; None if that is no other."""
    if any(graph.tensor(name).data is not None for name in node.inputs) or node.op == "pad":
        return None
    shape = graph.tensor(node.outputs[0]).shape
    outer = outer_axes(node, [graph.tensor(name).shape for name in node.inputs], shape)
    if outer is None or (prod(shape[:outer]) == 1 and prod(shape[1:]) == shape[1]):
        return None
    return outer


def _reordered(graph: Graph, names: Iterable[str]) -> Graph:
    """Return the graph with these nodes computed on their elements in order."""
    editor = Editor(graph)
    for node in graph.nodes:
        outer = _outer(graph, node) if node.name in names else None
        if outer is None:
            editor.keep(node)
        else:
            emit_in_order(editor, node, outer)
    return editor.finish()
