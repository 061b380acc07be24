"""Topological order: nodes that are only unsorted are sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from nnef_hw.frontend.onnx.file.model import OnnxGraph, OnnxNode

__all__ = ["read_names", "sorted_graph"]


def sorted_graph(graph: OnnxGraph) -> OnnxGraph:
    """Return a graph in which each node stands behind those whose results it reads.

    Nodes of a cycle, and of a graph in which values are defined twice, stay as they are.
    """
    nodes = [_with_sorted_graphs(node) for node in graph.nodes]
    return replace(graph, nodes=tuple(_sorted(nodes)))


def read_names(node: OnnxNode) -> set[str]:
    """Return the names that a node and its subgraphs read; some may be the subgraphs' own."""
    names = set(filter(None, node.inputs))
    for value in node.attrs.values():
        if isinstance(value, OnnxGraph):
            names.update(value.outputs)
            for inner in value.nodes:
                names |= read_names(inner)
    return names


def _with_sorted_graphs(node: OnnxNode) -> OnnxNode:
    graphs: dict[str, object] = {
        key: sorted_graph(value)
        for key, value in node.attrs.items()
        if isinstance(value, OnnxGraph)
    }
    return replace(node, attrs={**node.attrs, **graphs}) if graphs else node


def _sorted(nodes: Sequence[OnnxNode]) -> Sequence[OnnxNode]:
    places: dict[str, int] = {}
    for place, node in enumerate(nodes):
        for name in filter(None, node.outputs):
            if places.setdefault(name, place) != place:
                return nodes
    before = [sorted({places[n] for n in read_names(node) if n in places}) for node in nodes]
    if all(not found or found[-1] < place for place, found in enumerate(before)):
        return nodes
    order: list[int] = []
    states = [0] * len(nodes)  # 1: on the way, 2: done
    for start in range(len(nodes)):
        stack = [start]
        while stack:
            place = stack[-1]
            waiting = [] if states[place] else [x for x in before[place] if states[x] != 2]
            if any(states[x] == 1 for x in waiting) or (place in waiting):
                return nodes
            if waiting:
                states[place] = 1
                stack += reversed(waiting)
                continue
            stack.pop()
            if states[place] != 2:
                states[place] = 2
                order.append(place)
    return [nodes[place] for place in order]
