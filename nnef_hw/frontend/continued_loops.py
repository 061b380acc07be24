"""Loops whose states go on in the next inference: recurrent layers on a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from nnef_hw.errors import NnefHwError, UnsupportedError, UsageError, raise_all
from nnef_hw.ir import Graph, Node, State, Tensor

__all__ = ["continue_loops"]


def continue_loops(graph: Graph, path: Path | str) -> Graph:
    """Return a graph whose loops begin where they ended in the inference before.

    What its loops pass on from step to step becomes states of the graph, which begin with the
    loops' initial values. So inferences one after the other are one loop over all of their steps.

    Raises
    ------
    UsageError
        If there is no loop.
    UnsupportedError, ErrorGroup
        If a loop runs backwards: that needs the whole sequence; if an initial value is computed.
    """
    loops = [node for node in graph.nodes if node.op == "scan"]
    if not loops:
        raise UsageError(
            f"{path}: the model has no loops to continue",
            remedy="name its states: --state INPUT=OUTPUT",
        )
    raise_all([error for node in loops for error in _problems(graph, node)])
    tensors, states = dict(graph.tensors), dict(graph.states)
    nodes = []
    for node in graph.nodes:
        if node.op == "scan":
            node = _continued(graph, node, tensors, states)
        nodes.append(node)
    return replace(graph, nodes=tuple(nodes), tensors=tensors, states=states)


def _problems(graph: Graph, node: Node) -> Iterator[NnefHwError]:
    reason = remedy = None
    if any(step < 0 for _, step in node.attrs["scans"]):
        reason = "it runs backwards, from the end of a sequence"
        remedy = "use networks that run forwards only"
    elif any(graph.tensor(name).data is None for name in _initial(node)):
        reason, remedy = "its initial state is computed", "use a constant, or name it by --state"
    if reason:
        yield UnsupportedError(
            f"loop {node.name!r} cannot be continued: {reason}",
            remedy=remedy,
            location=node.location,
        )


def _initial(node: Node) -> tuple[str, ...]:
    return node.inputs[len(node.inputs) - len(node.attrs["states"]) :]


def _continued(
    graph: Graph, node: Node, tensors: dict[str, Tensor], states: dict[str, State]
) -> Node:
    """Let a loop begin with states, and give their next values."""
    body: Graph = node.attrs["body"]
    inputs = list(node.inputs[: len(node.inputs) - len(_initial(node))])
    outputs, results = list(node.attrs["outputs"]), list(node.outputs)
    for n, (initial, source) in enumerate(zip(_initial(node), node.attrs["states"], strict=True)):
        state = _unused(f"{node.name}_state{n}", tensors)
        tensors[state] = replace(
            graph.tensor(initial), name=state, data=None, label=None, location=node.location
        )
        last = [
            result
            for result, (name, kind, _, _) in zip(results, outputs, strict=True)
            if (name, kind) == (source, "last")
        ]
        if not last:
            last = [_unused(f"{state}_next", tensors)]
            tensors[last[0]] = replace(
                body.tensor(source), name=last[0], label=None, location=node.location
            )
            results += last
            outputs.append((source, "last", 0, 1))
        states[state] = State(graph.constant(initial), last[0])
        inputs.append(state)
    node = replace(node, inputs=tuple(inputs), outputs=tuple(results))
    return node.with_attrs(outputs=outputs)


def _unused(name: str, tensors: dict[str, Tensor]) -> str:
    while name in tensors:
        name += "_"
    return name
