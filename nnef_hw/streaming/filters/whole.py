"""Linear layers that take a whole pixel, all of its channels, in every cycle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from nnef_hw.arithmetic.adders import AdderGraph, multiply_matrix
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.subexpressions import signed_digits
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.matrix import MatrixProduct
from nnef_hw.streaming.filters.arrays import AnyFilter
from nnef_hw.streaming.layers.kept import depends_on
from nnef_hw.streaming.layers.layer import Contents, Folding

__all__ = ["MatrixFolding", "matrix_foldings"]

LUTS_PER_DIGIT = 3
"""Fewer than any digit of a weight takes: what would need as many as there are is not tried."""
MOST_KEPT = 64
"""Graphs of adders that are kept; the layers of a network are lowered several times."""


@dataclass(frozen=True, kw_only=True)
class MatrixFolding(Folding):
    """A linear layer or 1 x 1 convolution whose products are adders, all of them built.

    Parameters
    ----------
    rows, lanes
        Channels of the result, and of the operand.
    chained
        Adders in a row between two registers.
    """

    sort = "matrix"

    rows: int
    lanes: int
    chained: int

    @property
    def shape(self) -> dict[str, int]:
        return {"rows": self.rows, "lanes": self.lanes, "taps": 1, "lines": 0}

    @depends_on("rows", "lanes", "chained")
    def product(self, layer: AnyFilter, device: Device) -> MatrixProduct:
        """Return the part."""
        requant = layer.requant
        assert isinstance(requant, Requant)
        source, target = layer.source, layer.target
        return MatrixProduct(
            graph=_graph(layer), products=layer.weights_of_model, shift=requant.shift,
            lo=requant.lo, hi=requant.hi, chained=self.chained, in_lanes=self.lanes,
            in_bits=source.bits, in_signed=source.signed, out_lanes=self.rows,
            out_bits=target.bits, out_signed=target.signed, lut_ram=device.family.has_lut_ram,
        )  # fmt: skip

    def parts(self, layer: AnyFilter, device: Device) -> tuple[MatrixProduct]:
        """Return the only part of a layer."""
        return (self.product(layer, device),)

    def cycles(self, layer: AnyFilter, device: Device) -> int:
        """Cycles per frame."""
        del device
        return layer.window.out_pixels

    def contents(self, layer: AnyFilter) -> Contents:
        """Return the contents of the folding's parts: none, all constants are in the adders."""
        del layer
        return {}


def matrix_foldings(layer: AnyFilter, device: Device) -> list[MatrixFolding]:
    """List how a layer takes whole pixels: by one window's weights, if they might fit the device.

    Only where its beats are pixels. Registers stand between adders where the clock needs them, and
    behind every adder while the clock is not known. Sharing leaves an adder for every other digit,
    or somewhat fewer; none is less than 8 LUTs.
    """
    size = layer.out_channels, layer.in_channels
    if size != (layer.result_lanes, layer.operand_lanes) or max(size) == 1:
        return []
    window, requant = layer.window, layer.requant
    is_pointwise = window.taps == 1 and window.out_pixels == window.height * window.width
    if not is_pointwise or window.goes_on or not isinstance(requant, Requant):
        return []
    most = device.lut // LUTS_PER_DIGIT
    if np.count_nonzero(layer.weights) > most:
        return []
    digits = sum(1 for weight in layer.weights.flat for _ in signed_digits(int(weight)))
    if digits > most:
        return []
    widest = max(_graph(layer).widths)
    chained = layer.clock_mhz and device.family.adders.chained(layer.clock_mhz, widest)
    return [MatrixFolding(rows=layer.out_channels, lanes=layer.in_channels, chained=chained or 1)]


def _graph(layer: AnyFilter) -> AdderGraph:
    """Return the adders of a layer with its requantizers, whose constants are one of each sum."""
    requant = layer.requant
    assert isinstance(requant, Requant)
    factors = np.broadcast_to(np.array(requant.mult, np.int64), layer.out_channels)
    rounding = (1 << requant.shift - 1) + ((requant.zero_point - requant.lo) << requant.shift)
    rest = np.array(requant.offset or (0,), np.int64)
    offsets = layer.bias.astype(np.int64) * factors + rest + rounding
    return _multiplied(
        layer.weights[:, 0].tobytes(), layer.weights[:, 0].shape, tuple(factors.tolist()),
        tuple(offsets.tolist()), layer.source.bits, layer.source.signed,
    )  # fmt: skip


@lru_cache(MOST_KEPT)
def _multiplied(
    weights: bytes, shape: tuple[int, int], factors: tuple[int, ...], offsets: tuple[int, ...],
    bits: int, signed: bool,
) -> AdderGraph:  # fmt: skip
    matrix = np.frombuffer(weights, np.int64).reshape(shape)
    return multiply_matrix(matrix, factors=factors, offsets=offsets, bits=bits, signed=signed)
