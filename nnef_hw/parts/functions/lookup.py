"""Rows of a table, chosen by integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.places import look_up_rows
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Pipe, counter_bits, rom_luts
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["Lookup"]


@dataclass(frozen=True, kw_only=True)
class Lookup(Pipe):
    """Gives a row of codes for every integer; its contents are ``codes``, [rows, channels].

    Parameters
    ----------
    rows, channels
        Extents of the table.
    in_bits
        Width of an integer.
    bits, signed
        Format of the codes.
    lanes
        Codes per beat of the result; they divide the channels.
    ram
        The device's block RAM.
    style
        ``"block"`` for block RAM, or ``"logic"`` for LUTs.
    """

    component = "nnef_hw.rtl.functions.lookup:Lookup"
    label = "lookup"
    costs = "lookup"
    latency = 1

    rows: int
    channels: int
    in_bits: int
    bits: int
    signed: bool
    ram: BlockRam
    lanes: int = 1
    style: str = "block"

    @property
    def beats(self) -> int:
        """Beats of a row."""
        return self.channels // self.lanes

    @property
    def tiling(self) -> Tiling:
        """Shape of the memory."""
        return tile_memory(self.ram, self.rows * self.beats, self.lanes * self.bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.tiling,) if self.style == "block" else ()

    def compute(self, integers: IntArray, *, codes: Sequence[Sequence[int]]) -> IntArray:
        """Return the rows [beats, lanes] of integers [beats, 1]."""
        rows = look_up_rows(np.asarray(codes, np.int64), integers)[:, :, 0]
        return np.asarray(rows.reshape(-1, self.lanes))

    @property
    def features(self) -> Mapping[str, float]:
        in_logic = self.style == "logic"
        width = self.lanes * self.bits
        return {
            "counter bits": counter_bits(self.beats),
            "address bits": counter_bits(self.rows * self.beats),
            "table": width * rom_luts(self.rows * self.beats) if in_logic else 0.0,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        return counter_bits(self.beats) + 2 + self.lanes * self.bits * (self.style == "logic")

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        sent = -1
        while True:
            offered = yield origin
            for beat in range(self.beats):
                read = max(offered, sent)
                if beat == self.beats - 1:
                    origin.accept(read)
                sent = yield target, read + self.latency
