"""A graph as a user wants it: other inputs and results than the file's, constant inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UsageError
from nnef_hw.frontend.building.model_file import similar_names
from nnef_hw.frontend.tflite.file.model import (
    TfliteModel,
    TfliteOperator,
    TfliteSubgraph,
    TfliteTensor,
)
from nnef_hw.frontend.tflite.lowering.graph_names import graph_names

__all__ = ["begin_at", "bind_inputs", "cut_at"]


def bind_inputs(model: TfliteModel, values: Mapping[str, float]) -> TfliteModel:
    """Return a model some of whose inputs are constants, filled with one number each.

    Codes of a quantized input are those nearest to its number.

    Raises
    ------
    UsageError
        If there is no such input, or it has no such number.
    """
    graph = model.subgraphs[0]
    tensors = list(graph.tensors)
    for name, value in values.items():
        index = _find(model, name, graph.inputs, "input", "to bind")
        tensors[index] = replace(tensors[index], data=_filled(model, tensors[index], value))
    inputs = tuple(index for index in graph.inputs if tensors[index].data is None)
    return _with_graph(model, replace(graph, tensors=tuple(tensors), inputs=inputs))


def _filled(model: TfliteModel, tensor: TfliteTensor, value: float) -> NDArray[np.generic]:
    element, code = tensor.type, value
    if tensor.is_quantized and tensor.scale is not None and tensor.zero_point is not None:
        code = float(np.floor(value / tensor.scale[0] + 0.5)) + int(tensor.zero_point[0])
    if element is not None and element.dtype in {"scalar", "logical", "integer"}:
        lo, hi = element.limits if element.dtype == "integer" else (-np.inf, np.inf)
        if element.dtype == "scalar" or (code == int(code) and lo <= code <= hi):
            kind = np.float64 if element.dtype == "scalar" else np.int64
            return np.full(tensor.shape, code, kind)
    raise UsageError(
        f"{model.path}: the input {tensor.name!r} is {tensor.kind}, which has no {value:g}",
        remedy="give a number that it can have",
    )


def begin_at(model: TfliteModel, inputs: Sequence[str]) -> TfliteModel:
    """Return a model that begins at some of its tensors; what computes them alone is left out.

    Raises
    ------
    UsageError
        If there is no such tensor, or the results need it no more.
    """
    graph = model.subgraphs[0]
    computed = [index for operator in graph.operators for index in operator.outputs]
    places = [*computed, *graph.inputs]
    found = dict.fromkeys(
        _find(model, name, places, "value", "to begin the graph at") for name in inputs
    )
    names, tensors = dict(graph_names(graph)), list(graph.tensors)
    operators = []
    for operator in graph.operators:
        outputs = list(operator.outputs)
        for place, index in enumerate(outputs):
            if index in found:
                # nobody reads what it computed there
                outputs[place] = len(tensors)
                names[len(tensors)] = f"{names[index]}_before"
                tensors.append(replace(tensors[index], index=len(tensors)))
        operators.append(replace(operator, outputs=tuple(outputs)))
    begun = replace(
        graph,
        inputs=(*(index for index in graph.inputs if index not in found), *found),
        operators=tuple(operators),
        tensors=tuple(tensors),
        names=names,
    )
    cut = _reaching(begun, graph.outputs)
    for index in found:
        if index not in cut.inputs:
            raise UsageError(
                f"{model.path}: no result needs {tensors[index].name!r}, where the graph should "
                "begin",
                remedy="leave it out, or end the graph at what is computed of it (--outputs)",
            )
    return _with_graph(model, cut)


def cut_at(model: TfliteModel, outputs: Sequence[str]) -> TfliteModel:
    """Return a model whose results are some of its tensors; what they do not need is left out.

    Operators that keep a value for the next inference stay.

    Raises
    ------
    UsageError
        If there is no such tensor.
    """
    graph = model.subgraphs[0]
    computed = [index for operator in graph.operators for index in operator.outputs]
    places = [*computed, *graph.inputs]
    found = [_find(model, name, places, "value", "to cut the graph at") for name in outputs]
    return _with_graph(model, _reaching(graph, found))


def _reaching(graph: TfliteSubgraph, results: Sequence[int]) -> TfliteSubgraph:
    """Return the part of a graph that computes some tensors, with operators that keep values."""
    needed, operators = set(results), list[TfliteOperator]()
    for operator in reversed(graph.operators):
        if not operator.outputs or not needed.isdisjoint(operator.outputs):
            needed.update(operator.inputs)
            operators.append(operator)
    return replace(
        graph,
        inputs=tuple(index for index in graph.inputs if index in needed),
        outputs=tuple(dict.fromkeys(results)),
        operators=tuple(reversed(operators)),
        names=graph_names(graph),
    )


def _with_graph(model: TfliteModel, graph: TfliteSubgraph) -> TfliteModel:
    return replace(model, subgraphs=(graph, *model.subgraphs[1:]))


def _find(model: TfliteModel, name: str, places: Iterable[int], what: str, purpose: str) -> int:
    """Return the index of a tensor, by its whole name or as the graph names it.

    Several tensors of a file may have one name; in a graph each has its own.
    """
    graph = model.subgraphs[0]
    names = {index: known for index, known in graph_names(graph).items() if index in {*places}}
    found = [index for index in names if graph.tensors[index].name == name]
    if len(found) > 1 and name not in names.values():
        raise UsageError(
            f"{model.path}: {len(found)} values are named {name!r}",
            remedy=f"give one as the graph has them: {', '.join(names[n] for n in found)}",
        )
    found = [index for index, known in names.items() if known == name] or found
    if not found:
        raise UsageError(
            f"{model.path}: there is no {what} {name!r} {purpose}",
            remedy=similar_names(name, names.values()),
        )
    return found[0]
