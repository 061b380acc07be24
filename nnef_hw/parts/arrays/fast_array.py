"""The systolic array with a multiplier for every two products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.array import DSP_BITS, SystolicArray, tree_bits
from nnef_hw.parts.base.part import LogicProducts

__all__ = ["FastArray", "fast_offsets"]

MOST_FAST = 0.8
"""Most multipliers of a fast inner product, for each one that it takes the place of."""


@dataclass(frozen=True, kw_only=True)
class FastArray(SystolicArray):
    """Rows of units, each of a multiplier for two of the ``lanes`` products per word.

    One more row sums the products of codes, which all rows share; its multipliers come last.

    Raises
    ------
    ValueError
        If a row has one lane.
    """

    component = "nnef_hw.rtl.arrays.fast_array:FastArray"
    costs = "fast array"
    products_per_multiplier = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lanes < 2:
            raise ValueError(f"FastArray lanes must be at least 2, not {self.lanes!r}")

    @classmethod
    def suits(cls, device: Device, *, x_bits: int, w_bits: int, weights: NDArray[np.int64]) -> bool:
        del weights
        # a block that makes two products anyway needs no sums of factors
        has_pairs = w_bits <= device.family.paired_weight_bits
        is_narrow = max(x_bits, w_bits) <= DSP_BITS
        return device.sums_per_dsp > 0 and is_narrow and not has_pairs

    @classmethod
    def is_useful(cls, device: Device, rows: int, lanes: int) -> bool:
        del device
        return cls.multipliers_of(rows, lanes) <= MOST_FAST * rows * lanes

    @classmethod
    def multipliers_of(cls, rows: int, lanes: int) -> int:
        return rows * -(-lanes // 2) + lanes // 2

    @classmethod
    def offsets(
        cls, weights: NDArray[np.int64], *, x_bits: int, x_signed: bool
    ) -> NDArray[np.int64]:
        return fast_offsets(weights, x_bits=x_bits, x_signed=x_signed)

    @property
    def units(self) -> int:
        """Multipliers of a row, for two lanes each; a last one may have a single lane."""
        return -(-self.lanes // 2)

    @property
    def common(self) -> int:
        """Multipliers for products of codes."""
        return self.lanes // 2

    @property
    def macs_per_cycle(self) -> int:
        return self.rows * self.lanes

    @property
    def factor_bits(self) -> int:
        """Width of a sum of a code and a weight."""
        return max(self.x_bits, self.w_bits, 2) + 1

    @property
    def timing(self) -> SystolicArray:
        plain = {field.name: getattr(self, field.name) for field in fields(self)}
        return SystolicArray(**plain | {"in_dsp": 0, "weights": self.weights.timing})

    @property
    def runs(self) -> list[int]:
        return [self.rows * self.units, self.common]

    def dsp(self, device: Device) -> int:
        units, common = self.runs_in_dsp
        if not units:
            return 0
        return -(-units // device.sums_per_dsp) + -(-common // device.products_per_dsp(self.x_bits))

    @property
    def _tree_bits(self) -> int:
        """Register bits of all adder trees."""
        rows = self.rows * tree_bits(self.units, 2 * self.factor_bits)
        return rows + tree_bits(self.common, 2 * self.x_bits)

    def compute(self, words: IntArray, *, weights: IntArray) -> IntArray:
        """Return the sums [beats, out_lanes], with their offsets, of passes of words."""
        offsets = fast_offsets(weights, x_bits=self.x_bits, x_signed=self.x_signed)
        return self._beats(self._sums(words, weights) + offsets)

    @property
    def features(self) -> Mapping[str, float]:
        sums = self.rows + 1
        # every lane of the result has a subtraction of its own
        adders = self._tree_bits + (self.out_lanes - 1) * self.acc_bits
        return {
            **super().features,
            "sum bits": sums * self.acc_bits,
            "kept bits": sums * self.acc_bits * (self.kept_passes - 1),
            "tree bits": adders,
            # a last lane without another one has no sums
            "factor bits": 2 * self.rows * self.common * self.factor_bits,
        }

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        units, common = self.runs_in_dsp
        factors = self.factor_bits, self.factor_bits
        return (
            LogicProducts(self.rows * self.units - units, factors),
            LogicProducts(self.common - common, (self.x_bits, self.x_bits)),
        )

    def flip_flops(self, device: Device) -> int:
        groups, word = len(self.group_sizes), self.x_bits * self.lanes
        features = self.features
        ff = (self.rows + 1) * self.acc_bits * (1 + self.kept_passes)
        ff += self._tree_bits + int(features["factor bits"]) + word
        ff += word * (groups + 1) + self._address_bits * groups + self.table_registers
        ff += self.weight_delay * (self.rows * self.lanes * self.w_bits + word * groups)
        if self.weight_delay:
            ff -= self.weights.registered_bits(self.depth, self.widths)
        ff += self.in_logic * 4 * self.factor_bits
        if device.family.adds_in_dsp:
            ff -= min(self.runs_in_dsp[0], self.rows * self.common) * self.factor_bits
        return ff + 25 + 5 * (self.lanes - 1).bit_length()


def fast_offsets(weights: NDArray[np.int64], *, x_bits: int, x_signed: bool) -> NDArray[np.int64]:
    """Return the excess of the sums of every channel, modulo ``2**acc_bits``.

    ``weights`` are those of a :class:`FastArray`, [channels, words, lanes]; the result is
    [channels].
    """
    pairs = weights[:, :, : weights.shape[2] // 2 * 2]
    offsets = (pairs[:, :, 0::2] * pairs[:, :, 1::2]).sum(axis=(1, 2))
    # unsigned codes come less half their range
    half = 0 if x_signed else 1 << x_bits - 1
    result: NDArray[np.int64] = offsets - half * weights.sum(axis=(1, 2))
    return result
