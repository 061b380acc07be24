"""Softmax as TensorFlow Lite's reference kernel computes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.tflite.numerics import tflite_softmax_codes
from nnef_hw.parts.functions.softmax import SerialSoftmax

__all__ = ["DROPPED_BITS", "FRACTION_BITS", "PRODUCTS", "TfliteSoftmax"]

FRACTION_BITS = 31
"""Fraction bits of exponentials, and of their factors."""
DROPPED_BITS = 12
"""Fraction bits of exponentials that their sum does not have."""
PRODUCTS = 7
"""Products for the reciprocal of a sum: the slope, and two in each of three Newton steps."""


@dataclass(frozen=True, kw_only=True)
class TfliteSoftmax(SerialSoftmax):
    """Multiplies every exponential by the reciprocal of their sum, a bit per cycle."""

    component = "nnef_hw.rtl.functions.tflite_softmax:TfliteSoftmax"
    costs = "tflite softmax"
    exponential_bits = FRACTION_BITS
    registers = 213

    @property
    def shift_steps(self) -> int:
        """Places by which the highest bit of a sum may lie below the highest one possible."""
        return self.channels.bit_length() - 1

    @property
    def sum_bits(self) -> int:
        return FRACTION_BITS + 1 - DROPPED_BITS + self.shift_steps

    @property
    def latency(self) -> int:
        reciprocal = PRODUCTS * (FRACTION_BITS + 2) + 1
        return self.channels + 4 + self.shift_steps + reciprocal + self.spacing

    @property
    def spacing(self) -> int:
        return FRACTION_BITS + 6 + self.shift_steps

    def compute(self, codes: IntArray, *, table: Sequence[int]) -> IntArray:
        """Return the probabilities of codes [beats, 1]."""
        return tflite_softmax_codes(codes.reshape(-1, self.channels), table).reshape(-1, 1)
