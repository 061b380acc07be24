"""Names in the author's model for tensors that passes made."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.ir import Graph, Trait

__all__ = ["authors_name"]


def authors_name(graph: Graph, name: str) -> str:
    """Return the name of the tensor of which another is a view, its own name if it is none.

    Passes compute on views, whose names begin with that of the tensor beside which they stand:
    ``y_2d`` is reshaped to ``y``, and ``x_image`` is a reshape of ``x``.
    """
    found, todo = {name}, [name]
    while todo:
        new = set(_beside(graph, todo.pop())) - found
        found |= new
        todo += new
    return min((other for other in found if f"{name}_".startswith(f"{other}_")), key=len)


def _beside(graph: Graph, name: str) -> Iterator[str]:
    producer = graph.producer(name)
    if producer is not None and producer.has(Trait.MOVES):
        yield producer.inputs[0]
    for reader in graph.consumers(name):
        if reader.has(Trait.MOVES):
            yield reader.name
