"""Sum of what two tables say of two codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.tables import look_up
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.functions.eltwise import TwoOperands, elastic_pipeline

__all__ = ["TableSum"]


@dataclass(frozen=True, kw_only=True)
class TableSum(TwoOperands):
    """Table of sums: its contents are ``entries`` of both operands, lowest code first.

    Parameters
    ----------
    in_bits, in_signed
        Formats of the codes of both operands.
    acc_bits
        Width of the sums, signed; every entry fits it too.
    ram
        The device's block RAM.
    """

    component = "nnef_hw.rtl.functions.tablesum:TableSum"
    label = "table_sum"
    costs = "table sum"
    latency = 3

    in_bits: tuple[int, int]
    in_signed: tuple[bool, bool]
    acc_bits: int
    ram: BlockRam

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return tuple(tile_memory(self.ram, 1 << bits, self.acc_bits) for bits in self.in_bits)

    def compute(self, a: IntArray, b: IntArray, *, entries: Sequence[Sequence[int]]) -> IntArray:
        """Return the sums of the entries of codes [beats, 1] of both operands."""
        formats = zip((a, b), entries, self.in_bits, self.in_signed, strict=True)
        first, second = (
            look_up(table, codes, QType(bits, signed, 1.0))
            for codes, table, bits, signed in formats
        )
        return first + second

    @property
    def features(self) -> Mapping[str, float]:
        return {"sum bits": self.acc_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 3 * self.acc_bits + 6

    def process(self, target: Stream, *origins: Stream) -> Process:
        return elastic_pipeline(target, origins, self.latency)
