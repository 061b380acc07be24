"""The sources spi_adc and mcp3201: a microphone behind a converter of 12 bits with SPI."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.boards.interfaces.interface import FarEnd, far_end_header
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.boards.interfaces.pins import Direction

__all__ = ["CODE_BITS", "WORD_BITS", "Mcp3201", "SpiAdc"]

WORD_BITS = 16
"""Bits of a transfer."""
CODE_BITS = 12
CUT_BITS = 16 - CODE_BITS
"""Bits of a sample that no code has: they are 0."""


@dataclass(frozen=True)
class SpiAdc(Microphone):
    """A microphone behind an ADCS7476 (PmodMIC3): four bits of 0, then 12 of a sample.

    The middle of its range is a sample of 0. Half of the time between two samples is a transfer.
    """

    name = "spi_adc"
    protocol = "SPI"
    board_pins = {"adc_cs_n": Direction.OUTPUT, "adc_sck": Direction.OUTPUT,
                  "adc_data": Direction.INPUT}
    lut = 130
    bram = 1
    hardware = "nnef_hw.boards.hardware.microphones.spi_adc:SpiAdcReceiver"
    clocks = 2 * WORD_BITS
    leading: ClassVar[int] = 4
    """Bits before the first one of a code."""

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {**super().parameters(clk_hz), "leading": self.leading}

    def far_end(self, clk_hz: float) -> FarEnd:
        return FarEnd(far_end_header("spi_adc"), f"SpiAdcFarEnd<{self.leading}>")

    def played(self, samples: IntArray) -> IntArray:
        """Return the codes of a sound."""
        return (np.ravel(samples) >> CUT_BITS) + (1 << CODE_BITS - 1)

    def heard(self, samples: IntArray) -> IntArray:
        return np.ravel(samples) >> CUT_BITS << CUT_BITS


@dataclass(frozen=True)
class Mcp3201(SpiAdc):
    """A microphone behind an MCP3201: three bits, then 12 of a sample, and one that counts not."""

    name = "mcp3201"
    leading = 3
