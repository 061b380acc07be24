"""Where a program is kept that comes as a stream: SPI flash beside the FPGA."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from nnef_hw.boards.board import Board
from nnef_hw.devices import Target
from nnef_hw.memories import FLASH_CHIPS, FlashChip, FlashRead
from nnef_hw.parts.flash_reader import FlashReader

__all__ = ["FlashStore"]


@dataclass(frozen=True, kw_only=True)
class FlashStore:
    """Flash of a board, and how it is read.

    Parameters
    ----------
    chips, any_chip, lines
        What the board has (:class:`.SpiFlash`).
    address
        First byte of the image.
    read, clock_mhz
        Command, and clock of the flash while it is read.
    """

    chips: tuple[FlashChip, ...]
    any_chip: bool
    lines: int
    address: int
    read: FlashRead
    clock_mhz: float

    @classmethod
    def ways(cls, target: Target, clock_mhz: float) -> Iterator[FlashStore]:
        """Yield the ways to read a target's flash: at one edge of the clock, then at both."""
        flash = target.spi_flash if isinstance(target, Board) else None
        if flash is None:
            return
        reads = [flash.best_read(clock_mhz, ddr=ddr) for ddr in (False, True)]
        for read in dict.fromkeys(reads):
            if read is not None:
                yield cls(
                    chips=flash.chips, any_chip=flash.any_chip, lines=flash.lines,
                    address=flash.image_address, read=read, clock_mhz=clock_mhz,
                )  # fmt: skip

    def reader(self, words: int) -> FlashReader:
        """Return the reader of an image of so many words of 16 bits."""
        return FlashReader(
            chips=self.chips, any_chip=self.any_chip, read=self.read, clock_mhz=self.clock_mhz,
            base=self.address, words=words,
        )  # fmt: skip

    def fits(self, words: int) -> bool:
        """Whether such an image is within the chip and 24 bits of address."""
        size = min(chip.megabits for chip in self.chips) << 17
        return self.address + 2 * words <= min(size, 1 << 24)

    def to_json(self) -> dict[str, Any]:
        """Return what :meth:`from_json` takes back."""
        return {
            "kind": "SPI flash", "chips": [chip.name for chip in self.chips],
            "any_chip": self.any_chip, "lines": self.lines, "address": self.address,
            "read": self.read.name, "clock_mhz": self.clock_mhz,
        }  # fmt: skip

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> FlashStore:
        """Restore it from a plan.

        Raises
        ------
        LookupError, TypeError
            If it is none.
        """
        known = {chip.name: chip for chip in FLASH_CHIPS}
        chips = tuple(known[name] for name in value["chips"])
        reads = {read.name: read for read in chips[0].reads}
        fields = {name: value[name] for name in ("any_chip", "lines", "address", "clock_mhz")}
        return cls(chips=chips, read=reads[value["read"]], **fields)
