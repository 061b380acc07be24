"""Layers whose last operand is an integer: the place of a row in a table, or of a mask's end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.errors import UnsupportedError
from nnef_hw.hardware.devices import Device
from nnef_hw.ir import layers
from nnef_hw.ir.layers import format_of
from nnef_hw.parts import Part
from nnef_hw.parts.functions.causal_mask import CausalMask
from nnef_hw.parts.functions.lookup import Lookup
from nnef_hw.streaming.layers.layer import (
    Contents,
    Folding,
    PixelLayer,
    PlainLayer,
    StreamContext,
    StreamLayer,
    lowers,
)

__all__ = ["CausalMaskLayer", "LookupFolding", "LookupLayer"]

LOGIC_BITS = 4096
"""Most bits of a table that may be in LUTs."""


@dataclass(frozen=True, kw_only=True)
class LookupFolding(Folding):
    """Where the table is: ``"block"`` RAM, or ``"logic"``."""

    style: str


@dataclass(frozen=True, eq=False, kw_only=True)
class LookupLayer(StreamLayer[LookupFolding]):
    """A row of a table for every integer; ``rows`` are its codes."""

    label = "lookup"

    pixels: int
    rows: NDArray[np.int64]

    @property
    def takes_lanes(self) -> bool:
        return self.operand_lanes == 1 and self.rows.shape[1] % self.result_lanes == 0

    def foldings(self, device: Device) -> Sequence[LookupFolding]:
        del device
        is_small = self.rows.size * self.target.bits <= LOGIC_BITS
        return [LookupFolding(style=style) for style in ("block", *["logic"] * is_small)]

    def parts(self, folding: LookupFolding, device: Device) -> tuple[Part, ...]:
        rows, channels = self.rows.shape
        lookup = Lookup(
            rows=rows, channels=channels, in_bits=self.source.bits, bits=self.target.bits,
            signed=self.target.signed, lanes=self.result_lanes, ram=device.ram,
            style=folding.style,
        )  # fmt: skip
        return (lookup,)

    def cycles(self, folding: LookupFolding, device: Device) -> int:
        del folding, device
        return self.pixels * int(self.rows.shape[1]) // self.result_lanes

    def contents(self, folding: LookupFolding) -> Contents:
        del folding
        return {"lookup": {"codes": self.rows.tolist()}}


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalMaskLayer(PixelLayer[Folding], PlainLayer):
    """Channels that are hidden behind a place."""

    label = "mask"

    place: QType

    def lanes_of(self, operand: int) -> int:
        return 1 if operand else self.operand_lanes

    @property
    def joined(self) -> tuple[str, ...]:
        scores, _ = self.sources
        return (scores,)

    def operand_format(self, operand: int) -> QType:
        return self.place if operand else self.source

    def cycles(self, folding: Folding, device: Device) -> int:
        del folding, device
        return self.beats

    def part(self, device: Device) -> Part:
        del device
        return CausalMask(
            channels=self.channels, pixels=self.pixels, place_bits=self.place.bits,
            lanes=self.operand_lanes, **self.codes_format,
        )  # fmt: skip


@lowers("lookup")
def _lower_lookup(context: StreamContext[layers.Lookup]) -> LookupLayer:
    layer = context.layer
    _, index = layer.operands
    height, width, _ = layers.image_of(index)
    return LookupLayer(
        **context.names, source=format_of(index), target=layer.target, pixels=height * width,
        rows=layer.rows,
    )  # fmt: skip


@lowers("causal_mask")
def _lower_mask(context: StreamContext[layers.CausalMask]) -> CausalMaskLayer:
    place = format_of(context.layer.operands[1])
    return CausalMaskLayer(**context.common, **context.extents, place=place)


@lowers("write_row")
def _lower_row(context: StreamContext[layers.WriteRow]) -> StreamLayer[Folding]:
    node = context.layer.node
    raise UnsupportedError(f"write_row {node.name!r}: no cache", location=node.location)
