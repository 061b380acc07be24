"""Weights of an array: memories that an array reads, a word of its rows' weights at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from nnef_hw.hardware.geometry.blockram import (
    LUT_RAM_BITS,
    LUT_RAM_WORDS,
    BlockRam,
    Tiling,
    registered_bits,
    tile_memory,
)
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.parts.base.part import counter_bits, table_columns, table_features
from nnef_hw.parts.base.untyped import Hardware

__all__ = ["WeightMemory", "WeightRom", "WeightStore"]


@dataclass(frozen=True, kw_only=True)
class WeightStore(ABC):
    """Where an array's weights are: memories, one for each group that reads the same word.

    An array says which words these are. Its estimate of LUTs includes what reads them, since both
    were measured together.

    Parameters
    ----------
    ram
        The device's block RAM.
    """

    ram: BlockRam

    @property
    def timing(self) -> WeightStore:
        """One of all that are read in the same cycles."""
        return self

    @abstractmethod
    def tilings(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        """Shape of every memory of groups that read ``depth`` words of these widths."""

    def memories(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        """Memories in block RAM."""
        return self.tilings(depth, widths)

    def table_bits(self, widths: Sequence[int]) -> int:
        """Width of all words that are in LUTs."""
        del widths
        return 0

    def columns(self, depth: int, widths: Sequence[int]) -> int:
        """Columns of the table in LUTs that may differ: as many have a register behind them."""
        return table_columns(self.table_bits(widths), depth)

    def features(self, depth: int, widths: Sequence[int]) -> Mapping[str, float]:
        """Return the features that weights add to those of an array."""
        memories = self.memories(depth, widths)
        return {
            "memory rows": sum(memory.width * (memory.rows - 1) for memory in memories),
            **table_features(self.table_bits(widths), depth),
        }

    def registered_bits(self, depth: int, widths: Sequence[int]) -> int:
        """Bits of a register behind the memories that are no flip-flops."""
        return registered_bits(self.ram, self.memories(depth, widths))


@dataclass(frozen=True, kw_only=True)
class WeightRom(WeightStore):
    """Read-only memories of an array's weights, whose contents are known when they are built.

    Parameters
    ----------
    style
        ``"block"`` for block RAM, or ``"logic"``.
    """

    style: str = "block"

    component = "nnef_hw.rtl.arrays.weights:WeightRom"

    @property
    def timing(self) -> WeightRom:
        return replace(self, style="block")

    def tilings(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        # two addresses of a look-up in LUTs would be two look-ups
        constant = self.style == "block"
        return tuple(tile_memory(self.ram, depth, width, constant=constant) for width in widths)

    def memories(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        return self.tilings(depth, widths) if self.style == "block" else ()

    def table_bits(self, widths: Sequence[int]) -> int:
        return sum(widths) if self.style == "logic" else 0

    def build(self, words: Sequence[NDArray[np.int64]], bits: int) -> list[Hardware]:
        """Return the component of every group, whose words [depth, weights] have so many bits."""
        module, _, name = self.component.partition(":")
        make = getattr(import_module(module), name)
        return [make(self, weights=weights, bits=bits) for weights in words]


@dataclass(frozen=True, kw_only=True)
class WeightMemory(WeightStore):
    """Memories of matrices that a stream writes, in two halves: one is written, one is used.

    A cache, of which a frame writes a row, is one half that stays.

    A word of an array's group has ``lanes`` weights for each of its rows. Those that come one
    after the other in the stream are gathered and written at once, so far as they are of one word:
    the lanes of a row, the rows of a lane, or single weights. As many memories does a group have.
    Pages of a half are matrices, each of a power of two of words.

    Parameters
    ----------
    product
        The matrices, and their order in the stream.
    rows, group_rows, lanes
        Columns of a matrix that an array multiplies by at once; those of a group; elements of a
        column per word.
    bits
        Width of a weight.
    style
        ``"block"`` for block RAM, or ``"distributed"`` for LUT RAM.
    halves
        1 for a cache, else 2.
    """

    product: Contraction
    rows: int
    group_rows: int
    lanes: int
    bits: int
    style: str = "block"
    halves: int = 2

    component = "nnef_hw.rtl.arrays.weights:WeightBank"

    @property
    def words(self) -> int:
        """Words of a pass of the array."""
        return -(-self.product.inner // self.lanes)

    @property
    def passes(self) -> int:
        """Passes of the array."""
        return -(-self.product.columns // self.rows)

    @property
    def group_sizes(self) -> list[int]:
        """Rows of every group."""
        starts = range(0, self.rows, self.group_rows)
        return [min(self.group_rows, self.rows - first) for first in starts]

    @property
    def word_bits(self) -> int:
        """Width of the address of a word in a page."""
        return counter_bits(self.passes * self.words)

    @property
    def page_bits(self) -> int:
        """Width of the number of a matrix, and of a half."""
        return max(1, counter_bits(self.product.matrices) + self.halves - 1)

    @property
    def address_bits(self) -> int:
        """Width of an address: half, matrix, word."""
        return self.page_bits + self.word_bits

    @property
    def depth(self) -> int:
        """Words of both halves, up to the last that is used."""
        first = (self.halves - 1) << self.address_bits - 1
        last = (self.product.matrices - 1 << self.word_bits) + self.passes * self.words
        return first + last

    @property
    def gathered(self) -> int:
        """Weights that are written at once, at most."""
        return {"k": self.lanes, "n": self.group_rows, "m": 1}[self.product.order[-1]]

    def banks(self, rows: int) -> int:
        """Memories of a group of so many rows."""
        return {"k": rows, "n": self.lanes, "m": rows * self.lanes}[self.product.order[-1]]

    def bank_width(self, rows: int) -> int:
        """Width of each bank."""
        return rows * self.lanes * self.bits // self.banks(rows)

    def bank_bits(self, rows: int) -> int:
        """Width of all memories of a group."""
        return self.banks(rows) * self.bank_width(rows)

    def bank_tiling(self, rows: int) -> Tiling:
        """Shape of each bank; in LUT RAM there is no division."""
        width = self.bank_width(rows)
        if self.style == "block":
            return tile_memory(self.ram, self.depth, width)
        return Tiling(self.depth, width, self.depth, width)

    def tilings(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        del depth, widths
        return tuple(
            self.bank_tiling(rows) for rows in self.group_sizes for _ in range(self.banks(rows))
        )

    def memories(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        return self.tilings(depth, widths) if self.style == "block" else ()

    @property
    def lut_ram_cells(self) -> int:
        """Cells of 16 words of 4 bits that are in LUT RAM."""
        if self.style == "block":
            return 0
        rows = -(-self.depth // LUT_RAM_WORDS)
        cells = (
            self.banks(count) * -(-self.bank_width(count) // LUT_RAM_BITS)
            for count in self.group_sizes
        )
        return rows * sum(cells)

    def build(self) -> list[Hardware]:
        """Return the component of every group."""
        module, _, name = self.component.partition(":")
        make = getattr(import_module(module), name)
        return [make(self, rows=rows) for rows in self.group_sizes]
