"""Integers of one ``conv`` or ``linear``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.numerics import QType
from nnef_hw.quantize.adaptive import fit_weights, round_adaptively
from nnef_hw.quantize.given import given_bias, given_weights
from nnef_hw.quantize.importer import LayerParams
from nnef_hw.quantize.scheme import Scheme
from nnef_hw.quantize.simulate import Moments, Simulation
from nnef_hw.quantize.weights import choose_scales, fit_multipliers

__all__ = ["LayerQuantizer"]

FloatArray = NDArray[np.float64]


class LayerQuantizer:
    """Chooses a layer's scales, then, once the format of its result is known, its codes.

    Codes that the model's author stored are kept.

    Parameters
    ----------
    source
        Format of what the layer reads.
    simulation
        Values of what it reads, as far as computed; None without samples.

    Attributes
    ----------
    step : float
        What one more in the accumulator of the coarsest channel means.
    """

    def __init__(
        self,
        graph: Graph,
        node: Node,
        scheme: Scheme,
        source: QType,
        simulation: Simulation | None,
    ) -> None:
        self._filter, self._bias = (graph.tensor(name) for name in node.inputs[1:])
        self._scheme = scheme
        self._given = given_weights(self._filter)
        self._weights = np.asarray(graph.constant(node.inputs[1]), np.float64)
        self._groups = node.attrs.get("groups", 1)
        self._moments: Moments | None = None
        assert isinstance(source.scale, float), "activations have one scale"
        self._source_scale = source.scale
        if self._given is not None:
            self._scales = np.broadcast_to(self._given[1].scale, len(self._weights)).copy()
        else:
            if simulation is not None:
                self._moments = simulation.moments(node, centered=scheme.correct_bias)
            self._wanted = self._fitted()
            importance = self._importance()
            self._scales = choose_scales(
                self._wanted, graph.constant(node.inputs[2]), scheme, self._source_scale, importance
            )
        self.step = float(self._scales.max()) * self._source_scale

    def finish(self, target: QType) -> LayerParams:
        """Return the integers of a layer whose result has this format."""
        if self._given is not None:
            codes, qtype = self._given
        else:
            codes, qtype = self._codes(target)
        scales = np.broadcast_to(self._source_scale * np.asarray(qtype.scale), len(codes))
        stored = given_bias(self._bias, scales) if self._given is not None else None
        if stored is not None:
            return LayerParams(codes, stored, qtype)
        bias = np.asarray(self._bias.data, np.float64)
        if self._moments is not None and self._scheme.correct_bias:
            bias = bias + self._mean_error(self._moments, qtype.dequantize(codes))
        bias_qtype = QType(bits=32, signed=True, scale=tuple(scales.tolist()))
        return LayerParams(codes, bias_qtype.quantize(bias, axis=1), qtype)

    def _codes(self, target: QType) -> tuple[NDArray[np.int64], QType]:
        assert isinstance(target.scale, float), "activations have one scale"
        scheme, ratio = self._scheme, self._source_scale / target.scale
        scales = fit_multipliers(self._scales, ratio, scheme.mult_bits)
        one_scale = scheme.power_of_two or not scheme.per_channel
        qtype = scheme.weight_format(float(scales[0]) if one_scale else tuple(scales.tolist()))
        if self._moments is None or scheme.weight_rounding == "nearest":
            return qtype.quantize(self._wanted), qtype
        rows = self._in_groups(self._wanted)
        steps = scales.reshape(*rows.shape[:2], 1)
        codes = round_adaptively(rows, steps, scheme.weight_format(1.0), self._moments)
        return codes.reshape(self._weights.shape), qtype

    def _fitted(self) -> FloatArray:
        if self._moments is None or self._scheme.weight_rounding == "nearest":
            return self._weights
        fitted = fit_weights(self._in_groups(self._weights), self._moments)
        return fitted.reshape(self._weights.shape)

    def _importance(self) -> FloatArray | None:
        """Return the mean square of what each weight is multiplied with."""
        if self._moments is None:
            return None
        squares = np.diagonal(self._moments.square, axis1=1, axis2=2)[:, None]
        rows = np.broadcast_to(squares, self._in_groups(self._weights).shape)
        return rows.reshape(self._weights.shape)

    def _mean_error(self, moments: Moments, weights: FloatArray) -> FloatArray:
        """Return [1, outC]: how much the results of these weights are too small on average."""
        wanted = self._in_groups(self._weights) @ moments.real_mean[..., None]
        found = self._in_groups(weights) @ moments.mean[..., None]
        return (wanted - found).reshape(1, -1)

    def _in_groups(self, weights: FloatArray) -> FloatArray:
        """Return [groups, rows, K]."""
        return weights.reshape(self._groups, len(weights) // self._groups, -1)
