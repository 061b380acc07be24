"""Graphs that were just lowered: without copies of variables."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nnef_hw.ir import Graph

__all__ = ["with_shared_variables"]


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
