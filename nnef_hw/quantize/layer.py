"""Integers of one ``conv`` or ``linear``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.ir.operators import WeightsAttributes
from nnef_hw.quantize.calibration.adaptive import fit_weights, round_adaptively
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.calibration.simulate import Moments, Simulation
from nnef_hw.quantize.calibration.source_quantization import (
    source_activation,
    source_bias,
    source_weights,
)
from nnef_hw.quantize.params import LayerParams
from nnef_hw.quantize.weights import choose_scales, fit_multipliers
from nnef_hw.reference.visible import EVERYTHING, Interval

__all__ = ["LayerQuantizer"]

FloatArray = NDArray[np.float64]

_FAR = 32.0
"""How much further than needed a bias reaches: fitted weights may be larger than given ones.

With 8 bits of weights and activations, 24 bits of a bias reach that far without coarser weights.
"""


class LayerQuantizer:
    """Chooses a layer's scales, then, once the format of its result is known, its codes.

    Codes that the model's author stored are kept.

    Parameters
    ----------
    source
        Format of the layer's input.
    simulation
        Values of the layer's input, as far as computed; None without samples.
    shown
        Sums beyond which readers of the result tell nothing apart: a bias needs to reach no
        further.
    covered
        Range that the result's format covers; 0 alone if it is not known.

    Attributes
    ----------
    step : float
        Real value of one accumulator step of the coarsest channel.
    """

    def __init__(
        self,
        graph: Graph,
        node: Node,
        scheme: Scheme,
        source: QType,
        simulation: Simulation | None,
        shown: Interval = EVERYTHING,
        covered: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        assert isinstance(source.scale, float), "activations have one scale"
        self._filter, self._bias = (graph.tensor(name) for name in node.inputs[1:])
        self._scheme = scheme
        self._source_scale = source.scale
        self._weights, self._bias_values = (
            np.asarray(graph.constant(name), np.float64) for name in node.inputs[1:]
        )
        self._groups = node.attributes(WeightsAttributes).groups
        self._source_codes = source_weights(self._filter)
        if self._source_codes is None and _is_of_integers(source, graph.tensor(node.name)):
            self._source_codes = _unit_codes(self._weights)
        if self._source_codes is None:
            self._weights, self._bias_values = _of_leaps(
                self._weights, self._bias_values, source, shown, covered
            )
            self._bias_values = _reaching(self._bias_values, self._weights, source, shown)
        self._moments: Moments | None = None
        if self._source_codes is None and simulation is not None:
            self._moments = simulation.moments(node, centered=scheme.correct_bias)
        self._wanted = self._fitted()
        self._scales_of_width: dict[int, FloatArray] = {}
        scales = (
            np.asarray(self._source_codes[1].scale) if self._source_codes else self._scales(scheme)
        )
        self.step = float(scales.max()) * source.scale

    @property
    def has_source_codes(self) -> bool:
        """Whether the model's author chose the codes."""
        return self._source_codes is not None

    def finish(self, target: QType, weight_bits: int | None = None) -> LayerParams:
        """Return the integers of a layer whose result has this format.

        ``weight_bits`` replaces the scheme's width; codes that the author chose keep theirs.
        """
        if self._source_codes is None:
            bits = self._scheme.weight_bits if weight_bits is None else weight_bits
            codes, qtype = self._codes(target, replace(self._scheme, weight_bits=bits))
        else:
            codes, qtype = self._source_codes
        scales = np.broadcast_to(self._source_scale * np.asarray(qtype.scale), len(codes))
        stored = source_bias(self._bias, scales) if self._source_codes is not None else None
        if stored is not None:
            return LayerParams(codes, stored, qtype)
        bias = self._bias_values
        if self._moments is not None and self._scheme.correct_bias:
            bias = bias + self._mean_error(self._moments, qtype.dequantize(codes))
        bias_qtype = QType(bits=32, signed=True, scale=tuple(scales.tolist()))
        found = bias_qtype.quantize(bias, axis=1)
        rest = None
        if self._source_codes is not None and self._source_scale == target.scale == 1:
            # integers of the author's, of which a step of the result has parts
            rest = bias / scales - found
        return LayerParams(codes, found, qtype, rest)

    def _codes(self, target: QType, scheme: Scheme) -> tuple[NDArray[np.int64], QType]:
        assert isinstance(target.scale, float), "activations have one scale"
        ratio = self._source_scale / target.scale
        scales = fit_multipliers(self._scales(scheme), ratio, scheme.mult_bits)
        steps = scales.tolist()
        qtype = scheme.weight_format(steps[0] if scheme.one_weight_scale else tuple(steps))
        if self._moments is None or scheme.weight_rounding == "nearest":
            return qtype.quantize(self._wanted), qtype
        rows = self._in_groups(self._wanted)
        scales = scales.reshape(*rows.shape[:2], 1)
        codes = round_adaptively(rows, scales, scheme.weight_format(1.0), self._moments)
        return codes.reshape(self._weights.shape), qtype

    def _scales(self, scheme: Scheme) -> FloatArray:
        """Return the scales of a scheme that differs from this layer's in the width at most."""
        found = self._scales_of_width
        if scheme.weight_bits not in found:
            found[scheme.weight_bits] = self._choose_scales(scheme)
        return found[scheme.weight_bits]

    def _choose_scales(self, scheme: Scheme) -> FloatArray:
        importance = self._importance()
        return choose_scales(
            self._wanted, self._bias_values, scheme, self._source_scale, importance
        )

    def _fitted(self) -> FloatArray:
        if self._moments is None or self._scheme.weight_rounding == "nearest":
            return self._weights
        fitted = fit_weights(self._in_groups(self._weights), self._moments)
        return fitted.reshape(self._weights.shape)

    def _importance(self) -> FloatArray | None:
        """Return the mean square of the input that each weight is multiplied with."""
        if self._moments is None:
            return None
        parts = (np.diagonal(part.square, axis1=1, axis2=2) for part in self._moments.parts)
        squares = np.concatenate(list(parts), axis=1)[:, None]
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


def _is_of_integers(source: QType, result: Tensor) -> bool:
    """Whether a layer has integers in steps of 1 before and, by its author, behind it."""
    given = source_activation(result, is_result=True)
    formats = (source, given)
    return all(x is not None and x.scale == 1 and x.zero_point == 0 for x in formats)


def _unit_codes(weights: FloatArray) -> tuple[NDArray[np.int64], QType] | None:
    """Return -1, 0 and 1 as codes of weights, if those of a channel differ in nothing else.

    So a factor of a channel, or an average, is left to the multiplier of the sum.
    """
    rows = np.abs(weights.reshape(len(weights), -1))
    largest = rows.max(axis=1, initial=0.0)
    if not ((rows == 0) | (rows == largest[:, None])).all():
        return None
    scales = np.where(largest > 0, largest, 1.0)
    qtype = QType(2, signed=True, scale=tuple(scales.tolist()), narrow=True)
    return np.sign(weights).astype(np.int64), qtype


def _reaching(bias: FloatArray, weights: FloatArray, source: QType, shown: Interval) -> FloatArray:
    """Return biases [1, outC], of which those far beyond all that is shown are nearer to it.

    They are beyond by many times what the layer can add: the results are the same.
    """
    lo, hi = source.dequantize([source.lo, source.hi]).tolist()
    ends = weights.reshape(len(weights), -1)[..., None] * np.array([lo, hi])
    down = _FAR * (shown.lo - ends.max(axis=2).sum(axis=1))
    up = _FAR * (shown.hi - ends.min(axis=2).sum(axis=1))
    return bias.clip(np.where(down < 0, down, -np.inf), np.where(up > 0, up, np.inf))


def _of_leaps(
    weights: FloatArray,
    bias: FloatArray,
    source: QType,
    shown: Interval,
    covered: tuple[float, float],
) -> tuple[FloatArray, FloatArray]:
    """Return smaller weights and a bias [1, outC], where from code to code results leap over all.

    ``-1e9 x`` of an x that is 0 or 1 shows 0 or what is below all that is shown; a weight whose
    step is twice the range of the result does, too. A power of two has a code in every scheme.
    """
    leap = 2.0 * (covered[1] - covered[0])
    if shown == EVERYTHING or weights[0].size > 1 or not leap:
        return weights, bias
    factors, offsets = weights.reshape(-1, 1).copy(), bias.reshape(-1, 1).copy()
    inputs = source.dequantize(np.arange(source.lo, source.hi + 1))
    step = inputs[1] - inputs[0]
    enough = np.exp2(np.ceil(np.log2(leap / step)))
    far = np.abs(factors[:, 0]) > enough
    results = factors * inputs + offsets
    beyond = np.abs(results - results.clip(*covered))
    nearest = beyond.argmin(axis=1)[:, None]
    fixed = np.take_along_axis(results, nearest, axis=1).clip(covered[0] - leap, covered[1] + leap)
    smaller = np.sign(factors) * enough
    moved = fixed - smaller * inputs[nearest]
    factors[far], offsets[far] = smaller[far], moved[far]
    return factors.reshape(weights.shape), offsets.reshape(bias.shape)
