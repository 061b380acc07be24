"""Memory chips beside an FPGA: what their data sheets say, without Amaranth.

A chip is an object of :class:`.FlashChip` or :class:`.SdramChip`; a board says which of them it has
(:mod:`nnef_hw.boards.board`), and the readers of :mod:`nnef_hw.parts` follow their timings.
docs/memories.md tells where every number comes from.
"""

from nnef_hw.hardware.memories.flash import FLASH_CHIPS, FlashChip, FlashRead, find_flash
from nnef_hw.hardware.memories.sdram import SDRAM_CHIPS, SdramChip

__all__ = ["FLASH_CHIPS", "SDRAM_CHIPS", "FlashChip", "FlashRead", "SdramChip", "find_flash"]
