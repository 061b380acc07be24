"""Find reshapes and transposes that no hardware exists for."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, StreamOrder
from nnef_hw.passes.rewriting.names import authors_name

__all__ = ["check_data_movement"]


def check_data_movement(graph: Graph, besides: Collection[str] = ()) -> Iterator[NnefHwError]:
    """Yield one error for each tensor whose elements come in an order that cannot be made.

    Moves in a row are one, named after the last.

    Parameters
    ----------
    besides
        Tensors that are refused for another reason.
    """
    order = graph.once(StreamOrder)
    for name in order.moved:
        node, (origin, _) = graph.producer(name), order.origin(name)
        before, after = graph.tensor(origin).shape, graph.tensor(name).shape
        if node is not None and name not in besides and order.reordering(name) is None:
            what = f"{authors_name(graph, origin)!r} {list(before)} to {list(after)}"
            yield UnsupportedError(
                f"{node.op} {authors_name(graph, name)!r}: the change from {what} is no exchange "
                "of axes",
                remedy="reshape before axes change places, or by whole axes",
                location=node.location,
            )
