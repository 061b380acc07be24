"""The source PDM: a microphone that gives one bit at a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.audio.pdm import FACTOR_BITS, TAPS, PdmFilter, modulated
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.boards.interfaces.interface import FarEnd, far_end_header
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.boards.interfaces.pins import Direction
from nnef_hw.errors import UsageError

__all__ = ["FILTER_CYCLES", "LEAST_CYCLES", "Pdm"]

LEAST_CYCLES = Microphone.least_cycles
FILTER_CYCLES = TAPS * FACTOR_BITS + 16
"""Cycles that a sample takes in the filter, at most."""
CLOCKS = 1_000_000, 3_250_000
"""Frequencies that microphones with PDM work with."""
DATA_SECONDS = 100e-9
"""When a bit is there after an edge of the clock, at the latest."""
LEAD = 1
"""Bits of 0 that the receiver takes before the microphone's first one."""


@dataclass(frozen=True)
class Pdm(Microphone):
    """A microphone with PDM, which gets its clock from the board: what it gives while that is low.

    MP34DT01 and SPH0641 do so with their pin for left and right at ground. A sample has 128 bits,
    or as many as their greatest clock allows: 64 or 32.
    """

    name = "pdm"
    protocol = "PDM"
    board_pins = {"pdm_clk": Direction.OUTPUT, "pdm_data": Direction.INPUT}
    lut = 680
    bram = 3
    hardware = "nnef_hw.boards.hardware.microphones.pdm:PdmReceiver"

    def __post_init__(self) -> None:
        super().__post_init__()
        least, most = CLOCKS
        if not least <= self.clocks * self.rate <= most:
            raise UsageError(
                f"microphones with PDM have clocks of {least / 1e6:g} to {most / 1e6:g} MHz, and "
                f"{self.rate:,} samples per second would be {self.clocks * self.rate / 1e6:g} MHz",
                remedy=f"take a front end of {ceil(least / 128):,} to {most // 32:,} samples per "
                "second",
            )

    @property
    def clocks(self) -> int:
        """Periods of its clock for each sample: a bit in each."""
        return next((n for n in (128, 64) if n * self.rate <= CLOCKS[1]), 32)

    @property
    def filter(self) -> PdmFilter:
        """Filter that makes samples of bits."""
        return PdmFilter(self.clocks)

    @property
    def least_clock(self) -> int:
        """Clock of the board in Hz, at least: bits come late, and the filter takes its time."""
        half = 1 / (2 * self.clocks * self.rate)
        return ceil(max(self.least_cycles / (half - DATA_SECONDS), FILTER_CYCLES * self.rate))

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {**super().parameters(clk_hz), "bits": self.clocks}

    def far_end(self, clk_hz: float) -> FarEnd:
        return FarEnd(far_end_header("pdm"), "PdmFarEnd")

    def played(self, samples: IntArray) -> ArrayLike:
        """Return the bits of a sound, 32 of them in each argument."""
        bits = modulated(np.ravel(samples), self.clocks)
        return np.packbits(bits, bitorder="little").view("<u4").astype(np.float64)

    def heard(self, samples: IntArray) -> IntArray:
        bits = np.append(np.zeros(LEAD, np.uint8), modulated(np.ravel(samples), self.clocks))
        return self.filter.apply(bits)
