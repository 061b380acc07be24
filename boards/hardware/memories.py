"""Memories beside an FPGA, as facts of a board."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from nnef_hw.hardware.memories import FlashChip, FlashRead, SdramChip

__all__ = ["Memory", "Psram", "Sdram", "SpiFlash"]


@dataclass(frozen=True, kw_only=True)
class Memory(ABC):
    """A memory in the FPGA's package or on the board.

    Parameters
    ----------
    resource
        Of the platform; or the ports, as nextpnr knows them, where the platform has none.
    in_package
        It is in the FPGA's package: nextpnr knows its pins by the names of ports, not by places.

    Attributes
    ----------
    kind
        What a user calls it.
    prefix
        Of the names of its pins at a board's top.
    ports
        These pins, without it, by subsignals of the resource; none if there are no pads for it.
    unused
        Further subsignals that the resource may have.
    """

    kind: ClassVar[str]
    prefix: ClassVar[str] = ""
    ports: ClassVar[Mapping[str, str]] = MappingProxyType({})
    unused: ClassVar[Set[str]] = frozenset()

    resource: str
    in_package: bool = False

    @property
    @abstractmethod
    def megabits(self) -> int:
        """Size of the memory."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Bits that it takes or gives at a time."""


@dataclass(frozen=True, kw_only=True)
class Psram(Memory):
    """Pseudo-static RAM; no design can use it yet."""

    kind = "PSRAM"

    megabits: int = 0
    width: int = 0


@dataclass(frozen=True, kw_only=True)
class SpiFlash(Memory):
    """Flash that a design can read, behind the bitstream.

    Parameters
    ----------
    chips
        What batches of the board carry.
    lines
        Data lines, 1 or 4, that are wired and free.
    image_address
        First byte that no bitstream of the board's device reaches.
    any_chip
        Other chips are likely, too: a design should accept every one that answers.
    write_option
        Option of openFPGALoader that writes it: ``-f`` where bitstreams are in it, too.

    Raises
    ------
    ValueError
        If there is no chip, or another number of lines.
    """

    kind = "SPI flash"
    prefix = "flash_"
    ports = MappingProxyType({
        "cs": "cs_n", "clk": "sck", "dq": "dq", "copi": "dq[0]", "cipo": "dq[1]",
    })
    unused = frozenset({"wp", "hold"})

    chips: tuple[FlashChip, ...]
    lines: int
    image_address: int = 0x100000
    any_chip: bool = False
    write_option: str = "-f"

    def __post_init__(self) -> None:
        if not self.chips or self.lines not in {1, 4}:
            raise ValueError(
                f"SpiFlash needs a chip and 1 or 4 lines, not {self.chips} and {self.lines}")

    @property
    def megabits(self) -> int:
        return min(chip.megabits for chip in self.chips)

    @property
    def width(self) -> int:
        return self.lines

    def best_read(self, clock_mhz: float, *, ddr: bool = False) -> FlashRead | None:
        """Return the command with the most data per clock that every chip has, or None.

        Parameters
        ----------
        clock_mhz
            Clock of the flash.
        ddr
            Whether it may use both edges of the clock.
        """
        both = ddr and all(chip.knows_ddr for chip in self.chips)
        return self.chips[0].best_read(self.lines, clock_mhz, ddr=both)


@dataclass(frozen=True, kw_only=True)
class Sdram(Memory):
    """SDRAM that a design can read and write.

    Parameters
    ----------
    chip
        What it is, or what all batches keep to.
    """

    kind = "SDRAM"
    prefix = "sdram_"
    ports = MappingProxyType({
        "clk": "clk", "clk_en": "cke", "cs": "cs_n", "ras": "ras_n", "cas": "cas_n", "we": "we_n",
        "ba": "ba", "a": "a", "dq": "dq", "dqm": "dqm",
    })

    chip: SdramChip

    @property
    def megabits(self) -> int:
        return self.chip.words * self.chip.width >> 20

    @property
    def width(self) -> int:
        return self.chip.width
