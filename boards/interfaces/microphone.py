"""The base of all microphones: a front end reads the samples, and nothing waits."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from nnef_hw.boards.interfaces.interface import FarEnd, Feed, Option
from nnef_hw.boards.interfaces.sampled import SampledSource
from nnef_hw.errors import TargetError, UsageError

__all__ = ["Microphone"]


@dataclass(frozen=True)
class Microphone(SampledSource):
    """A microphone, whose clock the board makes.

    Attributes
    ----------
    protocol
        What its wires are called.
    least_cycles
        Clock cycles of half a period of its clock, at least: data passes two registers.

    Raises
    ------
    UsageError
        If the rate is not positive.
    """

    channel_names = ("samples",)
    medium = "sound"
    sensor_title = "microphone"
    has_spectrum = True
    options = (Option("rate", int, "samples per second, where the network does not say it"),)
    protocol: ClassVar[str]
    least_cycles: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not self.rate > 0:
            raise UsageError(f"a microphone has a positive rate, not {self.rate:g}")

    @classmethod
    def of(cls, feed: Feed, **options: Any) -> Self:
        """Return the microphone of an input of audio, which decides the rate if it can.

        Raises
        ------
        TargetError
            If the input is none of audio.
        UsageError
            If neither the input nor an option says the rate, or they say different ones.
        """
        rate = options.get("rate")
        if feed.rate is None and not feed.hears:
            raise TargetError(
                f"source {cls.name} gives samples of audio, and no front end reads input "
                f"{feed.name!r}", remedy="put a front end before the network: --front FILE.toml")
        if feed.rate is None and rate is None:
            raise UsageError(
                f"the network does not say how many samples per second input {feed.name!r} takes",
                remedy=f"give the rate that it was trained on: --source {cls.name}:rate=16000")
        if None not in (feed.rate, rate) and feed.rate != rate:
            raise UsageError(
                f"input {feed.name!r} takes {feed.rate:,} samples per second, not {rate:,}",
                remedy=f"omit the rate: --source {cls.name}")
        return cls(feed.name, rate if feed.rate is None else feed.rate, feed.codes)

    @property
    @abstractmethod
    def clocks(self) -> int:
        """Periods of its clock for each sample."""

    @property
    def least_clock(self) -> int:
        """Clock of the board in Hz, at least."""
        return 2 * self.clocks * self.rate * self.least_cycles

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock that is too slow."""
        if clk_hz < self.least_clock:
            raise TargetError(
                f"{self.protocol} at {self.rate:,} samples per second needs a clock of "
                f"{self.least_clock / 1e6:g} MHz, not {clk_hz / 1e6:g}",
                remedy=f"give --freq {self.least_clock / 1e6:g} or more")

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        halves = Fraction(2 * self.clocks * self.rate, clk_hz)
        return {"edges": halves.numerator, "cycles": halves.denominator, "frame": self.frame}

    @abstractmethod
    def far_end(self, clk_hz: float) -> FarEnd:
        """Return a microphone that plays its arguments (:meth:`.played`), then silence."""
