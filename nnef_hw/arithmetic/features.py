"""Codes of inputs whose features have scales and zero points of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import FloatArray, IntArray, QType
from nnef_hw.arithmetic.records import JsonObject

__all__ = ["FeatureScales"]


@dataclass(frozen=True, slots=True)
class FeatureScales:
    """Codes for an input's real numbers: ``real = scale[n] * (code - zero_point[n])``.

    Hardware sees codes only. In the network they stand for numbers of one format, so that features
    of unlike ranges all have as many steps.

    Parameters
    ----------
    axis
        Axis of the features in the input's shape.
    scale
        Step of each feature between two codes.
    zero_point
        The code that 0.0 of each feature would have, if there were such codes.
    """

    axis: int
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.scale) != len(self.zero_point):
            raise ValueError("a feature has a scale and a zero point")
        if not all(0 < scale < np.inf for scale in self.scale):
            raise ValueError("scales of features must be positive and finite")

    def quantize(self, real: ArrayLike, shape: tuple[int, ...], qtype: QType) -> IntArray:
        """Codes of samples of an input of a shape, ``clip(floor(x / scale + 0.5) + zero_point)``.

        Parameters
        ----------
        qtype
            Format of the codes in the network, of which only the codes count.
        """
        scale, zero_point = self.arrays(shape)
        codes = np.floor(np.asarray(real, np.float64) / scale + 0.5) + zero_point
        result: IntArray = np.clip(codes, qtype.lo, qtype.hi).astype(np.int64)
        return result

    def dequantize(self, codes: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
        """Real numbers of codes."""
        scale, zero_point = self.arrays(shape)
        return np.asarray(scale * (np.asarray(codes, np.float64) - zero_point))

    def within(self, real: Array, shape: tuple[int, ...], qtype: QType) -> FloatArray:
        """Return samples as the numbers that the network has for them, without rounding."""
        assert not isinstance(qtype.scale, tuple)
        scale, zero_point = self.arrays(shape)
        codes = np.asarray(real, np.float64) / scale + zero_point
        return np.asarray(qtype.scale * (codes - qtype.zero_point))

    def arrays(self, shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
        """Return scales and zero points in a shape to compute with arrays [..., *shape[1:]]."""
        ones = [1] * (len(shape) - 1 - self.axis)
        scale, zero_point = np.asarray(self.scale), np.asarray(self.zero_point, np.float64)
        return scale.reshape(-1, *ones), zero_point.reshape(-1, *ones)

    def to_json(self) -> dict[str, object]:
        """Return JSON values."""
        return {
            "axis": self.axis,
            "scale": list(self.scale),
            "zero_point": list(self.zero_point),
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> FeatureScales:
        """Convert JSON values of :meth:`to_json`."""
        scale, zero_point = tuple(value["scale"]), tuple(value["zero_point"])
        return cls(value["axis"], tuple(map(float, scale)), tuple(map(int, zero_point)))
