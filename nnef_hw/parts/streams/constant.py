"""A constant operand: the same codes in every frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Part, counter_bits, rom_luts
from nnef_hw.parts.base.timing import Kernel, Stream
from nnef_hw.parts.base.untyped import Hardware

__all__ = ["Constant"]


@dataclass(frozen=True, kw_only=True)
class Constant(Part):
    """Gives ``count`` beats in turn, ``repeats`` times a frame, always in time.

    Its contents are ``codes``, those of a beat side by side: one per channel, or those of a whole
    frame.

    Parameters
    ----------
    count, repeats
        Beats; how often they come in a frame.
    bits, signed, lanes
        Format of the beats.
    ram
        The device's block RAM; not used if the codes are in LUTs.
    style
        ``"logic"`` for LUTs, or ``"block"``.
    """

    component = "nnef_hw.rtl.streams.constant:Constant"
    label = "constant"
    costs = "constant"

    count: int
    repeats: int
    bits: int
    signed: bool
    ram: BlockRam
    style: str = "logic"
    lanes: int = 1

    @property
    def tiling(self) -> Tiling:
        """Shape of the memory."""
        return tile_memory(self.ram, self.count, self.bits * self.lanes)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.tiling,) if self.style == "block" else ()

    @property
    def _counters(self) -> int:
        return counter_bits(self.count) + counter_bits(self.repeats)

    def compute(self, *, codes: Sequence[int]) -> IntArray:
        """Return the codes [beats, lanes] of a frame."""
        return np.tile(codes, self.repeats).reshape(-1, self.lanes)

    @property
    def features(self) -> Mapping[str, float]:
        in_logic = self.style == "logic"
        return {
            "counter bits": self._counters,
            "table": self.bits * self.lanes * rom_luts(self.count) if in_logic else 0.0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return self._counters + self.bits * self.lanes + 2

    def operands(self, component: Hardware) -> list[Hardware]:
        del component
        return []

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        raise AssertionError("a constant makes nothing wait")
