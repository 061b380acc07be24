"""Join and take apart streams in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from nnef_hw.ir import Graph, Node, StreamOrder
from nnef_hw.passes.editor import Editor
from nnef_hw.passes.in_order import emit_in_order, outer_axes

__all__ = ["ChooseOrder"]

_IMPOSSIBLE = 1 << 40
"""Cost of an order that no hardware makes, in codes."""


@dataclass(frozen=True, slots=True)
class ChooseOrder:
    """Compute operators on their elements in order, where fewer codes wait in memories then.

    * ``concat`` and ``slice`` along an axis -> the same of channels that are this axis and those
      behind it, of pixels that are those before it
    * functions, and arithmetic of activations of equal shapes -> the same of one pixel

    So the heads of a detector, [1, anchors, 4], are joined as the layers before them give them. The
    change that saves most is made first.

    Left alone: networks whose streams need no other order.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        best, cost = graph, _cost(graph)
        if cost:
            for names in _candidates(graph):
                changed = _reordered(graph, names)
                changed_cost = _cost(changed)
                if changed_cost < cost:
                    best, cost = changed, changed_cost
        return best


def _cost(graph: Graph) -> int:
    """Count the codes of frames that are kept to be read in another order."""
    order, codes = StreamOrder(graph), 0
    for name in order.moved:
        reordering = order.reordering(name)
        if reordering is None:
            codes += _IMPOSSIBLE
        elif not reordering.is_trivial:
            codes += graph.tensor(name).volume
    return codes


def _candidates(graph: Graph) -> Iterator[set[str]]:
    """Yield nodes that might be computed in another order: all without moves between them, each."""
    groups: dict[str, set[str]] = {}
    order = StreamOrder(graph)
    for node in graph.nodes:
        if _outer(graph, node) is None:
            continue
        group = {node.name}
        for origin, moves in map(order.origin, node.inputs):
            if all(move.op == "reshape" for move in moves):
                group |= groups.get(origin, set())
        for name in group:
            groups[name] = group
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
