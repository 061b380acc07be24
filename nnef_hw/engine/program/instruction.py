"""An instruction of an engine's program: typed records of what it says, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from nnef_hw.engine.layers.formats import Image
from nnef_hw.engine.layers.nest import Nest
from nnef_hw.parts.engine.array import ArrayUse
from nnef_hw.parts.engine.border import Sent
from nnef_hw.parts.engine.codes import Bank
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.program import Kind
from nnef_hw.parts.engine.sequencer import OperandPlaces, PixelPlace, ReadPlace, WritePlace

__all__ = ["Instruction", "first_places", "sent_words"]

RecordT = TypeVar("RecordT", bound=Record)


@dataclass(frozen=True)
class Instruction:
    """A step of the program.

    Parameters
    ----------
    kind
        What it does.
    records
        What it says; all other fields are 0.
    nest
        Loops of a layer.
    weights, constants
        Which words of all weights, and which of all constants, it needs.
    weight_rows
        Rows of the array that need weights.
    addressed
        Number of the layer of whose table a row comes as its weights; None if they are its own.
    """

    kind: Kind
    records: tuple[Record, ...]
    nest: Nest | None = None
    weights: range = range(0)
    constants: range = range(0)
    weight_rows: int = 0
    addressed: int | None = None

    def find(self, kind: type[RecordT]) -> RecordT | None:
        """Return the instruction's record of a kind, if there is one."""
        return next((x for x in self.records if isinstance(x, kind)), None)

    @cached_property
    def adds(self) -> bool:
        """Whether another tensor is added to its results."""
        work = self.find(ArrayUse)
        return work is not None and bool(work.adds)

    @cached_property
    def bank(self) -> int:
        """Bank in which the instruction leaves no time to read a program's packets."""
        found = self.find(Bank)
        assert found is not None, "no packet is in a bank"
        return found.bank

    @cached_property
    def values(self) -> Mapping[str, int]:
        """Fields of the instruction by name."""
        own = {"kind": int(self.kind)}
        return own | {name: x for record in self.records for name, x in record.values().items()}


def first_places(nest: Nest) -> Sequence[Record]:
    """Return where the quantities of a layer's first word are."""
    starts = nest.starts
    return [
        ReadPlace(read=starts["read"]), WritePlace(write=starts["write"]),
        OperandPlaces(weight=starts["weight"], constant=starts["constant"]),
        PixelPlace(y=starts["y"], x=starts["x"]),
    ]  # fmt: skip


def sent_words(image: Image, lanes: int, frames: int = 1) -> Sent:
    """Return how words become codes."""
    return Sent(
        pixels=frames * image.pixels - 1, blocks=image.blocks(lanes) - 1,
        last_lanes=(image.channels - 1) % lanes,
    )  # fmt: skip
