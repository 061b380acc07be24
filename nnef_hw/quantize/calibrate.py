"""Post-training quantization: choose formats and integers for a real-valued network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.numerics import SOFTMAX_QTYPE, QType
from nnef_hw.quantize.importer import (
    KEEPS_QTYPE,
    FixedParams,
    LayerParams,
    argmax_qtype,
    build_fixed,
)
from nnef_hw.quantize.observe import Range, observe
from nnef_hw.quantize.scheme import Scheme

__all__ = ["choose_params", "quantize"]

DEFAULT_SCHEME = Scheme()

_LARGEST_FACTOR = 256.0
"""Output steps per accumulator step: coarser accumulators mean a range that is not real."""


def quantize(
    graph: Graph, samples: Mapping[str, NDArray[Any]], scheme: Scheme = DEFAULT_SCHEME
) -> Graph:
    """Turn a canonical graph into a fixed one.

    Parameters
    ----------
    graph
        Of the canonical stage.
    samples
        Real calibration inputs, one array [N, ...] per graph input.
    scheme
        Widths.

    Raises
    ------
    UnsupportedError
        If a table operator's input would have over 8 bits.
    SampleError
        If the samples do not fit the graph.
    """
    return build_fixed(graph, choose_params(graph, samples, scheme))


def choose_params(
    graph: Graph, samples: Mapping[str, NDArray[Any]], scheme: Scheme = DEFAULT_SCHEME
) -> FixedParams:
    """Return the formats and integers that :func:`quantize` gives to a canonical graph."""
    ranges = observe(graph, samples, scheme.activation_bits, scheme.clipping)
    formats = {name: _format(ranges[name], scheme) for name in graph.inputs}
    layers: dict[str, LayerParams] = {}
    for node in graph.nodes:
        source, found = formats[node.inputs[0]], ranges[node.name]
        if node.op in KEEPS_QTYPE:
            formats[node.name] = source
        elif node.op == "softmax":
            formats[node.name] = SOFTMAX_QTYPE
        elif node.op == "argmax_reduce":
            formats[node.name] = argmax_qtype(graph.tensor(node.inputs[0]).shape[1])
        elif node.op in {"conv", "linear"}:
            layers[node.name] = _quantize_layer(graph, node, source, scheme)
            steps = np.max(layers[node.name].weight_qtype.scale) * _scale(source)
            formats[node.name] = _format(found, scheme, float(steps) / _LARGEST_FACTOR)
        else:
            least = _scale(source) / _LARGEST_FACTOR if node.op == "avg_pool" else 0.0
            formats[node.name] = _format(found, scheme, least)
    return FixedParams(formats, layers, scheme.mult_bits)


def _format(found: Range, scheme: Scheme, least_scale: float = 0.0) -> QType:
    return scheme.activation(found.lo, found.hi, least_scale)


def _quantize_layer(graph: Graph, node: Node, source: QType, scheme: Scheme) -> LayerParams:
    weights, bias = (graph.constant(name) for name in node.inputs[1:])
    codes, qtype = scheme.weights(weights, bias, _scale(source))
    bias_scale = tuple(_scale(source) * s for s in np.atleast_1d(qtype.scale).tolist())
    bias_qtype = QType(bits=32, signed=True, scale=bias_scale)
    return LayerParams(codes, bias_qtype.quantize(bias, axis=1), qtype)


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
