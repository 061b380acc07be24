"""Inputs of integers that a network only converts to real numbers, such as pixels."""

from __future__ import annotations

from nnef_hw.frontend.tflite.model import FLOAT32, TfliteSubgraph

__all__ = ["is_converted"]

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
