"""Functions of codes of 9 to 16 bits that are exact: lines between knots, and what is off there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray, QType, signed_bits
from nnef_hw.arithmetic.tables import look_up
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.functions.interpolated_table import InterpolatedTable

__all__ = ["CorrectedTable", "corrected_table", "lines_and_corrections"]

_INDEX_BITS = range(8, 13)
_PACKED = (1, 2, 4, 8)


@dataclass(frozen=True, kw_only=True)
class CorrectedTable(InterpolatedTable):
    """Adds a correction for every code; its contents are ``entries``, results of all codes.

    Parameters
    ----------
    index_width
        Bits of a code that address the knots.
    correction_bits
        Width of the corrections, which are not negative, less the least one.
    """

    component = "nnef_hw.rtl.functions.corrected_table:CorrectedTable"
    costs = "corrected table"
    latency = 5

    index_width: int
    correction_bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.index_width < self.in_bits:
            raise ValueError(
                f"CorrectedTable index_width must be in 1..{self.in_bits - 1}, "
                f"not {self.index_width}"
            )
        if self.lanes != 1:
            raise ValueError(f"CorrectedTable has one lane, not {self.lanes}")

    @property
    def index_bits(self) -> int:
        return self.index_width

    @property
    def packed(self) -> int:
        """Corrections in a word of their memory: as many as waste the fewest of its bits."""
        return min(_PACKED, key=lambda count: self._packed_memory(count).count)

    @property
    def correction_memory(self) -> Tiling:
        """Memory of the corrections."""
        return self._packed_memory(self.packed)

    def _packed_memory(self, count: int) -> Tiling:
        return tile_memory(self.ram, (1 << self.in_bits) // count, count * self.correction_bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory, self.correction_memory)

    def compute(self, codes: IntArray, *, entries: Sequence[int]) -> IntArray:  # type: ignore[override]
        """Return the entries of codes [beats, 1]."""
        return look_up(entries, codes, self.source)

    @property
    def features(self) -> Mapping[str, float]:
        rows = sum(tiling.width * (tiling.rows - 1) for tiling in self.memories)
        return {**super().features, "memory rows": rows}

    def flip_flops(self, device: Device) -> int:
        return super().flip_flops(device) + self.out_bits + 3 * self.correction_bits


def corrected_table(
    entries: NDArray[np.int64], source: QType, target: QType, ram: BlockRam
) -> CorrectedTable:
    """Return the part that takes the fewest block RAMs for a table of all codes."""
    parts = []
    for index_bits in _INDEX_BITS:
        if index_bits < source.bits:
            knots, corrections = lines_and_corrections(entries, index_bits)
            rises = np.diff(knots)
            parts.append(CorrectedTable(
                in_bits=source.bits, in_signed=source.signed, out_bits=target.bits,
                out_signed=target.signed, ram=ram, index_width=index_bits,
                rise_bits=signed_bits(int(rises.min()), int(rises.max())),
                correction_bits=max(1, int(np.ptp(corrections)).bit_length()),
            ))  # fmt: skip
    return min(parts, key=lambda part: sum(memory.count for memory in part.memories))


def lines_and_corrections(
    entries: NDArray[np.int64], index_bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return knots, of which there is one more than ``2**index_bits``, and what lines are off.

    Parameters
    ----------
    entries
        Results of all codes, lowest code first.
    """
    low_bits = len(entries).bit_length() - 1 - index_bits
    knots = np.append(entries[:: 1 << low_bits], entries[-1])
    place = np.arange(len(entries))
    index, rest = place >> low_bits, place & ((1 << low_bits) - 1)
    rise = np.diff(knots)[index] * rest
    lines = knots[index] + ((rise + (1 << (low_bits - 1))) >> low_bits)
    return knots, entries - lines
