"""Products of two activations in a shared engine: matrices of codes become weights of the array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import (
    LUT_RAM_BITS,
    LUT_RAM_WORDS,
    Tiling,
    tile_memory,
    tile_parts,
)
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = [
    "MOST_LUT_RAM_WORDS", "Contracting", "Filling", "KeptMatrices", "Matrices", "Measuring",
    "Placing",
]  # fmt: skip

MOST_LUT_RAM_WORDS = 64
"""Deepest memory of matrices, or of constants, that may be in LUT RAM."""
_LUTS = 60
"""Of addresses and flags."""


@dataclass(frozen=True, kw_only=True)
class Contracting(Record):
    """Whether weights are codes of another tensor."""

    contracts: int = fact("weights are codes", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class Measuring(Record):
    """Whether sums of weights are measured, and taken from results."""

    measures: int = fact("sums of weights, which pixels outside tell, are taken from results",
                         bits=1, late=True, constant=True)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Filling(Record):
    """Filling of a matrix: words of codes become words of weights."""

    fills: int = fact("words that are read become weights, and give no results", bits=1)
    turns: int = fact("such a word is a lane of rows, not a row", bits=1, constant=True)
    inner_lanes: int = fact("codes of the last word of a row of weights, less one", constant=True)


@dataclass(frozen=True, kw_only=True)
class Placing(Record):
    """Whether words of codes go to a row of a matrix that stays from frame to frame."""

    placed: int = fact("the place tells which row, or lane of rows, of a matrix is filled", bits=1)


@dataclass(frozen=True, kw_only=True)
class Matrices(Feature):
    """A memory for each row of the array, which words of codes fill, and sums of what is there.

    Parameters
    ----------
    words
        Words of weights that have room.
    sums
        Depth of the memory of biases less the sums of weights times the zero point of the codes
        that they are multiplied by: a power of two.
    turns, keeps
        Whether words of codes are lanes of any matrices, and whether they are rows of any.
    in_lut_ram
        Whether matrices are in LUT RAM.
    behind
        Words of weights before the matrices, which are in their memory; None if they have their
        own.
    """

    label = "products of two activations"
    component = "nnef_hw.rtl.engine.contraction:EngineMatrices"
    says: ClassVar[tuple[type[Record], ...]] = (Contracting, Filling, Measuring)

    words: int
    sums: int
    turns: bool
    keeps: bool
    in_lut_ram: bool = False
    behind: int | None = None

    def __post_init__(self) -> None:
        if self.in_lut_ram and self.behind is not None:
            raise ValueError("Engine matrices are in LUT RAM or behind weights, not both")

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        return {"inner_lanes": (engine.lanes - 1).bit_length()}

    def row_memory(self, engine: EngineSizes) -> Tiling:
        """Return the memory of a row of the array; in LUT RAM it is not divided."""
        if self.in_lut_ram:
            return Tiling(self.words, engine.word_bits, self.words, engine.word_bits)
        return tile_memory(engine.ram, self.words + (self.behind or 0), engine.word_bits)

    def writes_lanes(self, engine: EngineSizes) -> bool:
        """Whether lanes of a word are written alone, so that none waits for the others."""
        tiles = self.row_memory(engine).tile_width
        can = tiles == CODE_BITS or (engine.ram.writes_bits and tiles % CODE_BITS == 0)
        return self.turns and not self.in_lut_ram and can

    def sum_memory(self, engine: EngineSizes) -> Tiling:
        """Return the memory of biases, those of a cycle's results together."""
        return tile_memory(engine.short_ram, self.sums, engine.results * engine.acc_bits)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        rows = 0 if self.in_lut_ram else engine.rows
        return (*[self.row_memory(engine)] * rows, self.sum_memory(engine))

    def luts(self, engine: EngineSizes, device: Device) -> float:
        cells = -(-self.words // LUT_RAM_WORDS) * engine.weight_bits / LUT_RAM_BITS
        chosen = (
            device.family.lut_ram_luts(cells) * self.in_lut_ram
            + 2.0 * engine.results * engine.acc_bits
        )
        if self.behind is None:
            chosen += engine.weight_bits
        if self.turns and self.keeps:
            # Those of a row and a lane of the same number are the same either way.
            both = self.writes_lanes(engine)
            chosen += engine.lanes * engine.word_bits - both * engine.word_bits
        if self.keeps:
            chosen += engine.word_bits
        return _LUTS + chosen + 2 * engine.rows

    def flip_flops(self, engine: EngineSizes) -> float:
        kept = engine.lanes * engine.word_bits * self.turns + engine.word_bits * self.keeps
        kept *= not self.writes_lanes(engine)
        kept += engine.weight_bits * self.in_lut_ram
        return kept + engine.rows + engine.results * engine.acc_bits + _LUTS


@dataclass(frozen=True, kw_only=True)
class KeptMatrices(Matrices):
    """Matrices of which some stay from frame to frame: an integer tells the row that is written."""

    label = "matrices that stay"
    says = (Placing,)

    @property
    def records(self) -> Sequence[type[Record]]:
        return (*Matrices.says, *self.says)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.in_lut_ram:
            raise ValueError("Engine matrices that stay are not in LUT RAM")

    def row_memory(self, engine: EngineSizes) -> Tiling:
        depth = self.words + (self.behind or 0)
        return tile_parts(engine.ram, depth, engine.word_bits, CODE_BITS)

    def writes_lanes(self, engine: EngineSizes) -> bool:
        return True

    def luts(self, engine: EngineSizes, device: Device) -> float:
        # The place is shifted and added to the address of a word of weights and to that of a row.
        return super().luts(engine, device) + 3.0 * engine.write_bits + 2 * engine.lanes
