"""Bodies of functions: what an operator computes of one number, as a graph of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from nnef_hw.ir import Graph, Node, Tensor

__all__ = ["function_body", "scalar_value"]

_INPUT, _RESULT = "x", "y"


def scalar_value(tensor: Tensor) -> float | int | bool | None:
    """Return the number that all elements of a constant are; None if they differ."""
    if tensor.data is None or not tensor.data.size:
        return None
    first = tensor.data.reshape(-1)[0]
    value: float | int | bool = first.item()
    return value if (tensor.data == first).all() else None


def function_body(graph: Graph, source: str, nodes: Iterable[Node]) -> Graph:
    """Return the function of one element that nodes compute, the last of which has the result.

    The body's input is ``x``, its output ``y``; all of its tensors have rank 0.
    """
    body = _Body()
    names = {source: _INPUT}
    for node in nodes:
        names.update(body.add(graph, node, names))
    return body.graph(names[node.name])


class _Body:
    def __init__(self) -> None:
        self._tensors = {_INPUT: Tensor(_INPUT, ())}
        self._nodes: list[Node] = []
        self._constants: dict[tuple[str, str], str] = {}

    def add(self, graph: Graph, node: Node, names: Mapping[str, str]) -> dict[str, str]:
        """Append a node, or those of its own body; return the name of its result."""
        inner = node.attrs.get("body")
        if isinstance(inner, Graph):
            known = {inner.inputs[0]: names[node.inputs[0]]}
            for each in inner.nodes:
                known.update(self.add(inner, each, known))
            return {node.name: known[inner.outputs[0]]}
        inputs = tuple(
            names.get(name) or self._constant(graph.tensor(name)) for name in node.inputs
        )
        result = f"t{len(self._nodes) + 1}"
        self._tensors[result] = Tensor(result, (), graph.tensor(node.name).dtype)
        self._nodes.append(Node(node.op, inputs, (result,), node.attrs))
        return {node.name: result}

    def _constant(self, tensor: Tensor) -> str:
        value = scalar_value(tensor)
        assert value is not None, tensor.name
        assert tensor.data is not None, tensor.name
        key = tensor.dtype, repr(value)
        if key not in self._constants:
            name = self._constants[key] = f"c{len(self._constants) + 1}"
            kind = np.float64 if tensor.dtype == "scalar" else tensor.data.dtype
            self._tensors[name] = Tensor(name, (), tensor.dtype, data=np.array(value, kind))
        return self._constants[key]

    def graph(self, last: str) -> Graph:
        nodes = [*self._nodes[:-1], replace(self._nodes[-1], outputs=(_RESULT,))]
        assert self._nodes[-1].name == last, "the last node has the result"
        tensors = {
            (_RESULT if name == last else name): replace(tensor, name=_RESULT)
            if name == last
            else tensor
            for name, tensor in self._tensors.items()
        }
        return Graph("function", (_INPUT,), (_RESULT,), tensors, tuple(nodes))
