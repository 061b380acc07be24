"""Inputs of integers that stand for something else: pixels that are real numbers, shapes."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np

from nnef_hw.frontend.tflite.file.model import FLOAT32, TfliteModel, TfliteSubgraph, TfliteTensor
from nnef_hw.frontend.tflite.lowering.calls import identifier
from nnef_hw.frontend.tflite.lowering.registry import definition_of

__all__ = ["bind_shapes", "is_converted", "is_rescaled"]

_log = logging.getLogger(__name__)

_MOVES = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE", "TRANSPOSE"})


def bind_shapes(model: TfliteModel) -> TfliteModel:
    """Return a model whose inputs that only say the shapes of results are these, as constants.

    Shapes of hardware are static, and the file says which ones its results have; a warning tells
    of the input, which the graph does not have.
    """
    graph = model.subgraphs[0]
    tensors = list(graph.tensors)
    for index in graph.inputs:
        results = _shaped_by(graph, index)
        shapes = {result.shape for result in results}
        if len(shapes) != 1 or any(result.open_axes for result in results):
            continue
        [shape] = shapes
        _log.warning(
            "%s: input %r is a constant, the shape %s that %r has in the file",
            model.path,
            identifier(tensors[index].name),
            list(shape),
            identifier(results[0].name),
        )
        tensors[index] = replace(tensors[index], data=np.array(shape, np.int64))
    inputs = tuple(index for index in graph.inputs if tensors[index].data is None)
    bound = replace(graph, tensors=tuple(tensors), inputs=inputs)
    return replace(model, subgraphs=(bound, *model.subgraphs[1:]))


def _shaped_by(graph: TfliteSubgraph, index: int) -> list[TfliteTensor]:
    """Return the results whose shapes a tensor says; none if anything else is done with it."""
    found: list[TfliteTensor] = []
    if index in graph.outputs or graph.tensors[index].is_quantized:
        return []
    for operator in graph.operators:
        if index not in operator.inputs:
            continue
        definition = definition_of(operator.op)
        places = [place for place, read in enumerate(operator.inputs) if read == index]
        if definition is None or places != [definition.shape_argument]:
            return []
        found.append(graph.tensors[operator.outputs[0]])
    return found


def is_rescaled(graph: TfliteSubgraph, index: int) -> bool:
    """Whether a tensor of wide integers has a scale, and is only given another format."""
    readers = [operator for operator in graph.operators if index in operator.inputs]
    is_read = bool(readers) and all(reader.op == "QUANTIZE" for reader in readers)
    return is_read and index not in graph.outputs and graph.tensors[index].steps is not None


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
