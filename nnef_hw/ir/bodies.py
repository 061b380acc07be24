"""Functions whose operator holds a graph, written out."""

from __future__ import annotations

from dataclasses import replace

from nnef_hw.ir.graph import Graph
from nnef_hw.ir.operators import Trait

__all__ = ["with_bodies_inline"]


def with_bodies_inline(graph: Graph) -> Graph:
    """Return a graph in which the operators of a body stand where the function did."""
    tensors, nodes = dict(graph.tensors), []
    for node in graph.nodes:
        body = node.attrs.get("body")
        if not isinstance(body, Graph) or not node.has(Trait.TABLE):
            nodes.append(node)
            continue
        shape = graph.tensor(node.name).shape
        names = dict(zip((*body.inputs, *body.outputs), (*node.inputs, *node.outputs), strict=True))
        for name, tensor in body.tensors.items():
            if name in names:
                continue
            new = f"{node.name}_{name}"
            while new in tensors:
                new += "_"
            names[name] = new
            extents = () if tensor.data is not None else shape
            tensors[new] = replace(tensor, name=new, shape=extents)
        for inner in body.nodes:
            inputs, outputs = (
                tuple(names[name] for name in side) for side in (inner.inputs, inner.outputs)
            )
            nodes.append(replace(inner, inputs=inputs, outputs=outputs, location=node.location))
    if nodes == list(graph.nodes):
        return graph
    return graph.replaced(nodes=tuple(nodes), tensors=tensors)
