"""Schemes of quantization: widths, and how real ranges become formats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

import numpy as np

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.errors import Location

__all__ = ["CALIBRATIONS", "LAYER_KEYS", "Scheme"]

CALIBRATIONS = ("minmax", "percentile", "mse", "entropy")

_CHOICES = {
    "calibration": CALIBRATIONS,
    "weight_rounding": ("adaptive", "nearest"),
    "rounding": ("author", "half_up", "tflite"),
}
_LIMITS: dict[str, tuple[float, float]] = {
    "weight_bits": (1, 8),
    "activation_bits": (2, 16),
    "mult_bits": (1, 31),
    "percentile": (50.0, 100.0),
    "headroom": (0.0, 10.0),
}


@dataclass(frozen=True, slots=True)
class Scheme:
    """Formats of a quantized network, and how they are found.

    Parameters
    ----------
    weight_bits
        1..8; symmetric and narrow. One bit means -1 and +1.
    activation_bits
        2..16.
    per_channel
        One weight scale per output channel, else one for the whole filter.
    symmetric
        Activations have zero point 0: codes are unsigned where no value is negative, else signed.
        Otherwise codes are unsigned with a zero point.
    power_of_two
        All scales are powers of two, with one for a whole filter: every ``mult`` of layers is 1.
    mult_bits
        Width of the multipliers that requantize layers, 1..31; averages, sums and products of two
        activations have 16 bits at least. Scales of weights are raised to what it holds
        exactly, so that a narrow one costs resolution of weights, but adds no error of its own.
    calibration
        How ranges of activations come from samples: ``minmax``; ``percentile``; ``mse``, the range
        whose quantization error is least; ``entropy``, the range that keeps most of the histogram.
    percentile
        Share of values, in percent, that ``percentile`` keeps.
    headroom
        Share by which ranges of layer results are widened with ``minmax``: few samples do not hold
        the greatest values, and saturation costs more than a coarser step.
    equalize
        Move scales between layers until the channels of a layer span like ranges
        (:mod:`nnef_hw.quantize.calibration.equalize`).
    feature_scales
        Features of an input get a scale each where one for all would cost accuracy
        (:mod:`nnef_hw.quantize.calibration.feature_scales`).
    correct_bias
        Biases take back the mean error of quantization, as far as samples show it.
    weight_rounding
        ``adaptive``: weights are rounded so that errors of a layer's results cancel on the samples
        (:mod:`nnef_hw.quantize.calibration.adaptive`); ``nearest``: each by itself.
    rounding
        How sums become codes: ``half_up``, or ``tflite`` for models that TensorFlow Lite quantized
        (:mod:`nnef_hw.arithmetic.tflite.numerics`); ``author``: the one of these that the model was
        made for, ``half_up`` where nothing is known.
    largest_layer_factor, largest_sum_factor
        How many steps of its result an accumulator step of a layer with weights, and a step of an
        operand of a sum, may be at most: what hardware that exists already can do. Formats of
        results are coarser if need be.
    layers
        Other values of :data:`LAYER_KEYS` for single layers, by name of their result.
    locations
        Where a file names these layers, for errors.
    """

    weight_bits: int = 8
    activation_bits: int = 8
    per_channel: bool = True
    symmetric: bool = False
    power_of_two: bool = False
    mult_bits: int = 16
    calibration: str = "mse"
    percentile: float = 99.99
    headroom: float = 0.1
    equalize: bool = False
    feature_scales: bool = True
    correct_bias: bool = True
    weight_rounding: str = "adaptive"
    rounding: str = "author"
    largest_layer_factor: float = math.inf
    largest_sum_factor: float = math.inf
    layers: Mapping[str, AttributeMap] = field(default_factory=dict)
    locations: Mapping[str, Location] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, (lo, hi) in _LIMITS.items():
            value = getattr(self, name)
            if not lo <= value <= hi:
                raise ValueError(f"Scheme {name} must be in {lo:g}..{hi:g}, not {value}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                allowed = ", ".join(map(repr, choices[:-1]))
                raise ValueError(
                    f"Scheme {name} must be {allowed} or {choices[-1]!r}, "
                    f"not {getattr(self, name)!r}"
                )
        for name in self.layers:
            self.of(name)

    @property
    def one_weight_scale(self) -> bool:
        """Whether one scale serves all channels of a filter."""
        return self.power_of_two or not self.per_channel

    def of(self, layer: str) -> Scheme:
        """Return the scheme of one layer or graph input."""
        if layer not in self.layers:
            return self
        return replace(self, **self.layers[layer], layers={}, locations={})

    def activation(self, lo: float, hi: float, least_scale: float = 0.0) -> QType:
        """Return the format of activations in ``[lo, hi]``, widened to contain 0.

        ``least_scale`` bounds the step from below; a range of 0 alone has step 1.
        """
        lo, hi, bits = min(float(lo), 0.0), max(float(hi), 0.0), self.activation_bits
        top = (1 << bits) - 1
        signed = self.symmetric and lo < 0
        half = top >> 1
        scale = max(hi / half, -lo / (half + 1)) if signed else (hi - lo) / top
        scale = max(scale, least_scale)
        if scale < np.finfo(np.float32).tiny:
            return QType(bits, signed=False, scale=1.0)
        if self.power_of_two:
            scale = next_power_of_two(scale)
        zero_point = 0 if signed else min(max(math.floor(-lo / scale + 0.5), 0), top)
        return QType(bits, signed=signed, scale=scale, zero_point=zero_point)

    def weight_format(self, scale: float | tuple[float, ...]) -> QType:
        """Return the format of a filter with these scales."""
        return QType(self.weight_bits, signed=True, scale=scale, narrow=True)


def next_power_of_two(value: float) -> float:
    """Return the least power of two that is not below a positive number."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - (mantissa == 0.5))


LAYER_KEYS = tuple(
    f.name
    for f in fields(Scheme)
    if f.name
    not in {
        "equalize",
        "rounding",
        "largest_layer_factor",
        "largest_sum_factor",
        "layers",
        "locations",
    }
)
"""Options for which single layers may have their own values."""
