"""Formats around states: what hands codes on from one step to the next has one format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, State, Trait
from nnef_hw.reference import iterate_float

__all__ = ["state_groups", "step_samples"]


def state_groups(step: Graph, states: Mapping[str, State]) -> dict[str, frozenset[str]]:
    """Return by tensor the tensors that share its format because of a state; without all others.

    A state and its next value, what that is a view of, and all on a way from the state to it that
    only moves and joins codes, as in a shift register; in a loop, the state with its first value.

    Parameters
    ----------
    step
        A step of the graph, see :func:`~nnef_hw.ir.open_states`.
    states
        The graph's states.
    """
    groups: list[set[str]] = []
    for name, state in states.items():
        group = {name, state.result, *_views(step, state.result)}
        group |= _behind(step, name) & _before(step, state.result)
        group |= {node.name for node in step.consumers(name) if node.op == "begin_steps"}
        for other in [other for other in groups if not other.isdisjoint(group)]:
            group |= other
            groups.remove(other)
        groups.append(group)
    return {name: frozenset(group) for group in groups for name in group}


def _views(graph: Graph, name: str) -> Iterator[str]:
    """Yield the tensors that become a tensor by operators of one operand that keep formats."""
    node = graph.producer(name)
    while node is not None and node.has(Trait.KEEPS_FORMAT):
        yield node.inputs[0]
        node = graph.producer(node.inputs[0])


def _hands_on(node: Node) -> bool:
    return node.has(Trait.KEEPS_FORMAT) or node.has(Trait.ONE_FORMAT)


def _behind(graph: Graph, name: str) -> set[str]:
    def after(tensor: str) -> Iterable[str]:
        readers = graph.consumers(tensor)
        return (node.name for node in readers if _hands_on(node) and tensor in node.numbers)

    return _reached(name, after)


def _before(graph: Graph, name: str) -> set[str]:
    def before(tensor: str) -> Iterable[str]:
        node = graph.producer(tensor)
        return node.numbers if node is not None and _hands_on(node) else ()

    return _reached(name, before)


def _reached(name: str, following: Callable[[str], Iterable[str]]) -> set[str]:
    found, todo = {name}, [name]
    while todo:
        new = set(following(todo.pop())) - found
        found |= new
        todo += new
    return found


def step_samples(graph: Graph, samples: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return samples of one step of a graph: [N * T, ...] of inputs and states, by sequences.

    The states are those of the real network. Samples of a graph without states stay as they are.
    """
    if not graph.states:
        return samples
    names = (*graph.inputs, *graph.states)
    chunks = list(iterate_float(graph, samples, names=names))
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in names}
