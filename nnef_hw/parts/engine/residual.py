"""Sums of two tensors in a shared engine: another one's codes are added as its own are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling, tile_memory
from nnef_hw.parts.engine.feature import EngineSizes, Feature, in_fields, trained
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = [
    "RESIDUAL_CYCLES", "AddedFactors", "AddedLimits", "AddedPlace", "SharedBank", "Sharing",
    "TensorSums",
]  # fmt: skip

RESIDUAL_CYCLES = (8, 4)
"""Cycles per code of sums of two tensors that are made bit by bit."""
_LUTS = 5.4
"""Per bit of a code and of the factor: two products, their sum, registers between."""
_SERIAL_LUTS = 60
"""Of sums bit by bit, besides their factors and the word that is added."""


@dataclass(frozen=True, kw_only=True)
class AddedPlace(Record):
    """Where the other tensor is."""

    other: int = fact(
        "words from the one that is written to the one that is added", late=True, wraps=True,
        constant=True,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AddedFactors(Record):
    """Factors of both codes, and the number added."""

    own_factor: int = fact(
        "factor of the layer's own codes", late=True, signed=True, constant=True, trained=True
    )
    other_factor: int = fact(
        "factor of the other codes", late=True, signed=True, constant=True, trained=True
    )
    offset: int = fact(
        "what is added to both products", late=True, signed=True, constant=True, trained=True
    )


@dataclass(frozen=True, kw_only=True)
class AddedLimits(Record):
    """Limits of the codes of a sum."""

    sum_low: int = fact("the least code of a sum", bits=CODE_BITS, late=True, constant=True)
    sum_high: int = fact("the greatest code of a sum", bits=CODE_BITS, late=True, constant=True)


@dataclass(frozen=True, kw_only=True)
class Sharing(Record):
    """Whether the other tensor is where the array reads."""

    shares: int = fact("what is added is in the memory or bank that is read", bits=1, late=True)


@dataclass(frozen=True, kw_only=True)
class TensorSums(Feature):
    """Adds codes of another tensor to those that leave the requantizer.

    Parameters
    ----------
    bits, shift
        Width of the signed factors of both codes, and the shift behind.
    cycles
        Cycles per result: 1; or 4 or 8, where sums are made bit by bit.
    words
        Depth of the second memory of codes, of which those are read that are added to others; 0 if
        codes are there once, as in single-port RAM.
    offset_bits
        Width of what is added to both products.
    """

    label = "sums of two tensors"
    component = "nnef_hw.rtl.engine.residual:EngineResidual"
    says = (AddedPlace, AddedLimits, AddedFactors)

    bits: int = trained("residual_bits")
    shift: int = trained("residual_shift", most="a shift of {} behind sums of two tensors")
    cycles: int = 1
    words: int = 0
    offset_bits: int = in_fields()

    begin = 4
    """Cycles from a code until its sum is begun, where that is bit by bit.

    The address of the other word, waiting for the memory, the word, its register.
    """

    def __post_init__(self) -> None:
        if self.cycles not in {1, *RESIDUAL_CYCLES}:
            raise ValueError(f"Engine residual cycles cannot be {self.cycles}")

    serial_component: ClassVar[str] = "nnef_hw.rtl.engine.residual:EngineSerialResidual"

    def component_of(self, engine: EngineSizes) -> str:
        return self.serial_component if self.is_serial else self.component

    @property
    def is_serial(self) -> bool:
        """Whether sums are made bit by bit."""
        return self.cycles > 1

    @property
    def bits_per_cycle(self) -> int:
        """Bits of a code that are multiplied per cycle then."""
        return CODE_BITS // self.cycles

    def widths(self, engine: EngineSizes) -> Mapping[str, int]:
        return {
            "other": engine.write_bits, "own_factor": self.bits,
            "other_factor": self.bits, "offset": self.offset_bits,
        }  # fmt: skip

    def other_cycles(self, engine: EngineSizes) -> int:
        """Return the cycles from the address of a word that is added to the word.

        As for codes; but there is no time for any register bit by bit.
        """
        return 1 if self.is_serial else engine.code_cycles

    def sum_delay(self, engine: EngineSizes) -> int:
        """Return the cycles from a code to its sum with another one.

        Memory, choice, products, sum, limits; or, bit by bit, the bits, offset, limits.
        """
        if self.is_serial:
            return self.begin + 1 + self.cycles + 2
        return self.other_cycles(engine) + 4

    def is_in_time(self, engine: EngineSizes) -> bool:
        """Whether the first sum of a word leaves before the next word's code: its place is kept."""
        word = engine.word_bits // CODE_BITS * self.cycles
        return not self.is_serial or word > self.sum_delay(engine)

    def delay(self, engine: EngineSizes, *, adds: bool) -> int:
        return self.sum_delay(engine) if adds else 0

    def is_behind(self, engine: EngineSizes) -> bool:
        return True

    def other_memory(self, engine: EngineSizes) -> Tiling:
        """Return the memory of codes that are added to others, a second time."""
        return tile_memory(engine.ram, self.words, engine.word_bits)

    def place_memory(self, engine: EngineSizes) -> Tiling:
        """Return where addresses to write wait for what is added."""
        return engine.delay_memory(self.sum_delay(engine))

    def memories(self, engine: EngineSizes) -> Sequence[Tiling]:
        others = (self.other_memory(engine),) if self.words else ()
        return others if self.is_serial else (*others, self.place_memory(engine))

    def luts(self, engine: EngineSizes, device: Device) -> float:
        if self.is_serial:
            return _SERIAL_LUTS + 4.0 * self.bits + engine.word_bits
        return _LUTS * CODE_BITS * self.bits * engine.results

    def flip_flops(self, engine: EngineSizes) -> float:
        return 3 * self.sum_delay(engine)


@dataclass(frozen=True, kw_only=True)
class SharedBank(Feature):
    """An operand that is added may be where the array reads, which issues no word for it."""

    label = "sums of tensors where the array reads"
    says = (Sharing,)
