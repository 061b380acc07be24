"""Functions of one code, looked up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.tables import look_up
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Pipe
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["Table"]


@dataclass(frozen=True, kw_only=True)
class Table(Pipe):
    """An entry for every code; its contents are ``entries``, lowest code first.

    Parameters
    ----------
    in_bits, in_signed, out_bits, out_signed
        Formats of codes and results.
    ram
        The device's block RAM.
    lanes
        Codes per beat.
    """

    component = "nnef_hw.rtl.functions.table:Table"
    label = "table"
    costs = "table"
    latency = 1

    in_bits: int
    in_signed: bool
    out_bits: int
    out_signed: bool
    ram: BlockRam
    lanes: int = 1

    @property
    def memory(self) -> Tiling:
        """Memory of a lane."""
        return tile_memory(self.ram, 1 << self.in_bits, self.out_bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,) * self.lanes

    def compute(self, codes: IntArray, *, entries: Sequence[int]) -> IntArray:
        """Return the entries of codes [beats, lanes]."""
        return look_up(entries, codes, QType(self.in_bits, self.in_signed, 1.0))

    @property
    def features(self) -> Mapping[str, float]:
        return {}

    def flip_flops(self, device: Device) -> int:
        del device
        return 2

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        sent = -1
        while True:
            accepted = max((yield origin), sent)
            origin.accept(accepted)
            sent = yield target, accepted + self.latency
