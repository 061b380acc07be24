"""A graph as text, one node per line: for people, diffs and tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from nnef_hw.ir.graph import Graph, Tensor
from nnef_hw.numerics import QType, Requant

__all__ = ["format_graph"]


def format_graph(graph: Graph) -> str:
    """Return the whole graph; constants are shown by shape, not by value."""
    lines = [f"{graph.stage} graph {graph.name}"]
    lines += [f"  input  {_tensor(graph.tensor(name))}" for name in graph.inputs]
    for node in graph.nodes:
        results = ", ".join(_tensor(graph.tensor(name)) for name in node.outputs)
        arguments = list(node.inputs)
        arguments += [f"{key}={_value(value)}" for key, value in sorted(node.attrs.items())]
        lines.append(f"  {results} = {node.op}({', '.join(arguments)})")
    lines += [f"  output {name}" for name in graph.outputs]
    lines += [f"  state  {name} <- {state.result}" for name, state in graph.states.items()]
    return "\n".join(lines) + "\n"


def _tensor(tensor: Tensor) -> str:
    shape = "x".join(map(str, tensor.shape)) or "()"
    return f"{tensor.name}:{shape}{_qtype(tensor.qtype)}"


def _qtype(qtype: QType | None) -> str:
    if qtype is None:
        return ""
    scale = f"{len(qtype.scale)} scales" if isinstance(qtype.scale, tuple) else f"{qtype.scale:.6g}"
    return f" {'i' if qtype.signed else 'u'}{qtype.bits}({scale}, {qtype.zero_point})"


def _value(value: Any) -> str:
    if isinstance(value, Requant):
        return f"requant({len(value.mult)} mult, >>{value.shift}, {value.lo}..{value.hi})"
    if isinstance(value, np.ndarray):
        return f"array{list(value.shape)}"
    if isinstance(value, Graph):
        return f"graph {value.name} of {len(value.nodes)} nodes"
    return repr(value)
