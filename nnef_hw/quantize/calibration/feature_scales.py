"""A scale and a zero point for each feature of an input, where one for all would cost accuracy.

Features of unlike ranges share one step in one format, and their weights, which are the larger the
smaller the features are, one step as well. A host can give each its own: it turns real numbers into
codes before hardware sees them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Graph, Quantization
from nnef_hw.ir.input_readers import InputReader, feature_axes, input_readers
from nnef_hw.quantize.calibration.observe import Histogram, Observation, steps_of
from nnef_hw.quantize.calibration.ranges import choose_bytes, choose_range
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.calibration.source_quantization import source_activation

__all__ = ["Scaled", "scale_features"]

FloatArray = NDArray[np.float64]

LEAST_GAIN = 4.0
"""The rounding noise of the first layers has to fall to a quarter, as by one bit more."""

ENOUGH = 1e4
"""Signal over noise, 40 dB, that is good enough as it is: about what 8 bits give."""

LEAST_SPREAD = 2.0
"""The range of all features has to be as many times that of the narrowest one."""

_DOUBLINGS = 8
"""Samples show few values of a feature: its range is that of 256 times as many. A value that
saturates costs more than a coarser step."""

_FEWEST = 16
"""Values of a feature that its range may be chosen from."""

_RANKS = 40
"""Greatest values of which the greatest of a random half may be one."""

_ALIKE = 1e-6
"""Of the mean of a feature: less is no range, but rounding of a constant."""


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """A network whose inputs have scales for each feature.

    Parameters
    ----------
    graph
        The network of numbers as these scales make them.
    samples
        Its samples.
    scales
        Scales by input; the samples of the other inputs are unchanged.
    """

    graph: Graph
    samples: Mapping[str, Array]
    scales: Mapping[str, FeatureScales]

    def taken(self, samples: Mapping[str, Array]) -> dict[str, Array]:
        """Return samples of the network as it was as some of this one."""
        return {name: self._taken(name, x) for name, x in samples.items()}

    def _taken(self, name: str, x: Array) -> Array:
        scales = self.scales.get(name)
        if scales is None:
            return x
        tensor = self.graph.tensor(name)
        qtype = source_activation(tensor)
        assert qtype is not None, name
        return scales.within(x, tensor.shape, qtype)


def scale_features(graph: Graph, samples: Mapping[str, Array], scheme: Scheme) -> Scaled:
    """Return a canonical network with scales for each feature of those inputs that gain by it.

    An input gains if, with one format for all features, rounding it and the weights of the layers
    that read it makes noise of less than 40 dB, and with scales for each at most a quarter of it.
    Features are what lies along one axis; all layers that read the input must tell them apart by
    their channels. Inputs and layers that the model's author quantized stay.
    """
    scales: dict[str, FeatureScales] = {}
    for name in graph.inputs:
        if not scheme.of(name).feature_scales or graph.tensor(name).quant is not None:
            continue
        readers = input_readers(graph, name)
        if not readers or name not in samples:
            continue
        found = _best(graph, name, readers, np.asarray(samples[name]), scheme)
        if found is not None:
            scales[name], qtype = found
            graph = _with_scales(graph, name, readers, scales[name], qtype)
    scaled = Scaled(graph, samples, scales)
    return replace(scaled, samples=scaled.taken(samples)) if scales else scaled


def _best(
    graph: Graph,
    name: str,
    readers: Sequence[InputReader],
    x: Array,
    scheme: Scheme,
) -> tuple[FeatureScales, QType] | None:
    """Return the scales of the axis that gains most, and the format of the codes in the network.

    None if one format for all features is good enough.
    """
    shape = graph.tensor(name).shape
    values = np.asarray(x, np.float64).reshape(-1, *shape[1:])
    if not np.isfinite(values).all():
        return None
    own, best, least = scheme.of(name), None, np.inf
    # What formats of one half make of the other shows what saturates.
    half, others = values[::2], values[1::2] if len(values) > 1 else values
    seen = _observation(half)
    lo, hi = choose_range(seen, own)
    wide = lo - _unseen(-half.reshape(-1)), hi + _unseen(half.reshape(-1))
    common = [choose_bytes(seen, own) or own.activation(lo, hi), own.activation(*wide)]
    alike = [qtype.dequantize(qtype.quantize(others)) for qtype in common]
    for axis, columns in feature_axes(shape, readers).items():
        layers = [_Layer.of(graph, *pair) for pair in zip(readers, columns, strict=True)]
        choice = _Choice(axis, layers, scheme, own, any(reader.is_padded for reader in readers))
        one = np.ones(shape[axis])
        before = min(choice.noise(values, others - found, one) for found in alike)
        if before * ENOUGH <= 1.0 or choice.features(half).shape[1] < _FEWEST:
            continue
        if not _are_unlike(choice.features(values)):
            continue
        found = choice.scales(half)
        apart = found.dequantize(found.quantize(others, shape, choice.qtype(half)), shape)
        after = choice.noise(values, others - apart, np.asarray(found.scale))
        if after * LEAST_GAIN <= before and after < least:
            best, least = (choice.scales(values), choice.qtype(values)), after
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A layer that reads features: its weights [O, C, taps], and the feature of each of them."""

    name: str
    weights: FloatArray
    feature: NDArray[np.int64]

    @classmethod
    def of(cls, graph: Graph, reader: InputReader, columns: NDArray[np.int64]) -> _Layer:
        """Return a reader's, given the feature of each channel of its filter."""
        weights = np.asarray(graph.constant(reader.node.inputs[1]), np.float64)
        feature = np.broadcast_to(columns, weights.shape)
        taps = (*weights.shape[:2], -1)
        return cls(reader.node.name, weights.reshape(taps), feature.reshape(taps))

    def sizes(self, count: int) -> FloatArray:
        """Return the largest weight of each feature."""
        found = np.zeros(count)
        np.maximum.at(found, self.feature.reshape(-1), np.abs(self.weights).reshape(-1))
        return found

    def noise(
        self, scheme: Scheme, variance: FloatArray, error: FloatArray, scale: FloatArray
    ) -> float:
        """Return the noise of the layer's results over their signal, for each feature's numbers.

        Errors of inputs and of weights count as independent. What they are in the mean becomes part
        of the bias.
        """
        own = scheme.of(self.name)
        largest = (1 << own.weight_bits - 1) - 1 or 1
        scales = scale[self.feature]
        axes = None if own.one_weight_scale else (1, 2)
        steps = np.abs(self.weights * scales).max(axis=axes, keepdims=True) / largest / scales
        power = np.square(self.weights)
        signal = (power * variance[self.feature]).sum()
        noise = power * error[self.feature] + np.square(steps) / 12 * variance[self.feature]
        return float(noise.sum() / signal) if signal > 0 else 0.0


def _are_unlike(features: FloatArray) -> bool:
    """Tell whether one format spends a bit or more on where a feature has no values.

    Otherwise what seems to be gained is chance: a value that one half of the samples lacks.

    Parameters
    ----------
    features
        Values [feature, n].
    """
    spans = np.ptp(features, axis=1)
    some = spans[spans > _ALIKE * np.abs(features).max()]
    return bool(len(some)) and float(np.ptp(features)) >= LEAST_SPREAD * float(some.min())


def _observation(values: FloatArray) -> Observation:
    lo, hi = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    histogram = Histogram()
    histogram.add(values, max(-lo, hi))
    return Observation(lo, hi, np.zeros(1), histogram, len(values), steps=steps_of(values))


def _unseen(values: FloatArray) -> float:
    """Return by how much the greatest value would grow with :data:`_DOUBLINGS` as many again.

    That is so often by as much as from a random half of them to all, as in an exponential tail;
    nothing, where the greatest value is a limit that is often reached.
    """
    greatest = np.sort(values)[::-1][:_RANKS]
    shares = 2.0 ** -np.arange(1, len(greatest) + 1)
    shares[-1] *= 2  # all of a half's chances together are 1
    return _DOUBLINGS * float(greatest[0] - shares @ greatest)


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """Scales of the features along an axis of an input.

    Parameters
    ----------
    layers
        What reads them.
    scheme, own
        Scheme of the network, and of the input.
    keeps_zero
        Whether one code has to stand for the 0 of all features, as beside padding.
    """

    axis: int
    layers: Sequence[_Layer]
    scheme: Scheme
    own: Scheme
    keeps_zero: bool

    def features(self, values: FloatArray) -> FloatArray:
        """Return the values of each feature."""
        return np.moveaxis(values, self.axis, 0).reshape(values.shape[self.axis], -1)

    def noise(self, values: FloatArray, error: FloatArray, scale: FloatArray) -> float:
        """Return the noise of the layers over their signal, the greatest of them."""
        variance, power = self.features(values).var(axis=1), self.features(error).var(axis=1)
        return max(layer.noise(self.scheme, variance, power, scale) for layer in self.layers)

    def qtype(self, values: FloatArray) -> QType:
        """Return the format of the codes in the network: its scale matters to no result."""
        bits = self.own.activation_bits
        return QType(bits, signed=self.keeps_zero and bool(values.min() < 0), scale=2.0**-bits)

    def scales(self, values: FloatArray) -> FeatureScales:
        """Choose a range for each feature.

        A feature that is constant on the samples gets a scale with which its weights are as large
        as those of the others are usually.
        """
        features, qtype = self.features(values), self.qtype(values)
        scale, middle = np.zeros(len(features)), np.zeros(len(features))
        for n, some in enumerate(features):
            center = 0.0 if self.keeps_zero else float(some.mean())
            lo, hi = choose_range(_observation(some - center), self.own)
            lo, hi = lo + center - _unseen(-some), hi + center + _unseen(some)
            middle[n] = center
            if np.ptp(some) <= abs(center) * _ALIKE:
                continue
            if self.keeps_zero:
                scale[n] = max(lo / (qtype.lo or -1), hi / qtype.hi)
            else:
                scale[n] = (hi - lo) / (qtype.hi - qtype.lo)
                middle[n] = (hi + lo) / 2
        sizes = np.max([layer.sizes(len(features)) for layer in self.layers], axis=0)
        varied = scale > 0
        usual = np.median((sizes * scale)[varied]) if varied.any() else 1.0
        scale[~varied] = (
            np.where(sizes > 0, usual, 1.0)[~varied] / np.where(sizes > 0, sizes, 1.0)[~varied]
        )
        if self.keeps_zero:
            scale[~varied] = np.maximum(scale, np.abs(features).max(axis=1) / qtype.hi)[~varied]
            zero_point = np.zeros(len(features))
        else:
            zero_point = np.round((qtype.hi + qtype.lo) / 2 - middle / scale)
        return FeatureScales(self.axis, tuple(scale.tolist()), tuple(map(int, zero_point.tolist())))


def _with_scales(
    graph: Graph,
    name: str,
    readers: Sequence[InputReader],
    scales: FeatureScales,
    qtype: QType,
) -> Graph:
    """Return the network of an input's numbers as these scales make them.

    Layers that read it take back scales and zero points, by their weights and biases.
    """
    assert not isinstance(qtype.scale, tuple)
    tensors, nodes = dict(graph.tensors), {}
    shape = graph.tensor(name).shape
    factor, offset = (
        np.broadcast_to(x, shape)
        for x in (scales.arrays(shape)[0] / qtype.scale, np.prod(scales.arrays(shape), axis=0))
    )
    for reader in readers:
        node = reader.node
        weights, bias = (tensors[name] for name in node.inputs[1:])
        scale_read, offset_read = reader.read(factor), reader.read(offset)
        assert scale_read is not None
        assert offset_read is not None
        kernel = np.asarray(weights.data, np.float64)
        taken = (kernel * offset_read).reshape(len(kernel), -1).sum(axis=1)
        changed = (kernel * scale_read, np.asarray(bias.data, np.float64) - taken.reshape(1, -1))
        inputs = [node.inputs[0]]
        for tensor, data in zip((weights, bias), changed, strict=True):
            only = len(graph.consumers(tensor.name)) == 1
            new = tensor.name if only else f"{node.name}_{tensor.name}"
            label = tensor.label if only or tensor.label is None else f"{tensor.label}_{node.name}"
            tensors[new] = replace(tensor, name=new, data=data, shape=data.shape, label=label)
            inputs.append(new)
        nodes[node.name] = replace(node, inputs=tuple(inputs))
    args = {
        "zero_point": qtype.zero_point, "scale": qtype.scale, "bits": qtype.bits,
        "signed": qtype.signed, "symmetric": False,
    }  # fmt: skip
    quant = Quantization("zero_point_linear_quantize", args)
    tensors[name] = replace(tensors[name], quant=quant)
    return graph.replaced(
        nodes=tuple(nodes.get(node.name, node) for node in graph.nodes), tensors=tensors
    )
