"""The link text_line: a UART that carries texts of a language model, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nnef_hw.boards.interfaces.uart import Uart

__all__ = ["TextLine"]


@dataclass(frozen=True)
class TextLine(Uart):
    """Texts of a token loop without packets, frames, counters or replay.

    docs/protocol.md, section 9, has its bytes. It takes a quarter of the LUTs of packets.
    """

    name = "text_line"
    core = "nnef_hw.boards.hardware.texts.core:TextCore"
    has_packets = False
    merges_frames = False
    needs_loop = True
    lacks = ("--sink", "--source", "--layer-counters", "--batch")
    usage = "nnef-hw generate"
    luts = 190
    """LUTs that are set aside for it, with clock and reset; those of the loop come on top."""

    def budget(self, lut: int, bram: int) -> tuple[int, int]:
        return self.luts, 0

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "TextLine":
        """Return the link of an entry."""
        return cls(baud=entry["baud"])
