"""What a user wants of a graph: other results than the file's, inputs that are constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nnef_hw.errors import UsageError
from nnef_hw.frontend.model_file import similar_names
from nnef_hw.frontend.onnx.model import Constant, OnnxModel, OnnxNode, as_data
from nnef_hw.frontend.onnx.order import read_names
from nnef_hw.frontend.onnx.symbols import Symbols

__all__ = ["bind_inputs", "cut_at"]


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
    for name in values:
        if name not in names:
            raise UsageError(
                f"{model.path}: there is no input {name!r} to bind",
                remedy=similar_names(name, names),
            )
    bound = dict(graph.initializers)
    for name, value in values.items():
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
    for name in outputs:
        if name not in names:
            raise UsageError(
                f"{model.path}: there is no value {name!r} to cut the graph at",
                remedy=similar_names(name, names),
            )
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
