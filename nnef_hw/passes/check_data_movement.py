"""Find reshapes and transposes that no hardware exists for."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.errors import NnefHwError, UnsupportedError
from nnef_hw.ir import Graph, find_reordering, reordered_streams, stream_origin

__all__ = ["check_data_movement"]


def check_data_movement(graph: Graph) -> Iterator[NnefHwError]:
    """Yield one error for each tensor whose elements come in an order that cannot be made.

    Moves in a row are one, named after the last.
    """
    for name in reordered_streams(graph):
        node, (origin, _) = graph.producer(name), stream_origin(graph, name)
        before, after = graph.tensor(origin).shape, graph.tensor(name).shape
        if node is not None and find_reordering(graph, name) is None:
            what = f"{origin!r} {list(before)} to {list(after)}"
            yield UnsupportedError(
                f"{node.op} {name!r}: the change from {what} is more than an exchange of three "
                "axes",
                remedy="flatten the image first",
                location=node.location,
            )
