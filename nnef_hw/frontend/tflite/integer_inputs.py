"""Inputs of integers that a network only converts to real numbers, such as pixels."""

from __future__ import annotations

from nnef_hw.frontend.tflite.model import FLOAT32, ElementType, TfliteSubgraph
from nnef_hw.ir import Quantization

__all__ = ["is_converted", "whole_steps"]

_MOST_BITS = 16
_MOVES = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE", "TRANSPOSE"})


def is_converted(graph: TfliteSubgraph, index: int) -> bool:
    """Whether everything that reads a tensor moves it, or casts it to real numbers."""
    pending, casts = [index], 0
    while pending:
        current = pending.pop()
        if current in graph.outputs:
            return False
        for operator in graph.operators:
            if current not in operator.inputs:
                continue
            if operator.op == "CAST":
                element = graph.tensors[operator.outputs[0]].type
                if element is None or element.dtype != FLOAT32.dtype:
                    return False
                casts += 1
            elif operator.op in _MOVES and operator.inputs[0] == current:
                pending += operator.outputs
            elif operator.op != "SHAPE":
                return False
    return casts > 0


def whole_steps(element: ElementType) -> Quantization | None:
    """Return the format whose codes are the integers of a type; None if it has over 16 bits."""
    if element.bits > _MOST_BITS:
        return None
    args = {"zero_point": 0, "scale": 1.0, "bits": element.bits, "signed": element.signed,
            "symmetric": False}  # fmt: skip
    return Quantization("zero_point_linear_quantize", args)
