"""Wishes of a user for a graph: other inputs and results than the file's, constant inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nnef_hw.errors import UsageError
from nnef_hw.frontend.building.builder import identifier
from nnef_hw.frontend.building.model_file import similar_names
from nnef_hw.frontend.onnx.file.model import (
    Constant,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    as_data,
)
from nnef_hw.frontend.onnx.file.order import read_names
from nnef_hw.frontend.onnx.file.symbols import Symbols

__all__ = ["begin_at", "bind_inputs", "cut_at"]


def bind_inputs(model: OnnxModel, values: Mapping[str, float], symbols: Symbols) -> OnnxModel:
    """Return a model some of whose inputs are constants, filled with one number each.

    Raises
    ------
    UsageError
        If there is no such input, or its element type has no such number.
    ModelError, UnsupportedError
        If an input's shape is not possible or not known.
    """
    graph = model.graph
    names = [item.name for item in graph.inputs if item.name not in graph.initializers]
    bound = dict(graph.initializers)
    for wanted, value in values.items():
        name = _find(model, wanted, names, "input", "to bind")
        element, shape = symbols.resolve(name)
        whole = element.dtype == "scalar" or value == int(value)
        lo, hi = (0, 1) if element.dtype == "logical" else element.limits
        if not whole or (element.dtype != "scalar" and not lo <= value <= hi):
            raise UsageError(
                f"{model.path}: the input {name!r} is {element.name}, which has no {value:g}",
                remedy="give a number that it can have",
            )
        bound[name] = Constant(as_data(np.full(shape, value), element), element)
    return replace(model, graph=replace(graph, initializers=bound))


def begin_at(model: OnnxModel, inputs: Sequence[str]) -> OnnxModel:
    """Return a model that begins at some of its values; what computes them alone is left out.

    Raises
    ------
    UsageError
        If there is no such value, the file does not say its shape, or the results need it no more.
    """
    graph = model.graph
    computed = dict.fromkeys(name for node in graph.nodes for name in node.outputs if name)
    given = [item.name for item in graph.inputs if item.name not in graph.initializers]
    names = [*computed, *given]
    found = [_find(model, name, names, "value", "to begin the graph at") for name in inputs]
    known = {item.name: item for item in graph.values}
    begun = dict.fromkeys(name for name in found if name in computed)
    for name in begun:
        if name not in known or known[name].shape is None or known[name].type is None:
            raise UsageError(
                f"{model.path}: the file does not say the shape of {name!r}, where the graph "
                "should begin",
                remedy="write shapes into it with onnx.shape_inference.infer_shapes",
            )
    nodes = tuple(
        replace(node, outputs=tuple("" if name in begun else name for name in node.outputs))
        for node in graph.nodes
    )
    wanted = (*graph.inputs, *(known[name] for name in begun))
    cut = _reaching(model, replace(graph, nodes=nodes, inputs=wanted), graph.outputs)
    missing = begun.keys() - {item.name for item in cut.graph.inputs}
    if missing:
        raise UsageError(
            f"{model.path}: no result needs {min(missing)!r}, where the graph should begin",
            remedy="leave it out, or end the graph at what is computed of it (--outputs)",
        )
    return cut


def cut_at(model: OnnxModel, outputs: Sequence[str]) -> OnnxModel:
    """Return a model whose results are some of its values; what they do not need is left out.

    Raises
    ------
    UsageError
        If there is no such value.
    """
    graph = model.graph
    inputs = [item.name for item in graph.inputs if item.name not in graph.initializers]
    names = dict.fromkeys([
        *(name for node in graph.nodes for name in node.outputs if name),
        *inputs,
    ])
    outputs = [_find(model, name, names, "value", "to cut the graph at") for name in outputs]
    return _reaching(model, graph, outputs)


def _reaching(model: OnnxModel, graph: OnnxGraph, outputs: Sequence[str]) -> OnnxModel:
    """Return the part of a graph that computes some values."""
    needed, nodes = set(outputs), list[OnnxNode]()
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            needed.update(read_names(node))
            nodes.append(node)
    return replace(
        model,
        graph=replace(
            graph,
            inputs=tuple(item for item in graph.inputs if item.name in needed),
            outputs=tuple(dict.fromkeys(outputs)),
            initializers={k: v for k, v in graph.initializers.items() if k in needed},
            nodes=tuple(reversed(nodes)),
        ),
    )


def _find(model: OnnxModel, name: str, names: Iterable[str], what: str, purpose: str) -> str:
    """Return a name in the file that is this one, or that a graph has so."""
    known = list(names)
    alike = [name] if name in known else [other for other in known if identifier(other) == name]
    if len(alike) == 1:
        return alike[0]
    raise UsageError(
        f"{model.path}: there is no {what} {name!r} {purpose}",
        remedy=similar_names(name, alike or known),
    )
