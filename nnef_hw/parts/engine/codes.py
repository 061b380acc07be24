"""The memory of codes of a shared engine, and the packets of a program that may stay there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import SinglePortRam, Tiling, tile_memory
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.program import BEAT_BITS

__all__ = ["Bank", "Codes", "Residents"]

_RESIDENT_LUTS = 260
"""Of what keeps packets in the memory of codes and reads them there."""


@dataclass(frozen=True, kw_only=True)
class Bank(Record):
    """Bank in which an instruction leaves no time to read packets."""

    bank: int = fact("bank of codes that is read, or written by a load", bits=1)


@dataclass(frozen=True, kw_only=True)
class Codes(Feature):
    """The memory of activations.

    Parameters
    ----------
    words
        Its depth.
    single_port
        The single-port RAM of two banks, each of half the words; None if it is block RAM.
    """

    label = "memory of codes"
    component = "nnef_hw.rtl.engine.codes:EngineCodes"

    words: int
    single_port: SinglePortRam | None = None

    def memory(self, engine: EngineSizes) -> Tiling:
        """Return the memory, in block RAM."""
        return tile_memory(engine.ram, self.words, engine.word_bits)

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        return () if self.single_port else (self.memory(engine),)

    def spram(self, engine: EngineSizes) -> int:
        """Return the number of single-port RAMs."""
        return 2 * engine.word_bits // self.single_port.width if self.single_port else 0


@dataclass(frozen=True, kw_only=True)
class Residents(Feature):
    """Packets of a program that comes as a stream may stay in the banks of codes."""

    label = "packets that stay on the chip"
    component = "nnef_hw.rtl.engine.resident:EngineResident"
    says = (Bank,)

    @staticmethod
    def fits(engine: EngineSizes) -> bool:
        """Whether a word of codes is two beats of the program, as the component needs it."""
        return engine.word_bits == 2 * BEAT_BITS

    def luts(self, engine: EngineSizes, device: Device) -> float:
        return _RESIDENT_LUTS
