"""The sequencer of a shared engine: loops, and the places of every word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.parts.engine.feature import Feature, in_fields
from nnef_hw.parts.engine.fields import Record, fact

__all__ = [
    "Divided", "Doing", "Following", "OperandPlaces", "PixelPlace", "ReadPlace", "Sequencer",
    "WritePlace",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Doing(Record):
    """Activity of an instruction."""

    kind: int = fact(
        "0: load a tensor; 1: run a layer, or a part of one; 2: send a tensor; 3: send one through "
        "a unit, and load what comes back",
        bits=2,
    )


@dataclass(frozen=True, kw_only=True)
class ReadPlace(Record):
    """Where an instruction begins to read."""

    read: int = fact("first word that is read; or code, of engines that read single ones",
                     wraps=True)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WritePlace(Record):
    """Where an instruction begins to write."""

    write: int = fact("first word that is written", wraps=True)


@dataclass(frozen=True, kw_only=True)
class OperandPlaces(Record):
    """Where weights and constants of a layer begin."""

    weight: int = fact("first word of weights; a stream's begin where they came to", wraps=True)
    constant: int = fact("first biases and factors; a stream's begin where they came to",
                         wraps=True)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class PixelPlace(Record):
    """The pixel that a layer reads first."""

    y: int = fact("row of the first pixel", wraps=True)
    x: int = fact("column of the first pixel", wraps=True)


@dataclass(frozen=True, kw_only=True)
class Following(Record):
    """Whether an instruction goes on with the layer of the one before."""

    follows: int = fact("it goes on with a layer, for whose results it need not wait", bits=1,
                        first=True)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sequencer(Feature):
    """Reads the program, counts loops, gives words their addresses.

    Parameters
    ----------
    count
        Width of a loop's count.
    places
        Widths of the places of a word, by the names of quantities.
    steps
        Widths of what a loop adds to these: as wide, or signed numbers of fewer bits.
    """

    label = "sequencer"
    component = "nnef_hw.rtl.engine.sequencer:EngineSequencer"
    says = (Doing, ReadPlace, WritePlace, OperandPlaces, PixelPlace)

    count: int = in_fields()
    places: Mapping[str, int] = in_fields()
    steps: Mapping[str, int] = in_fields()

    def widths(self, engine: object) -> Mapping[str, int]:
        return self.places

    @property
    def loop_widths(self) -> Mapping[str, int]:
        """Widths of the fields of a row that belongs to a loop."""
        return {"count": self.count, **{f"{name}_step": x for name, x in self.steps.items()}}


@dataclass(frozen=True, kw_only=True)
class Divided(Feature):
    """Layers may be several instructions, which need not wait for each other's results."""

    label = "layers in parts"
    says = (Following,)
