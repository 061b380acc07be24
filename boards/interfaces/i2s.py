"""The source I2S: a microphone whose clocks the board makes."""

from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.boards.interfaces.interface import FarEnd, far_end_header
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.boards.interfaces.pins import Direction

__all__ = ["FRAME_BITS", "LEAST_CYCLES", "I2s"]

FRAME_BITS = 64
"""Bits of a frame: two slots of 32."""
LEAST_CYCLES = Microphone.least_cycles
LEAD = 1
"""Samples of silence that the receiver takes before the microphone's first one."""


@dataclass(frozen=True)
class I2s(Microphone):
    """A microphone with I2S, which gets its clocks from the board: left channel, 16 of its bits.

    INMP441, ICS-43434 and SPH0645 give 24 bits in a slot of 32, of which the upper 16 are taken.
    """

    name = "i2s"
    protocol = "I2S"
    board_pins = {"i2s_bclk": Direction.OUTPUT, "i2s_ws": Direction.OUTPUT,
                  "i2s_data": Direction.INPUT}
    lut = 120
    bram = 1
    hardware = "nnef_hw.boards.hardware.microphones.i2s:I2sReceiver"
    clocks = FRAME_BITS

    def far_end(self, clk_hz: float) -> FarEnd:
        return FarEnd(far_end_header("i2s"), "I2sFarEnd")

    def played(self, samples: IntArray) -> IntArray:
        return np.ravel(samples)

    def heard(self, samples: IntArray) -> IntArray:
        return np.concatenate([np.zeros(LEAD, np.int64), np.ravel(samples)])
