"""Functions of codes in a shared engine, looked up as the codes are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.engine.feature import EngineSizes, Feature, trained
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.program import BEAT_BITS, TABLE_BEATS
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["LookUp", "Tables"]


@dataclass(frozen=True, kw_only=True)
class LookUp(Record):
    """Which function is applied at last."""

    looks_up: int = fact("a function is applied to the codes", bits=1, late=True)
    table: int = fact("which function", late=True)


@dataclass(frozen=True, kw_only=True)
class Tables(Feature):
    """Functions by table, of codes of 8 bits.

    Parameters
    ----------
    count
        How many there are.
    """

    label = "functions by table"
    component = "nnef_hw.rtl.engine.results:EngineTables"
    says = (LookUp,)

    count: int = trained("tables", most="{} functions by table")

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        return {"table": max(1, (self.count - 1).bit_length())}

    @property
    def beats(self) -> int:
        """Beats of all tables of a program that is written."""
        return self.count * TABLE_BEATS

    def memory(self, engine: EngineSizes) -> Tiling:
        """Return the memory of all: entry by entry, or beat by beat if they are written."""
        if engine.is_written:
            return tile_memory(engine.ram, self.beats, BEAT_BITS)
        return tile_memory(engine.ram, self.count << CODE_BITS, CODE_BITS)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        return (self.memory(engine),) * engine.results

    def delay(self, engine: EngineSizes, *, adds: bool) -> int:
        return 1

    def is_behind(self, engine: EngineSizes) -> bool:
        return True
