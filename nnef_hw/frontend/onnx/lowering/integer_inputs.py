"""Inputs of integers that a network only converts to real numbers, such as pixels."""

from __future__ import annotations

from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, FLOAT32, OnnxGraph

__all__ = ["is_converted"]

_MOVES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def is_converted(graph: OnnxGraph, name: str) -> bool:
    """Whether everything that reads a value moves it, or casts it to real numbers."""
    pending, casts = [name], 0
    while pending:
        current = pending.pop()
        if current in graph.outputs:
            return False
        for node in graph.nodes:
            if current not in node.inputs or node.domain:
                continue
            if node.op == "Cast":
                element = ELEMENT_TYPES.get(node.attrs.get("to", 0))
                if element is None or element.dtype != FLOAT32.dtype:
                    return False
                casts += 1
            elif node.op in _MOVES and node.inputs[0] == current:
                pending += node.outputs
            elif node.op != "Shape":
                return False
    return casts > 0
