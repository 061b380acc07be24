"""Graphs that were just lowered: without copies of variables, without nodes that nobody reads."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nnef_hw.ir import Graph

__all__ = ["with_shared_variables", "without_unused"]


def with_shared_variables(graph: Graph) -> Graph:
    """Return a graph in which equal copies of a body's variable are one variable."""
    labels = Counter(tensor.label for tensor in graph.tensors.values())
    kept: dict[tuple[object, ...], str] = {}
    names: dict[str, str] = {}
    for name, tensor in graph.tensors.items():
        if tensor.data is None or tensor.label is None or tensor.quant is not None:
            continue
        if labels[tensor.label] > 1:
            content = tensor.data.shape, tensor.data.dtype.str, tensor.data.tobytes()
            names[name] = kept.setdefault((tensor.label, tensor.dtype, *content), name)
    if len(kept) == len(names):
        return graph
    nodes = tuple(
        replace(node, inputs=tuple(names.get(name, name) for name in node.inputs))
        for node in graph.nodes
    )
    return graph.replaced(nodes=nodes)


def without_unused(graph: Graph) -> Graph:
    """Return a graph without nodes whose results nobody reads, such as those of shapes."""
    used = set(graph.outputs)
    nodes = []
    for node in reversed(graph.nodes):
        if not used.isdisjoint(node.outputs):
            used.update(node.inputs)
            nodes.append(node)
    return graph.replaced(nodes=tuple(reversed(nodes)))
