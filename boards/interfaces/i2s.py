"""The source I2S: a microphone whose clocks the board makes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from nnef_hw.boards.interfaces.interface import ChosenSource, FarEnd, Feed
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError, UsageError

__all__ = ["FRAME_BITS", "LEAST_CYCLES", "I2s"]

FRAME_BITS = 64
"""Bits of a frame: two slots of 32."""
LEAST_CYCLES = 2
"""Clock cycles of half a bit, at least: data passes two registers."""


@dataclass(frozen=True)
class I2s(ChosenSource):
    """A microphone with I2S, which gets its clocks from the board: left channel, 16 of its bits.

    INMP441, ICS-43434 and SPH0645 give 24 bits in a slot of 32, of which the upper 16 are taken.

    Parameters
    ----------
    input
        Input of the network that it feeds.
    rate
        Samples per second.
    frame
        Samples of a frame of the network.

    Raises
    ------
    UsageError
        If the rate is not positive.
    """

    input: str
    rate: int
    frame: int

    name = "i2s"
    waits = False
    board_pins = {"i2s_bclk": Direction.OUTPUT, "i2s_ws": Direction.OUTPUT,
                  "i2s_data": Direction.INPUT}
    lut = 120
    hardware = "nnef_hw.boards.hardware.i2s:I2sReceiver"

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise UsageError(f"a microphone has a positive rate, not {self.rate:g}")

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {name: PinUse(direction) for name, direction in self.board_pins.items()}

    @classmethod
    def of(cls, feed: Feed) -> "I2s":
        """Return the microphone of an input of audio, which decides the rate.

        Raises
        ------
        TargetError
            If the input is none of audio.
        """
        if feed.rate is None:
            raise TargetError(
                f"source {cls.name} gives samples of audio, and no front end reads input "
                f"{feed.name!r}", remedy="put a front end before the network: --front FILE.toml")
        return cls(feed.name, feed.rate, feed.codes)

    @property
    def frames_per_second(self) -> float:
        """Frames that it gives per second: a plan has to be as fast."""
        return self.rate / self.frame

    def check_interval(self, cycles: int, clk_hz: int) -> None:
        """Refuse an accelerator that takes so many cycles for a frame, if frames come faster."""
        most = clk_hz * self.frame // self.rate
        if cycles > most:
            raise TargetError(
                f"{self.title} gives {self.frame} samples every {most:,} cycles at "
                f"{clk_hz / 1e6:g} MHz, and the network takes {cycles:,} for them",
                remedy="omit --target-fps, so that the microphone says it, or give "
                f"{self.frames_per_second:g}, a faster --freq, or a board with more multipliers")

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock that is too slow."""
        least = 2 * FRAME_BITS * self.rate * LEAST_CYCLES
        if clk_hz < least:
            raise TargetError(
                f"I2S at {self.rate:,} samples per second needs a clock of {least / 1e6:g} MHz, "
                f"not {clk_hz / 1e6:g}", remedy=f"give --freq {least / 1e6:g} or more")

    def parameters(self, clk_hz: int) -> Mapping[str, Any]:
        half_bits = Fraction(2 * FRAME_BITS * self.rate, clk_hz)
        return {"edges": half_bits.numerator, "cycles": half_bits.denominator, "frame": self.frame}

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "I2s":
        return cls(**{name: entry[name] for name in ("input", "rate", "frame")})

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return a microphone that plays its arguments, samples of 16 bits, then silence."""
        return FarEnd(Path(__file__).with_suffix(".h"), "I2sFarEnd")
