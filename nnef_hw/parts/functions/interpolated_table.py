"""Functions of codes of 9 to 16 bits, interpolated between the knots of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.tables import TABLE_BITS, look_up
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.part import Pipe
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.functions.eltwise import elastic_pipeline

__all__ = ["InterpolatedTable"]


@dataclass(frozen=True, kw_only=True)
class InterpolatedTable(Pipe):
    """A knot for every 2**f codes, f = ``in_bits`` - 8; its contents are ``knots``.

    Parameters
    ----------
    in_bits, in_signed, out_bits, out_signed
        Formats of codes and results; ``in_bits`` is more than 8.
    rise_bits
        Width of the differences between knots, signed.
    ram
        The device's block RAM.
    lanes
        Codes per beat.
    """

    component = "nnef_hw.rtl.functions.interpolated_table:InterpolatedTable"
    label = "table"
    costs = "interpolated table"
    latency = 4

    in_bits: int
    in_signed: bool
    out_bits: int
    out_signed: bool
    rise_bits: int
    ram: BlockRam
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.in_bits <= TABLE_BITS:
            raise ValueError(
                f"InterpolatedTable in_bits must be over {TABLE_BITS}, not {self.in_bits}"
            )

    @property
    def index_bits(self) -> int:
        """Bits of a code that address the knots."""
        return TABLE_BITS

    @property
    def low_bits(self) -> int:
        """Bits of a code below these."""
        return self.in_bits - self.index_bits

    @property
    def memory(self) -> Tiling:
        """Memory of a lane: knots, and differences to the next ones."""
        return tile_memory(self.ram, 1 << self.index_bits, self.out_bits + self.rise_bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,) * self.lanes

    @property
    def source(self) -> QType:
        """Format of the codes; their step does not matter."""
        return QType(self.in_bits, self.in_signed, 1.0)

    def compute(self, codes: IntArray, *, knots: Sequence[int]) -> IntArray:
        """Return the interpolated values at codes [beats, lanes]."""
        return look_up(knots, codes, self.source)

    @property
    def features(self) -> Mapping[str, float]:
        digits = self.low_bits
        pairs = -(-digits // 2)
        # A sum for each pair of digits but a single one, and the sums of these.
        rows = digits // 2 + pairs - 1
        return {"product bits": rows * (self.rise_bits + 4), "code bits": self.out_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        digits = self.low_bits
        halves = 2 if digits > 2 else 1
        return 3 * (digits + self.out_bits) + (1 + halves) * self.rise_bits + 4

    def process(self, target: Stream, *origins: Stream) -> Process:
        return elastic_pipeline(target, origins, self.latency)
