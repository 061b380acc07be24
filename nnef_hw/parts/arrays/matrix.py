"""A matrix of constants, multiplied with a whole vector in every cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnef_hw.arithmetic.adders import AdderGraph
from nnef_hw.arithmetic.cuts import Cuts
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.streams.pipeline import Pipeline

__all__ = ["MatrixProduct"]


@dataclass(frozen=True, kw_only=True)
class MatrixProduct(Pipeline):
    """Adds up shifted codes, then shifts and clips: a linear layer with its requantizers.

    All of its constants are in the graph, so it has no contents.

    Parameters
    ----------
    graph
        Gives for every result ``acc * mult + 2**(shift - 1) + (zero_point - lo) * 2**shift``.
    products
        Weights that it stands for, as multiply-accumulates are counted.
    shift, lo, hi
        What is done to that: shifted right, clipped to ``0..hi - lo``, and ``lo`` is added.
    chained
        Most adders in a row between two registers; what shifts and clips counts as one.
    """

    component = "nnef_hw.rtl.arrays.matrix:MatrixProduct"
    label = "product"
    costs = "matrix product"

    graph: AdderGraph
    products: int
    shift: int
    lo: int
    hi: int
    chained: int

    def __post_init__(self) -> None:
        if self.chained < 1:
            raise ValueError(f"MatrixProduct chained must be at least 1, not {self.chained}")

    @cached_property
    def cuts(self) -> Cuts:
        """Where registers stand between the adders."""
        return Cuts(graph=self.graph, code_bits=self.out_bits, chained=self.chained)

    @property
    def stages(self) -> int:
        return 1 + len(self.cuts.places)

    @property
    def multipliers(self) -> int:
        return self.products

    @property
    def in_logic(self) -> int:
        return self.products

    @property
    def surplus_bits(self) -> int:
        """Bits of shifted results above those of a code."""
        code_bits = (self.hi - self.lo).bit_length()
        widths = [self.graph.widths[value] for value in self.graph.results if value is not None]
        return sum(max(0, width - self.shift - code_bits) for width in widths)

    @cached_property
    def _passing_bits(self) -> int:
        """Bits of registers that no adder or clipping stands before."""
        return self._in_bits + sum(held.bits - held.computed for held in self.cuts.held)

    @property
    def _in_bits(self) -> int:
        return self.in_lanes * self.in_bits

    def compute(self, codes: IntArray) -> IntArray:
        """Return the results [beats, out_lanes] of codes [beats, in_lanes]."""
        shifted = self.graph.apply(codes) >> self.shift
        return np.asarray(shifted.clip(0, self.hi - self.lo) + self.lo)

    @property
    def features(self) -> Mapping[str, float]:
        return {
            **self.queue_features,
            "adder bits": sum(self.graph.adder_bits),
            "adders": sum(bits > 0 for bits in self.graph.adder_bits),
            "passing bits": self._passing_bits,
            "code bits": self.out_lanes * self.out_bits,
            "surplus bits": self.surplus_bits,
        }

    def flip_flops(self, device: Device) -> int:
        return super().flip_flops(device) + self._in_bits + self.cuts.bits
