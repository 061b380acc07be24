"""How many bits, and how real ranges become formats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.numerics import QType

__all__ = ["Scheme"]

_MULT_MARGIN_BITS = 7
_BIAS_BITS = 24


@dataclass(frozen=True, slots=True)
class Scheme:
    """Widths of a quantized network.

    Parameters
    ----------
    weight_bits
        2..8; symmetric and narrow, one scale per output channel.
    activation_bits
        2..16; unsigned with a zero point.
    mult_bits
        Width of requantization multipliers, 8..24.
    clipping
        How activation ranges come from calibration: ``minmax``, or ``mse`` for the range whose
        quantization error is least.
    headroom
        Share by which ranges of layer results are widened: few calibration samples do not hold the
        greatest values, and saturation costs more than a coarser step.
    """

    weight_bits: int = 8
    activation_bits: int = 8
    mult_bits: int = 16
    clipping: str = "minmax"
    headroom: float = 0.1

    def __post_init__(self) -> None:
        for name, lo, hi in (
            ("weight_bits", 2, 8),
            ("activation_bits", 2, 16),
            ("mult_bits", 8, 24),
        ):
            value = getattr(self, name)
            if not lo <= value <= hi:
                raise ValueError(f"Scheme {name} must be in {lo}..{hi}, not {value}")
        if not 0.0 <= self.headroom <= 10.0:
            raise ValueError(f"Scheme headroom must be in 0..10, not {self.headroom}")
        if self.clipping not in {"minmax", "mse"}:
            raise ValueError(f"Scheme clipping must be 'minmax' or 'mse', not {self.clipping!r}")

    def activation(self, lo: float, hi: float, least_scale: float = 0.0) -> QType:
        """Return the format of activations in ``[lo, hi]``, widened to contain 0.

        ``least_scale`` bounds the step from below; a range of 0 alone has step 1.
        """
        lo, hi = min(float(lo), 0.0), max(float(hi), 0.0)
        top = (1 << self.activation_bits) - 1
        scale = max((hi - lo) / top, least_scale)
        if scale < np.finfo(np.float32).tiny:
            return QType(self.activation_bits, signed=False, scale=1.0)
        zero_point = min(max(int(np.floor(-lo / scale + 0.5)), 0), top)
        return QType(self.activation_bits, signed=False, scale=scale, zero_point=zero_point)

    def weights(
        self, weights: ArrayLike, bias: ArrayLike, input_scale: float
    ) -> tuple[NDArray[np.int64], QType]:
        """Return codes [outC, ...] and format of a filter.

        A channel's step is its largest magnitude over the highest code, but not so small that its
        multiplier would lose precision beside the others' or its bias would need over 24 bits.
        """
        real = np.asarray(weights, np.float64)
        top = (1 << (self.weight_bits - 1)) - 1
        scales = np.abs(real.reshape(real.shape[0], -1)).max(axis=1) / top
        floor = scales.max() * 2.0 ** (_MULT_MARGIN_BITS - self.mult_bits)
        floor = max(floor, float(np.finfo(np.float32).tiny))
        magnitude = np.abs(np.asarray(bias, np.float64).reshape(-1))
        scales = np.maximum(scales, magnitude / (input_scale * 2.0 ** (_BIAS_BITS - 1)))
        dead = scales == 0
        scales[dead] = scales.max() if scales.any() else 1.0
        scales = np.maximum(scales, floor)
        qtype = QType(self.weight_bits, signed=True, scale=tuple(map(float, scales)), narrow=True)
        return qtype.quantize(real), qtype
