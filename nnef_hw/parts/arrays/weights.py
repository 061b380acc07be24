"""Weights of an array: memories that an array reads, a word of its rows' weights at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, registered_bits, tile_memory
from nnef_hw.parts.base.part import table_columns, table_features

__all__ = ["WeightRom"]


@dataclass(frozen=True, kw_only=True)
class WeightRom:
    """Read-only memories of an array's weights, whose contents are known when they are built.

    An array has one for every group of its multipliers that reads the same word, and says which
    words these are (:meth:`.ArrayPart.arranged`). Its estimate of LUTs includes them, since both
    were measured together.

    Parameters
    ----------
    ram
        The device's block RAM.
    style
        ``"block"`` for block RAM, or ``"logic"``.
    """

    ram: BlockRam
    style: str = "block"

    component = "nnef_hw.rtl.arrays.weights:WeightRom"

    @property
    def timing(self) -> WeightRom:
        """One of all that are read in the same cycles."""
        return replace(self, style="block")

    def tilings(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        """Shape of the memory of every group: ``depth`` words of its width."""
        return tuple(tile_memory(self.ram, depth, width) for width in widths)

    def memories(self, depth: int, widths: Sequence[int]) -> tuple[Tiling, ...]:
        """Memories in block RAM."""
        return self.tilings(depth, widths) if self.style == "block" else ()

    def table_bits(self, widths: Sequence[int]) -> int:
        """Width of all words that are in LUTs."""
        return sum(widths) if self.style == "logic" else 0

    def columns(self, depth: int, widths: Sequence[int]) -> int:
        """Columns of the table in LUTs that may differ: as many have a register behind them."""
        return table_columns(self.table_bits(widths), depth)

    def features(self, depth: int, widths: Sequence[int]) -> Mapping[str, float]:
        """Return what they add to the features of an array."""
        memories = self.memories(depth, widths)
        return {
            "memory rows": sum(memory.width * (memory.rows - 1) for memory in memories),
            **table_features(self.table_bits(widths), depth),
        }

    def registered_bits(self, depth: int, widths: Sequence[int]) -> int:
        """Bits of a register behind the memories that are no flip-flops."""
        return registered_bits(self.ram, self.memories(depth, widths))

    def build(self, words: Sequence[NDArray[np.int64]], bits: int) -> list[Any]:
        """Return the component of every group, whose words [depth, weights] have so many bits."""
        module, _, name = self.component.partition(":")
        make = getattr(import_module(module), name)
        return [make(self, weights=weights, bits=bits) for weights in words]
