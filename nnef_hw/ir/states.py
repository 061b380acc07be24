"""The step of a graph with states: what it computes of them, as a graph without any."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nnef_hw.ir.graph import Graph, State

__all__ = ["close_states", "open_states", "without_dead_states"]


def open_states(graph: Graph) -> Graph:
    """Return one step of a graph: its states are its last inputs, their next values its results.

    There is an output for every state, in their order, behind the graph's own. A graph without
    states is returned itself.
    """
    if not graph.states:
        return graph
    return replace(
        graph,
        inputs=(*graph.inputs, *graph.states),
        outputs=(*graph.outputs, *(state.result for state in graph.states.values())),
        states={},
        repeated={name: state.steps for name, state in graph.states.items() if not state.goes_on},
    )


def close_states(step: Graph, states: Mapping[str, State]) -> Graph:
    """Return the graph of a step, rewritten or not: the inverse of :func:`open_states`.

    What each state takes over is the output in its place.
    """
    if not states:
        return step
    count = len(states)
    assert step.inputs[-count:] == tuple(states), f"{step.name}: its states have moved"
    return replace(
        step,
        inputs=step.inputs[:-count],
        outputs=step.outputs[:-count],
        states={
            name: replace(state, result=result)
            for (name, state), result in zip(states.items(), step.outputs[-count:], strict=True)
        },
        repeated={},
    )


def without_dead_states(graph: Graph) -> Graph:
    """Return the graph without the states that no output will ever depend on, and their readers."""
    needed, before = set(graph.outputs), -1
    while len(needed) > before:
        before = len(needed)
        needed.update(state.result for name, state in graph.states.items() if name in needed)
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
    kept = {name: state for name, state in graph.states.items() if name in needed}
    if len(kept) == len(graph.states):
        return graph
    nodes = tuple(node for node in graph.nodes if not needed.isdisjoint(node.outputs))
    return replace(graph, states=kept, nodes=nodes)
