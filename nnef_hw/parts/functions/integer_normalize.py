"""Normalization of integer networks over the channels of a pixel, by whole divisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import LogicProducts, counter_bits, table_features
from nnef_hw.parts.functions.normalize import NormalizePart

__all__ = ["IntegerNormalize"]


@dataclass(frozen=True, kw_only=True)
class IntegerNormalize(NormalizePart):
    """Multiplies, and divides by a root, a bit per cycle.

    Its contents are ``requant``, ``scale`` and ``offset``.

    Parameters
    ----------
    scale_bits
        Width of a scale, signed.
    """

    component = "nnef_hw.rtl.functions.integer_normalize:IntegerNormalize"
    costs = "integer normalize"

    scale_bits: int

    @property
    def interval(self) -> int:
        return max(self.root_bits, self.out_bits)

    @property
    def digit_bits(self) -> int:
        """Bits of a factor per cycle."""
        return 1

    @property
    def difference_bits(self) -> int:
        """Width of a code, signed."""
        return self.bits + (not self.signed)

    @property
    def largest(self) -> int:
        """The greatest magnitude of a code less the mean."""
        return 1 << self.bits - 1 if self.signed and not self.centered else (1 << self.bits) - 1

    @property
    def root_bits(self) -> int:
        """Width of a root, and of such a magnitude."""
        return self.largest.bit_length()

    @property
    def sum_bits(self) -> int:
        """Width of the sum of a pixel's codes, signed."""
        return self.difference_bits + counter_bits(self.channels)

    @property
    def square_bits(self) -> int:
        """Width of the sum of their squares."""
        most = 1 << self.bits - 1 if self.signed else (1 << self.bits) - 1
        return int((self.channels * most**2).bit_length())

    @property
    def root_cycles(self) -> int:
        mean = self.sum_bits + self.bits + 2 if self.centered else 0
        return 3 + mean + self.square_bits + self.root_bits

    @property
    def delay(self) -> int:
        return 6 + 2 * self.interval

    def compute(
        self, codes: IntArray, *, requant: IntegerNormalizeRequant, scale: Sequence[int],
        offset: Sequence[int],
    ) -> IntArray:  # fmt: skip
        """Return the normalized codes of codes [beats, 1]."""
        return requant.apply(codes.reshape(-1, self.channels), scale, offset).reshape(-1, 1)

    @property
    def features(self) -> Mapping[str, float]:
        sums = self.sum_bits + 3 * self.square_bits + 2 * self.root_bits
        scales = table_features(self.scale_bits * (self.scales > 1), self.scales)
        offsets = table_features(self.offset_bits * (self.offsets > 1), self.offsets)
        return {
            "sum bits": sums,
            "digit bits": self.scale_bits + self.offset_bits + self.root_bits,
            "table LUTs": sum((*scales.values(), *offsets.values())),
        }

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return (LogicProducts(1, (self.difference_bits, self.difference_bits)),)

    def flip_flops(self, device: Device) -> int:
        del device
        sums = 4 * self.difference_bits + self.sum_bits + self.square_bits
        root = 3 * self.square_bits + 2 * self.sum_bits + 4 * self.root_bits + 20
        factors = 4 * (self.scale_bits + self.offset_bits) + 8 * self.root_bits
        return sums + root + factors + 5 * self.out_bits + 80
