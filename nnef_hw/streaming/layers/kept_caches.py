"""Caches that stay in the weights of products of two activations: a step writes one row there.

In the graph a cache is a state, of which ``write_row`` exchanges a row. Hardware that did the same
would stream the whole cache in every step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.architecture.kept_rows import is_put_back
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Graph, Node, State, StreamOrder, Trait
from nnef_hw.ir.layers import Contraction, format_of, layer_of
from nnef_hw.passes.rewriting.names import authors_name

__all__ = ["KeptCache", "KeptCaches", "find_kept_caches", "why_not_kept"]


class KeptCache(NamedTuple):
    """Row and place that a product reads in place of a cache.

    Attributes
    ----------
    row, place
        Tensors of the new row, and of its place.
    place_format
        Format of the place.
    """

    row: str
    place: str
    place_format: QType


@dataclass(frozen=True, slots=True)
class KeptCaches:
    """Caches of a graph that are in the weights of products.

    Attributes
    ----------
    products
        By the name of the product that reads it.
    states, nodes
        States that are there, and what only hands them on: by results.
    """

    products: Mapping[str, KeptCache]
    states: frozenset[str]
    nodes: frozenset[str]


def find_kept_caches(graph: Graph) -> KeptCaches:
    """Find the states of a fixed graph that are caches of products, and no more."""
    products: dict[str, KeptCache] = {}
    states, nodes = set[str](), set[str]()
    for node in graph.nodes:
        if node.op != "write_row" or why_not_kept(graph, node) is not None:
            continue
        [name] = _states_of(graph, node)
        _, row, place = node.inputs
        moves = [*_moves_to(graph, node.inputs[0]), *_moves_of(graph, node.name)]
        nodes.update((node.name, *(move.name for move in moves)))
        states.add(name)
        products |= {
            reader.name: KeptCache(row, place, format_of(graph.tensor(place)))
            for reader, _ in _readers(graph, node.name)
        }
    return KeptCaches(products, frozenset(states), frozenset(nodes))


def why_not_kept(graph: Graph, node: Node) -> str | None:
    """Say why a ``write_row`` is none of a cache that stays in the weights of products.

    Formats are known of fixed graphs only.
    """
    states = _states_of(graph, node)
    if len(states) != 1:
        return f"what it writes to is no state that it alone reads and takes over ({len(states)})"
    state = graph.states[states[0]]
    qtype = graph.tensor(states[0]).qtype
    if qtype is not None and (state.initial != qtype.zero_point).any():
        return "its cache begins with other numbers than 0"
    if graph.tensor(node.name).qtype is None and state.initial.any():
        return "its cache begins with other numbers than 0"
    readers = _readers(graph, node.name)
    if not readers:
        return "no product of two activations reads its cache"
    for reader, operand in readers:
        why = _why_no_operand(graph, node, reader, operand)
        if why is not None:
            return f"{reader.op} {authors_name(graph, reader.name)!r} reads its cache{why}"
    return None


def _why_no_operand(graph: Graph, node: Node, reader: Node, operand: str) -> str | None:
    """Say why a reader has no memory that such rows are written to."""
    if reader.op != "contraction" or reader.inputs[0] == operand:
        return ", which is no product of two activations with it"
    order = graph.once(StreamOrder)
    if operand != node.name:
        reordering = order.reordering(operand)
        if reordering is None or not reordering.is_trivial or order.origin(operand)[0] != node.name:
            return " in another order than it is written"
    product = layer_of(graph, reader) if graph.tensor(operand).qtype is not None else None
    if isinstance(product, Contraction):
        sizes, places = product.sizes, graph.tensor(node.name).shape[2]
        if sizes.sets != 1 or sizes.row_axis == "m" or sizes.outer_rows != places:
            return (
                f" as {sizes.sets} sets of {list(sizes.extents)} ({sizes.order}), "
                f"of which the {places} rows are not outermost"
            )
    return None


def _states_of(graph: Graph, node: Node) -> list[str]:
    """Return the states of whose rows a node exchanges one, in place."""
    names = [node.inputs[0], *(move.inputs[0] for move in _moves_to(graph, node.inputs[0]))]
    name = names[-1]
    state = graph.states.get(name)
    if state is None or not state.goes_on or name in graph.outputs:
        return []
    if any(len(graph.consumers(each)) != 1 for each in names):
        return []
    return [name] if _is_taken_over(graph, node, state, [*reversed(names)]) else []


def _is_taken_over(graph: Graph, node: Node, state: State, names: list[str]) -> bool:
    """Whether a state takes over what a node makes of it, every element at its place."""
    results = [state.result, *(move.inputs[0] for move in _moves_to(graph, state.result))]
    shared = [other.result for other in graph.states.values()].count(state.result) > 1
    if results[-1] != node.name or shared or not set(results).isdisjoint(graph.outputs):
        return False
    return is_put_back(graph, [*names, *reversed(results)], skipped=node.name)


def _moves_to(graph: Graph, name: str) -> Iterator[Node]:
    """Yield the moves in front of a tensor, the last one first."""
    while (node := graph.producer(name)) is not None and node.has(Trait.MOVES):
        yield node
        name = node.inputs[0]


def _moves_of(graph: Graph, name: str) -> Iterator[Node]:
    """Yield all moves of a tensor, and of their results."""
    for node in graph.consumers(name):
        if node.has(Trait.MOVES):
            yield node
            yield from _moves_of(graph, node.name)


def _readers(graph: Graph, name: str) -> list[tuple[Node, str]]:
    """Return readers of a tensor or of its moves, each with the name that it reads."""
    moved = [name, *(node.name for node in _moves_of(graph, name))]
    return [
        (node, each)
        for each in moved
        for node in graph.consumers(each)
        if not node.has(Trait.MOVES)
    ]
