"""Post-training quantization: choose formats and integers for a real-valued network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.verify import ARITHMETIC_OPS, ONE_FORMAT_OPS
from nnef_hw.numerics import SOFTMAX_QTYPE, QType
from nnef_hw.quantize.given import given_activation, given_bias, given_weights
from nnef_hw.quantize.importer import FixedParams, LayerParams, argmax_qtype, build_fixed
from nnef_hw.quantize.observe import Range, observe
from nnef_hw.quantize.one_format import KEEPS_QTYPE, computing_node, format_owners
from nnef_hw.quantize.scheme import Scheme
from nnef_hw.reference import unary_function
from nnef_hw.reference.windows import convolve, pad_border

__all__ = ["choose_params", "quantize"]

DEFAULT_SCHEME = Scheme()
LAYERS = {"conv", "linear"}
_SCALED_OPS = ARITHMETIC_OPS - ONE_FORMAT_OPS

_LARGEST_FACTOR = 256.0
"""Output steps per accumulator step: coarser accumulators mean a range that is not real."""


def quantize(
    graph: Graph, samples: Mapping[str, NDArray[Any]] | None, scheme: Scheme = DEFAULT_SCHEME
) -> Graph:
    """Turn a canonical graph into a fixed one.

    Formats and codes that the model's author chose are kept.

    Parameters
    ----------
    graph
        Of the canonical stage.
    samples
        Real calibration inputs, one array [N, ...] per graph input; None if the graph is
        quantized already.
    scheme
        Widths of what is not quantized already.

    Raises
    ------
    UnsupportedError
        If a table operator's input would have over 8 bits, or a given format does not exist in
        hardware.
    SampleError
        If the samples do not fit the graph, or are needed and missing.
    """
    return build_fixed(graph, choose_params(graph, samples, scheme))


def choose_params(
    graph: Graph, samples: Mapping[str, NDArray[Any]] | None, scheme: Scheme = DEFAULT_SCHEME
) -> FixedParams:
    """Return the formats and integers that :func:`quantize` gives to a canonical graph."""
    if samples is None:
        return _Chooser(graph, scheme, {}).choose()
    return _Chooser(
        graph, scheme, observe(graph, samples, scheme.activation_bits, scheme.clipping)
    ).choose()


class _Chooser:
    def __init__(self, graph: Graph, scheme: Scheme, ranges: Mapping[str, Range]) -> None:
        self._graph = graph
        self._scheme = scheme
        self._ranges = ranges
        self._formats: dict[str, QType] = {}
        self._layers: dict[str, LayerParams] = {}
        self._owners = format_owners(graph) if ranges else {}

    def choose(self) -> FixedParams:
        graph, formats = self._graph, self._formats
        if not self._ranges:
            self._check_complete()
        for name in graph.inputs:
            formats[name] = given_activation(graph.tensor(name)) or self._observed(name)
        for node in graph.nodes:
            formats[node.name] = self._format(node)
        return FixedParams(formats, self._layers, self._scheme.mult_bits)

    def _format(self, node: Node) -> QType:
        """Return the format of a result; choose those of constants and the integers of a layer."""
        formats = self._formats
        if node.op in KEEPS_QTYPE:
            return formats[node.inputs[0]]
        if node.op == "softmax":
            return SOFTMAX_QTYPE
        if node.op == "argmax_reduce":
            return argmax_qtype(self._graph.tensor(node.inputs[0]).shape[1])
        step = self._accumulator_step(node)
        given = given_activation(self._graph.tensor(node.name))
        if given is not None:
            return given
        if node.op in ONE_FORMAT_OPS:
            return self._joint(self._owners.get(node.name, node.name))
        if node.name in self._owners:
            joint = self._joint(self._owners[node.name])
            if step <= _LARGEST_FACTOR * _scale(joint):
                return joint
        return self._computed(node, step)

    def _accumulator_step(self, node: Node) -> float:
        """Return what one more in a node's accumulator means, 0 if it has none."""
        formats = self._formats
        if node.op in LAYERS:
            source = formats[node.inputs[0]]
            layer = self._layers[node.name] = self._layer(node, source)
            return float(np.max(layer.weight_qtype.scale)) * _scale(source)
        if node.op == "avg_pool":
            return _scale(formats[node.inputs[0]])
        if node.op not in _SCALED_OPS:
            return 0.0
        for name in node.inputs:
            tensor = self._graph.tensor(name)
            if tensor.data is not None:
                formats[name] = given_activation(tensor) or self._scheme.activation(
                    *self._span(name)
                )
        first, second = (_scale(formats[name]) for name in node.inputs)
        return first * second if node.op == "mul" else max(first, second)

    def _joint(self, owner: str) -> QType:
        """Return the format of a ``max``, ``min`` or ``concat``: the union of its operands'."""
        given = given_activation(self._graph.tensor(owner))
        if given is not None:
            return given
        results = {owner, *(name for name, other in self._owners.items() if other == owner)}
        operands = {
            name
            for node in self._graph.nodes
            if node.op in ONE_FORMAT_OPS and node.name in results
            for name in node.inputs
        }
        known = {self._formats.get(name) for name in operands}
        if len(known) == 1 and (common := known.pop()) is not None:
            return common
        spans = [self._span(name) for name in operands]
        return self._scheme.activation(min(lo for lo, _ in spans), max(hi for _, hi in spans))

    def _check_complete(self) -> None:
        """Refuse to do without samples what needs them."""
        graph = self._graph
        needing = [*graph.inputs, *(node.name for node in graph.nodes if node.op in LAYERS)]
        missing = [name for name in needing if graph.tensor(name).quant is None]
        if not missing:
            return
        what = "is not quantized"
        if any(tensor.quant is not None for tensor in graph.tensors.values()):
            rest = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            what = f"does not say how to quantize {', '.join(missing[:3])}{rest}"
        raise SampleError(
            f"model {graph.name!r} {what} and no samples were given",
            remedy="give representative inputs with --calibrate samples.npz",
        )

    def _observed(self, name: str, accumulator_step: float = 0.0) -> QType:
        return self._scheme.activation(*self._span(name), accumulator_step / _LARGEST_FACTOR)

    def _span(self, name: str) -> tuple[float, float]:
        """Return the range that a format must cover: grown, where samples show too little."""
        tensor = self._graph.tensor(name)
        if tensor.data is not None:
            return float(tensor.data.min()), float(tensor.data.max())
        if not self._ranges and name in self._formats:
            return _limits(self._formats[name])
        if name not in self._ranges:
            raise SampleError(
                f"the format of {name!r} must be chosen and no samples were given",
                remedy="give representative inputs with --calibrate samples.npz",
            )
        node, found = computing_node(self._graph, name), self._ranges[name]
        has_headroom = node is not None and node.op in LAYERS | _SCALED_OPS
        grown = 1.0 + self._scheme.headroom * has_headroom
        return found.lo * grown, found.hi * grown

    def _computed(self, node: Node, accumulator_step: float) -> QType:
        """Return the format of a result that its author did not quantize."""
        if node.op in LAYERS or self._ranges:
            return self._observed(node.name, accumulator_step)
        if node.op == "avg_pool":
            return self._formats[node.inputs[0]]
        if node.op in _SCALED_OPS:
            return self._scheme.activation(*self._sums(node))
        return self._scheme.activation(*self._image(node))

    def _sums(self, node: Node) -> tuple[float, float]:
        """Return the range of all sums or products that two formats have."""
        first, second = (_limits(self._formats[name]) for name in node.inputs)
        combine = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[node.op]
        corners = combine.outer(first, second)
        return float(corners.min()), float(corners.max())

    def _image(self, node: Node) -> tuple[float, float]:
        """Return the range of all values that a function has on the codes of its input."""
        source = self._formats[node.inputs[0]]
        with np.errstate(all="ignore"):
            values = unary_function(node)(source.dequantize(np.arange(source.lo, source.hi + 1)))
        finite = values[np.isfinite(values)]
        return float(finite.min(initial=0.0)), float(finite.max(initial=0.0))

    def _layer(self, node: Node, source: QType) -> LayerParams:
        """Return a layer's integers; the bias takes back the mean error of a rounded filter."""
        filter_tensor, bias_tensor = (self._graph.tensor(name) for name in node.inputs[1:])
        weights, bias = (self._graph.constant(name) for name in node.inputs[1:])
        given = given_weights(filter_tensor)
        codes, qtype = given or self._scheme.weights(weights, bias, _scale(source))
        scale = np.broadcast_to(_scale(source) * np.asarray(qtype.scale), len(weights))
        if given is not None:
            stored = given_bias(bias_tensor, scale)
            if stored is not None:
                return LayerParams(codes, stored, qtype)
        elif self._ranges:
            error = weights.astype(np.float64) - qtype.dequantize(codes)
            bias = bias + self._mean_error(node, error)
        bias_qtype = QType(bits=32, signed=True, scale=tuple(scale.tolist()))
        return LayerParams(codes, bias_qtype.quantize(bias, axis=1), qtype)

    def _mean_error(self, node: Node, error: NDArray[np.float64]) -> NDArray[np.float64]:
        mean = self._ranges[node.inputs[0]].mean
        if node.op != "conv":
            return mean @ error.T
        padded = pad_border(mean, node.attrs["padding"])
        window = node.attrs["stride"], node.attrs["dilation"], node.attrs["groups"]
        return np.asarray(convolve(padded, error, *window).mean(axis=(2, 3)), np.float64)


def _limits(qtype: QType) -> tuple[float, float]:
    lo, hi = qtype.dequantize([qtype.lo, qtype.hi]).tolist()
    return lo, hi


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale
