"""Inputs of integers that a network only converts to real numbers, such as pixels."""

from __future__ import annotations

from nnef_hw.frontend.onnx.model import ELEMENT_TYPES, FLOAT32, ElementType, OnnxGraph
from nnef_hw.ir import Quantization

__all__ = ["is_converted", "whole_steps"]

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


def whole_steps(element: ElementType) -> Quantization | None:
    """Return the format whose codes are the integers of a type; None if it has over 16 bits."""
    if element.bits > _MOST_BITS:
        return None
    args = {"zero_point": 0, "scale": 1.0, "bits": element.bits, "signed": element.signed,
            "symmetric": False}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)


_MOST_BITS = 16
