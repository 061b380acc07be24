"""A matrix of constants, multiplied with a whole vector in every cycle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.adders import AdderGraph
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
    """

    component = "nnef_hw.rtl.arrays.matrix:MatrixProduct"
    label = "product"
    costs = "matrix product"

    graph: AdderGraph
    products: int
    shift: int
    lo: int
    hi: int

    @property
    def stages(self) -> int:
        return 1 + self.graph.depth + 1

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

    @property
    def _code_cycles(self) -> int:
        """Cycles that codes wait until the last one is there."""
        levels = [self.graph.levels[value] for value in self.graph.results if value is not None]
        return sum(self.graph.depth - level for level in levels)

    @property
    def _passing_bits(self) -> int:
        """Bits of registers that no adder or clipping stands before."""
        graph = self.graph
        passing = sum(graph.widths[graph.inputs :]) - sum(graph.adder_bits)
        codes_in = self.in_lanes * self.in_bits
        return codes_in + passing + graph.kept_bits + self._code_cycles * self.out_bits

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
        added = sum(self.graph.adder_bits) + self.out_lanes * self.out_bits
        return super().flip_flops(device) + added + self._passing_bits
