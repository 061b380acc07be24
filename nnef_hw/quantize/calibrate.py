"""Post-training quantization: choose formats and integers for a real-valued network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
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
from nnef_hw.reference.windows import convolve, pad_border

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
        mean = ranges[node.inputs[0]].mean
        if node.op in KEEPS_QTYPE:
            formats[node.name] = source
        elif node.op == "softmax":
            formats[node.name] = SOFTMAX_QTYPE
        elif node.op == "argmax_reduce":
            formats[node.name] = argmax_qtype(graph.tensor(node.inputs[0]).shape[1])
        elif node.op in {"conv", "linear"}:
            layers[node.name] = _quantize_layer(graph, node, source, mean, scheme)
            steps = np.max(layers[node.name].weight_qtype.scale) * _scale(source)
            formats[node.name] = _format(_widened(found, scheme), scheme, float(steps))
        elif node.op == "avg_pool":
            formats[node.name] = _format(found, scheme, _scale(source))
        else:
            formats[node.name] = _format(found, scheme)
    return FixedParams(formats, layers, scheme.mult_bits)


def _widened(found: Range, scheme: Scheme) -> Range:
    grown = 1.0 + scheme.headroom
    return replace(found, lo=found.lo * grown, hi=found.hi * grown)


def _format(found: Range, scheme: Scheme, accumulator_step: float = 0.0) -> QType:
    return scheme.activation(found.lo, found.hi, accumulator_step / _LARGEST_FACTOR)


def _quantize_layer(
    graph: Graph, node: Node, source: QType, mean: NDArray[np.float64], scheme: Scheme
) -> LayerParams:
    """Quantize filter and bias; the bias takes back the mean error of the filter's rounding."""
    weights, bias = (graph.constant(name) for name in node.inputs[1:])
    codes, qtype = scheme.weights(weights, bias, _scale(source))
    error = weights.astype(np.float64) - qtype.dequantize(codes)
    if node.op == "conv":
        padded = pad_border(mean, node.attrs["padding"])
        window = node.attrs["stride"], node.attrs["dilation"], node.attrs["groups"]
        correction = convolve(padded, error, *window).mean(axis=(2, 3))
    else:
        correction = mean @ error.T
    bias_scale = tuple(_scale(source) * s for s in np.atleast_1d(qtype.scale).tolist())
    bias_qtype = QType(bits=32, signed=True, scale=bias_scale)
    return LayerParams(codes, bias_qtype.quantize(bias + correction, axis=1), qtype)


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
