"""Other work of a shared engine's array than sums: extrema, products of tensors, single codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact

__all__ = [
    "Gather", "Gathering", "Inverting", "Maxima", "Minima", "Multiplying", "Packing", "Products",
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Inverting(Record):
    """Whether codes are inverted before and behind a maximum."""

    inverts: int = fact("the greatest codes are the least ones", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class Multiplying(Record):
    """Whether a pass keeps its first word as weights."""

    multiplies: int = fact("weights of the second word are the codes of the first", bits=1)


@dataclass(frozen=True, kw_only=True)
class Gathering(Record):
    """Whether every word that is read gives one code."""

    gathers: int = fact("every word that is read gives one code", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class Packing(Record):
    """Whether such codes go to one word after the other."""

    packs: int = fact("codes go to one word after the other", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class Maxima(Feature):
    """The greatest code of every lane, in place of its sum."""

    label = "maxima"

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return 5.0 * engine.word_bits


@dataclass(frozen=True, kw_only=True)
class Minima(Feature):
    """Least codes: greatest ones of codes that are inverted."""

    label = "minima"
    says = (Inverting,)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return 2.0 * engine.word_bits


@dataclass(frozen=True, kw_only=True)
class Products(Feature):
    """Products of two tensors: codes that become weights."""

    label = "products of tensors"
    says = (Multiplying,)

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return 2.0 * engine.word_bits


@dataclass(frozen=True, kw_only=True)
class Gather(Feature):
    """Layers of which every word that is read gives one code.

    Parameters
    ----------
    packs
        Whether such codes may go to one word after the other.
    """

    label = "codes that change their places"
    says = (Gathering, Packing)

    packs: bool = False

    @property
    def records(self) -> Sequence[type[Record]]:
        return self.says if self.packs else (Gathering,)

    def fine(self, lanes: int) -> Mapping[str, tuple[str, int]]:
        """Return the codes of a word that is read: lanes."""
        return {"read": ("lane", (lanes - 1).bit_length())}

    def counts_finely(self, records: Sequence[Record]) -> bool:
        return any(isinstance(x, Gathering) and x.gathers for x in records)

    def is_behind(self, engine: EngineSizes) -> bool:
        """Whether codes are collected to words in two ways."""
        return engine.results > 1
