"""Layer and RMS normalization over channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.normalization import OFFSET_BITS, NormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.functions.normalize import FAST_SPACINGS, SPACINGS, Normalize
from nnef_hw.streaming.layers.layer import Contents, Folding, PixelLayer, StreamContext, lowers

__all__ = ["NormalizeFolding", "NormalizeLayer"]


@dataclass(frozen=True, kw_only=True)
class NormalizeFolding(Folding):
    """Cycles per beat, and bits of a root that a cycle finds."""

    spacing: int
    digits: int = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class NormalizeLayer(PixelLayer[NormalizeFolding]):
    """Normalization over channels; ``mult`` and ``offset`` have one number, or one per channel."""

    label = "normalize"

    requant: NormalizeRequant
    mult: NDArray[np.int64]
    offset: NDArray[np.int64]

    def foldings(self, device: Device) -> Sequence[NormalizeFolding]:
        del device
        digits = [NormalizeFolding(spacing=spacing, digits=2) for spacing in FAST_SPACINGS]
        return [*(NormalizeFolding(spacing=spacing) for spacing in SPACINGS), *digits]

    def _part(self, folding: NormalizeFolding, device: Device) -> Normalize:
        half = (1 << OFFSET_BITS - 1) + (self.requant.zero_point << OFFSET_BITS)
        return Normalize(
            channels=self.channels, bits=self.source.bits, signed=self.source.signed,
            out_bits=self.target.bits, out_signed=self.target.signed,
            centered=self.requant.centered, epsilon_bits=self.requant.epsilon.bit_length(),
            fraction=self.requant.fraction,
            offset_bits=signed_bits(int(self.offset.min()) + half, int(self.offset.max()) + half),
            scales=self.mult.size, offsets=self.offset.size, spacing=folding.spacing,
            digits=folding.digits, lanes=self.result_lanes, ram=device.ram,
        )  # fmt: skip

    def parts(self, folding: NormalizeFolding, device: Device) -> tuple[Part, ...]:
        return (self._part(folding, device),)

    def cycles(self, folding: NormalizeFolding, device: Device) -> int:
        return self._part(folding, device).frame_cycles(self.pixels)

    def contents(self, folding: NormalizeFolding) -> Contents:
        del folding
        return {
            "normalize": {
                "requant": self.requant,
                "zero_point": self.source.zero_point,
                "mult": self.mult.tolist(),
                "offset": self.offset.tolist(),
            }
        }


@lowers("normalize")
def _lower_normalize(context: StreamContext[layers.Normalization]) -> NormalizeLayer:
    layer = context.layer
    return NormalizeLayer(
        **context.common,
        **context.extents,
        requant=layer.requant,
        mult=layer.mult,
        offset=layer.offset,
    )
