"""Normalization of integer networks over channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.parts import Part
from nnef_hw.parts.functions.integer_normalize import IntegerNormalize
from nnef_hw.streaming.layers.layer import Contents, Folding, StreamContext, StreamLayer, lowers

__all__ = ["IntegerNormalizeLayer"]


@dataclass(frozen=True, eq=False, kw_only=True)
class IntegerNormalizeLayer(StreamLayer[Folding]):
    """Normalization over channels; ``scale`` and ``offset`` have one number, or one per channel."""

    label = "normalize"

    pixels: int
    channels: int
    requant: IntegerNormalizeRequant
    scale: NDArray[np.int64]
    offset: NDArray[np.int64]

    def foldings(self, device: Device) -> Sequence[Folding]:
        del device
        return [Folding()]

    def _part(self, device: Device) -> IntegerNormalize:
        widths = [
            signed_bits(int(values.min()), int(values.max()))
            for values in (self.scale, self.offset)
        ]
        return IntegerNormalize(
            channels=self.channels, bits=self.source.bits, signed=self.source.signed,
            out_bits=self.target.bits, out_signed=self.target.signed,
            centered=self.requant.centered, scale_bits=widths[0], offset_bits=widths[1],
            scales=self.scale.size, offsets=self.offset.size, ram=device.ram,
        )  # fmt: skip

    def parts(self, folding: Folding, device: Device) -> tuple[Part, ...]:
        del folding
        return (self._part(device),)

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding
        return self._part(device).frame_cycles(self.pixels)

    def contents(self, folding: Folding) -> Contents:
        del folding
        return {
            "normalize": {
                "requant": self.requant,
                "scale": self.scale.tolist(),
                "offset": self.offset.tolist(),
            }
        }


@lowers("integer_normalize")
def _lower_integer_normalize(
    context: StreamContext[layers.IntegerNormalization],
) -> IntegerNormalizeLayer:
    layer = context.layer
    return IntegerNormalizeLayer(
        **context.common, **context.extents, requant=layer.requant, scale=_unlike(layer.scale),
        offset=_unlike(layer.offset),
    )  # fmt: skip


def _unlike(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return values of channels, or one of them if they are all the same."""
    return values[:1] if (values == values[0]).all() else values
