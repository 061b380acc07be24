"""Sizes of readers of memories beside the FPGA; tests/rtl/readers runs them with their chips."""

from __future__ import annotations

from examples.example import Example, Measured
from nnef_hw import parts
from nnef_hw.hardware.memories.flash import QUAD_IO, QUAD_IO_DDR, READ, find_flash
from nnef_hw.hardware.memories.sdram import GW2AR_SDRAM, SDRAM_256_MBIT

__all__ = ["MEASURED"]

DDR_FLASH = 0xEF7018
FLASH_READERS = [
    (READ, 24.0, 1000), (READ, 36.0, 120_000), (QUAD_IO, 12.0, 500), (QUAD_IO, 36.0, 120_000),
    (QUAD_IO, 48.0, 40_000), (QUAD_IO_DDR, 24.0, 5000), (QUAD_IO_DDR, 48.0, 120_000),
]  # fmt: skip
SDRAM_READERS = [
    (SDRAM_256_MBIT, 90.0, 1 << 18), (SDRAM_256_MBIT, 60.0, 4096), (SDRAM_256_MBIT, 25.0, 1024),
    (GW2AR_SDRAM, 60.75, 1 << 17),
]  # fmt: skip


def flash_readers(device):
    del device
    chips = (find_flash(DDR_FLASH),)
    for read, clock_mhz, words in FLASH_READERS:
        part = parts.FlashReader(
            chips=chips, read=read, clock_mhz=clock_mhz, base=0x30000, words=words
        )
        yield Example(part=part)


def sdram_readers(device):
    for chip, clock_mhz, words in SDRAM_READERS:
        part = parts.SdramReader(chip=chip, clock_mhz=clock_mhz, words=words, ram=device.ram)
        yield Example(part=part)


MEASURED: Measured = {"flash reader": flash_readers, "sdram reader": sdram_readers}
