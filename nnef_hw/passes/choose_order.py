"""Join and take apart streams in the order in which they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from nnef_hw.ir import Graph, Node, StreamOrder, Trait
from nnef_hw.passes.editor import Editor
from nnef_hw.passes.views import View

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
        if _view(graph, node) is None:
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


def _view(graph: Graph, node: Node) -> int | None:
    """Return how many axes are outside of what streams in order; None if it cannot be chosen."""
    shape = graph.tensor(node.outputs[0]).shape
    if any(graph.tensor(name).data is not None for name in node.inputs):
        return None
    outside = None
    if node.op == "concat":
        outside = int(node.attrs["axis"])
    elif node.op == "slice" and len(node.attrs["axes"]) == 1 and node.attrs["stride"] == [1]:
        outside = int(node.attrs["axes"][0])
    elif node.has(Trait.TABLE) or node.has(Trait.ARITHMETIC):
        outside = 0 if {graph.tensor(name).shape for name in node.inputs} == {shape} else None
    if outside is None or (prod(shape[:outside]) == 1 and prod(shape[1:]) == shape[1]):
        return None
    return outside


def _reordered(graph: Graph, names: Iterable[str]) -> Graph:
    """Return the graph with these nodes computed on their elements in order."""
    editor = Editor(graph)
    for node in graph.nodes:
        outside = _view(graph, node) if node.name in names else None
        if outside is None:
            editor.keep(node)
            continue
        result = _in_order(editor.shape(node.name), outside)
        like = editor.tensors[node.name]
        image = editor.activation(f"{node.name}_in_order", result.shape, like)
        inputs = tuple(
            _in_order(editor.shape(name), outside).enter(editor, node, name, f"{node.name}_operand")
            for name in node.inputs
        )
        editor.emit(replace(_moved(editor, node, outside), inputs=inputs, outputs=(image,)))
        result.leave(editor, node, image, node.name)
    return editor.finish()


def _in_order(shape: tuple[int, ...], outside: int) -> View:
    """Return the view whose stream has the elements in their order, the last axes as channels."""
    pixels = prod(shape[:outside])
    if pixels == 1:
        return View(tuple(range(len(shape))), (1, prod(shape)))
    axes = (*range(outside, len(shape)), *range(outside))
    return View(axes, (1, prod(shape[outside:]), pixels, 1))


def _moved(editor: Editor, node: Node, outside: int) -> Node:
    """Return a node with the attributes that it has in its view."""
    if node.op == "concat":
        return node.with_attrs(axis=1)
    if node.op == "slice":
        inner = prod(editor.shape(node.name)[outside + 1 :])
        begin, end = (node.attrs[key][0] * inner for key in ("begin", "end"))
        return node.with_attrs(axes=[1], begin=[begin], end=[end])
    return node
