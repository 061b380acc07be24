"""Readers of memories beside the FPGA, to measure."""

from __future__ import annotations

from collections.abc import Iterator

from cases import Case

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.memories.flash import QUAD_IO, QUAD_IO_DDR, READ, find_flash
from nnef_hw.hardware.memories.sdram import GW2AR_SDRAM, SDRAM_256_MBIT
from nnef_hw.parts.readers.flash_reader import FlashReader
from nnef_hw.parts.readers.sdram_reader import SdramReader

__all__ = ["memory_cases"]

DDR_FLASH = 0xEF7018


def memory_cases(device: Device) -> Iterator[Case]:
    """Return all cases, over their parameters."""
    chip = find_flash(DDR_FLASH)
    assert chip is not None
    for read, clock_mhz, words in (
        (READ, 24.0, 1000), (READ, 36.0, 120_000), (QUAD_IO, 12.0, 500), (QUAD_IO, 36.0, 120_000),
        (QUAD_IO, 48.0, 40_000), (QUAD_IO_DDR, 24.0, 5000), (QUAD_IO_DDR, 48.0, 120_000),
    ):  # fmt: skip
        yield Case(
            FlashReader(chips=(chip,), read=read, clock_mhz=clock_mhz, base=0x30000, words=words)
        )
    for sdram, clock_mhz, words in (
        (SDRAM_256_MBIT, 90.0, 1 << 18), (SDRAM_256_MBIT, 60.0, 4096), (SDRAM_256_MBIT, 25.0, 1024),
        (GW2AR_SDRAM, 60.75, 1 << 17),
    ):  # fmt: skip
        yield Case(SdramReader(chip=sdram, clock_mhz=clock_mhz, words=words, ram=device.ram))
