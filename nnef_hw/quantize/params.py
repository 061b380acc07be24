"""Parameters that turn a canonical graph into a fixed one: formats, and the integers of layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE
from nnef_hw.arithmetic.tflite.numerics import TFLITE_SOFTMAX_QTYPE

__all__ = [
    "AUDIO",
    "MULT_BITS",
    "SHORT_SUM_QTYPE",
    "FixedParams",
    "LayerParams",
    "fine_qtype",
    "index_qtype",
    "softmax_qtype",
]

AUDIO = QType(bits=16, signed=True, scale=1 / (1 << 15))
"""Samples of audio, of which 1 is full scale."""

MULT_BITS = 16

SHORT_SUM_QTYPE = QType(bits=24, signed=True, scale=2.0**-12)
"""What the last output adds to the gates of an integer LSTM."""


@dataclass(frozen=True, slots=True, eq=False)
class LayerParams:
    """Integers of a ``conv`` or ``linear``.

    Parameters
    ----------
    weights
        Codes of the filter, [outC, ...] as in the canonical graph.
    bias
        int32 codes at ``input scale * weight scale``, one per channel, no zero point folded in.
    weight_qtype
        Format of the filter with one scale, or one per output channel; zero point 0.
    bias_rest
        What a real bias has beyond its code, in its steps; None if that does not count.
    """

    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    weight_qtype: QType
    bias_rest: NDArray[np.float64] | None = None

    def bias_qtype(self, source_scale: float) -> QType:
        """Return the format of the bias behind activations of this scale."""
        scale = self.weight_qtype.scale
        if isinstance(scale, tuple):
            return QType(32, signed=True, scale=tuple(source_scale * s for s in scale))
        return QType(32, signed=True, scale=source_scale * scale)

    def real(self, source_scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights and the bias [1, outC] that the codes stand for."""
        bias = self.bias_qtype(source_scale).dequantize(self.bias.reshape(1, -1), axis=1)
        return self.weight_qtype.dequantize(self.weights), bias


@dataclass(frozen=True, slots=True, eq=False)
class FixedParams:
    """Everything that a canonical graph lacks to be a fixed one.

    Parameters
    ----------
    activations
        Format of graph inputs, of results and of constant operands of ``add``, ``sub`` and
        ``mul`` by tensor name. Some follow: indices have formats of their own, ``max_pool`` and
        operators that move elements keep their input's. Where operands of ``max``, ``min`` and
        ``concat`` have another format than the result, they are requantized.
    layers
        Integers of each ``conv`` and ``linear`` by node name.
    mult_bits
        Width of requantization multipliers by node name, 16 if nothing is said.
    rounding
        How sums become codes: ``half_up`` or ``tflite``.
    masked
        Each ``softmax`` of which the lowest code stands for what a mask has hidden, by node name.
    """

    activations: Mapping[str, QType]
    layers: Mapping[str, LayerParams]
    mult_bits: Mapping[str, int] = field(default_factory=dict)
    rounding: str = "half_up"
    masked: frozenset[str] = frozenset()


def softmax_qtype(rounding: str) -> QType:
    """Format of the results of a softmax."""
    return TFLITE_SOFTMAX_QTYPE if rounding == "tflite" else SOFTMAX_QTYPE


def fine_qtype(values: NDArray[np.generic]) -> QType:
    """Format of constants of 16 bits and a sign, about as exact as hardware has them."""
    largest = float(np.abs(values).max())
    return QType(bits=17, signed=True, scale=(largest or 1.0) / ((1 << 16) - 1))


def index_qtype(channels: int) -> QType:
    """Format of indices below ``channels``."""
    return QType(bits=max(1, (channels - 1).bit_length()), signed=False, scale=1.0)
