"""Parts of NNEF graphs: between values of one's choice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nnef_hw.errors import UsageError
from nnef_hw.frontend.building.model_file import similar_names
from nnef_hw.frontend.nnef import load_nnef
from nnef_hw.ir import Graph, Node, Stage, Tensor, without_dead_states

__all__ = ["cut", "load_nnef_part"]


def load_nnef_part(
    path: Path | str,
    *,
    dims: Mapping[str, int] | None = None,
    lenient: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
) -> Graph:
    """Read an NNEF model, and cut it; see :func:`cut`.

    Raises
    ------
    UsageError
        If inputs are to be constants.
    """
    if bind:
        raise UsageError(
            f"{path}: inputs of NNEF models stay inputs; --bind is for ONNX and TensorFlow Lite"
        )
    return cut(load_nnef(path, dims=dims, lenient=lenient), inputs, outputs, path)


def cut(graph: Graph, inputs: Sequence[str], outputs: Sequence[str], path: Path | str) -> Graph:
    """Return the part of a graph from some of its values on, up to others.

    States stay that the results depend on.

    Parameters
    ----------
    inputs
        Values that are inputs then, behind those of the graph's own that are still needed.
    outputs
        Values that are the results; the graph's own if there are none.
    path
        The model's file, for messages.

    Raises
    ------
    UsageError
        If there is no such value, no result needs it, or the model is quantized to the hardware's
        integers already.
    """
    if graph.stage != Stage.FLOAT:
        raise UsageError(
            f"{path}: the model is fixed: its inputs and outputs have formats of their own",
            remedy="cut it when it is quantized",
        )
    for name in inputs:
        _check(graph, name, "to begin the graph at", path)
    for name in outputs:
        _check(graph, name, "to cut the graph at", path)
    begun = [name for name in dict.fromkeys(inputs) if graph.producer(name) is not None]
    tensors = dict(graph.tensors)
    nodes = tuple(_without(node, begun, tensors) for node in graph.nodes)
    tensors.update((name, replace(tensors[name], label=None)) for name in begun)
    whole = replace(
        graph,
        nodes=nodes,
        tensors=tensors,
        inputs=(*graph.inputs, *begun),
        outputs=tuple(dict.fromkeys(outputs)) or graph.outputs,
    )
    found = without_dead_states(whole)
    needed = {*found.outputs, *(state.result for state in found.states.values())}
    kept: list[Node] = []
    for node in reversed(found.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    missing = [name for name in begun if name not in needed]
    if missing:
        raise UsageError(
            f"{path}: no result needs {missing[0]!r}, where the graph should begin",
            remedy="leave it out, or end the graph at what is computed of it (--outputs)",
        )
    names = tuple(name for name in found.inputs if name in needed)
    return replace(found, inputs=names).replaced(nodes=tuple(reversed(kept)))


def _check(graph: Graph, name: str, purpose: str, path: Path | str) -> None:
    values = [
        *(result for node in graph.nodes for result in node.outputs), *graph.inputs
    ]  # fmt: skip
    if name not in values:
        raise UsageError(
            f"{path}: there is no value {name!r} {purpose}", remedy=similar_names(name, values)
        )


def _without(node: Node, begun: Collection[str], tensors: dict[str, Tensor]) -> Node:
    """Return a node whose results that the host gives have other names, which nobody reads."""
    outputs = []
    for name in node.outputs:
        if name in begun:
            unread, count = f"{name}_before", 2
            while unread in tensors:
                unread, count = f"{name}_before_{count}", count + 1
            tensors[unread] = replace(tensors[name], name=unread, label=None)
            name = unread
        outputs.append(name)
    return replace(node, outputs=tuple(outputs))
