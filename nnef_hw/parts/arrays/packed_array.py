"""The systolic array with a multiplier for every four products of narrow weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.families.family import Family
from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.fast_array import fast_offsets
from nnef_hw.parts.base.part import LogicProducts

__all__ = ["CODE_BITS", "FIELD_BITS", "WEIGHT_BITS", "PackedArray"]

CODE_BITS, WEIGHT_BITS = 8, 4
"""Widths of a code and of a weight in a factor."""
LARGEST_WEIGHT = 7
FIELD_BITS = 14
"""Bits of a factor, and of a product, below those of the second row."""
MOST_ADDED = 4
"""Most multipliers whose results are added while the first row's sum is still below the second's.

Of each, the first row's part is between -1,834 and 1,841.
"""
PRODUCT_BITS = 36
"""Width of the product of two factors of 18 bits."""
FACTOR_BITS = CODE_BITS + 1 + WEIGHT_BITS
"""Bits of a factor that are not copies of others."""


@dataclass(frozen=True, kw_only=True)
class PackedArray(SystolicArray):
    """Rows in pairs, with a multiplier for the products of two of the ``lanes`` of both rows.

    One more unit for every two lanes multiplies their codes with each other, which all rows share;
    these come last, and may be in LUTs.

    Raises
    ------
    ValueError
        If rows or those of a group are not pairs; if a row has one lane; if codes or weights are
        too wide; if a multiplier of rows is in LUTs.
    """

    component = "nnef_hw.rtl.arrays.packed_array:PackedArray"
    costs = "packed array"
    products_per_multiplier = 4
    row_unit = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rows % 2 or self.group_rows % 2 or self.lanes < 2:
            raise ValueError(
                f"PackedArray rows and group_rows must be even and lanes at least 2, not "
                f"{self.rows!r}, {self.group_rows!r} and {self.lanes!r}"
            )
        if self.x_bits > CODE_BITS or not 2 <= self.w_bits <= WEIGHT_BITS:
            raise ValueError(
                f"PackedArray takes codes of at most {CODE_BITS} bits and weights of 2 to "
                f"{WEIGHT_BITS}, not {self.x_bits!r} and {self.w_bits!r}"
            )
        if self.in_dsp < self.paired_units:
            raise ValueError(
                f"PackedArray in_dsp must be at least the {self.paired_units} multipliers of its "
                f"rows, not {self.in_dsp!r}"
            )

    @classmethod
    def is_made_for(cls, family: Family) -> bool:
        return family.packed_weight_bits > 0

    @classmethod
    def suits(cls, device: Device, *, x_bits: int, w_bits: int, weights: NDArray[np.int64]) -> bool:
        is_narrow = x_bits <= CODE_BITS and 2 <= w_bits <= device.family.packed_weight_bits
        return is_narrow and int(np.abs(weights).max(initial=0)) <= LARGEST_WEIGHT

    @classmethod
    def is_useful(cls, device: Device, rows: int, lanes: int) -> bool:
        fits = rows % 2 == 0 and lanes > 1
        return fits and rows // 2 * -(-lanes // 2) <= device.dsp

    @classmethod
    def multipliers_of(cls, rows: int, lanes: int) -> int:
        return rows // 2 * -(-lanes // 2) + lanes // 2

    @classmethod
    def dsp_choices(cls, rows: int, lanes: int) -> tuple[int, ...]:
        every = cls.multipliers_of(rows, lanes)
        return every - lanes // 2, every

    @classmethod
    def offsets(
        cls, weights: NDArray[np.int64], *, x_bits: int, x_signed: bool
    ) -> NDArray[np.int64]:
        channels, words, lanes = weights.shape
        padded = np.zeros((channels + channels % 2, words, lanes + lanes % 2), np.int64)
        padded[:channels, :, :lanes] = weights
        first, second = padded[0::2], padded[1::2]
        left, right = slice(0, None, 2), slice(1, None, 2)
        mixed = first[..., right] * second[..., left] + first[..., left] * second[..., right]
        above = mixed + (second[..., left] * second[..., right] << FIELD_BITS)
        offsets = fast_offsets(weights, x_bits=x_bits, x_signed=x_signed)
        # what the plain fast inner product leaves is that of first rows alone
        offsets[1::2] -= fast_offsets(weights[1::2], x_bits=x_bits, x_signed=True)
        offsets[1::2] += above.sum(axis=(1, 2))[: channels // 2]
        # sums of first rows come with half their field, so that they have no sign
        offsets[0::2] += words * cls._sections(-(-lanes // 2)) << FIELD_BITS - 1
        return offsets

    @staticmethod
    def _sections(units: int) -> int:
        """Return in how many sums the results of so many multipliers are separated."""
        return -(-units // MOST_ADDED)

    @property
    def units(self) -> int:
        """Multipliers of two rows, for two lanes each; a last one may have a single lane."""
        return -(-self.lanes // 2)

    @property
    def paired_units(self) -> int:
        """Multipliers of all rows."""
        return self.rows // 2 * self.units

    @property
    def common(self) -> int:
        """Multipliers for products of codes."""
        return self.lanes // 2

    @property
    def section_sizes(self) -> list[int]:
        """Multipliers of two rows whose results are added before they are separated."""
        sections = self._sections(self.units)
        return [(self.units + n) // sections for n in range(sections)]

    @property
    def section_levels(self) -> int:
        """Adders from a multiplier to the sum of its section."""
        return (max(self.section_sizes) - 1).bit_length()

    @property
    def levels(self) -> int:
        """Adders from the sum of a section to that of a row."""
        return (len(self.section_sizes) - 1).bit_length()

    @property
    def product_bits(self) -> int:
        """Width of a product, as far as sums need it."""
        return min(PRODUCT_BITS, FIELD_BITS + self.acc_bits)

    @property
    def section_bits(self) -> int:
        """Width of the sum of a section, in the same way."""
        return min(PRODUCT_BITS + self.section_levels, FIELD_BITS + self.acc_bits)

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.lanes

    @property
    def sum_stage(self) -> int:
        return 5 + self.weight_delay + self.section_levels + self.levels

    @property
    def timing(self) -> PackedArray:
        return replace(self, in_dsp=self.multipliers, weights=self.weights.timing)

    @property
    def runs(self) -> list[int]:
        return [self.paired_units, self.common]

    def dsp(self, device: Device) -> int:
        units, common = self.runs_in_dsp
        return units + -(-common // device.products_per_dsp(self.x_bits))

    def arranged(self, weights: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        if np.abs(weights).max(initial=0) > LARGEST_WEIGHT:
            raise ValueError(f"PackedArray takes weights of -{LARGEST_WEIGHT} to {LARGEST_WEIGHT}")
        return super().arranged(weights)

    def compute(self, words: IntArray, *, weights: IntArray) -> IntArray:
        """Return the sums [beats, out_lanes], with their offsets, of passes of words."""
        offsets = self.offsets(weights, x_bits=self.x_bits, x_signed=self.x_signed)
        return self._beats(self._sums(words, weights) + offsets)

    @property
    def _adder_bits(self) -> int:
        """Bits of all adders behind multipliers, but for accumulators."""
        sections = len(self.section_sizes)
        in_sections = self.units * self.section_bits
        behind = (sections - 1) * (FIELD_BITS + self.acc_bits)
        codes = (self.common + sections) * 2 * self.x_bits
        return self.rows // 2 * (in_sections + behind) + codes

    @property
    def features(self) -> Mapping[str, float]:
        return {
            **super().features,
            "tree bits": self._adder_bits,
            "factor bits": 2 * self.paired_units * FACTOR_BITS,
        }

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return (LogicProducts(self.in_logic, (self.x_bits, self.x_bits)),)

    def flip_flops(self, device: Device) -> int:
        del device
        groups, word = len(self.group_sizes), self.x_bits * self.lanes
        ff = self.rows * self.acc_bits * (1 + self.kept_passes)
        ff += self._adder_bits + 2 * self.paired_units * FACTOR_BITS
        ff += len(self.section_sizes) * (2 * self.x_bits + 3) * groups
        ff += word * (groups + 1) + self._address_bits * groups + self.table_registers
        ff += self.weight_delay * (self.rows * self.lanes * self.w_bits + word * groups)
        if self.weight_delay:
            ff -= self.weights.registered_bits(self.depth, self.widths)
        ff += self.in_logic * 4 * self.x_bits
        return ff + 25 + 5 * (self.lanes - 1).bit_length()
