"""Softmax as TensorFlow Lite's reference kernel computes it."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.parts.softmax import Softmax

__all__ = ["TfliteSoftmax"]


@dataclass(frozen=True, kw_only=True)
class TfliteSoftmax(Softmax):
    """Exponentials from a table, which is its contents, and the reciprocal of their sum."""

    component = "nnef_hw.rtl.tflite_softmax:TfliteSoftmax"
    costs = "tflite softmax"
    exponential_bits = 31
    registers = 213

    @property
    def _steps(self) -> int:
        return self.channels.bit_length() - 1

    @property
    def latency(self) -> int:
        return self.channels + 2 * self._steps + 273

    @property
    def spacing(self) -> int:
        return self._steps + 37
