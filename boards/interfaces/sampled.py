"""The base of all sensors that give samples at a steady rate: microphones, sensors of motion."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray
from nnef_hw.boards.interfaces.interface import ChosenSource
from nnef_hw.boards.interfaces.pins import PinUse
from nnef_hw.errors import TargetError

__all__ = ["SampledSource"]


@dataclass(frozen=True)
class SampledSource(ChosenSource):
    """A sensor that gives samples at a steady rate, and waits for nobody.

    Parameters
    ----------
    input
        Input of the network that it feeds.
    rate
        Samples per second.
    frame
        Codes of a frame of the network: one for each number of a sample.

    Attributes
    ----------
    medium, sensor_title
        Names of what it takes up, and of the sensor, in messages.
    has_spectrum
        Whether a spectrogram says something of its samples.
    """

    input: str
    rate: int
    frame: int

    medium: ClassVar[str]
    sensor_title: ClassVar[str]
    has_spectrum: ClassVar[bool] = False
    waits = False

    @property
    @abstractmethod
    def channel_names(self) -> Sequence[str]:
        """Names of the channels, for users: a sample has a number of 16 bits for each."""

    @property
    def channels(self) -> int:
        """Numbers of a sample."""
        return len(self.channel_names)

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {name: PinUse(direction) for name, direction in self.board_pins.items()}

    @property
    def samples(self) -> int:
        """Samples of a frame of the network."""
        return self.frame // self.channels

    @property
    def frames_per_second(self) -> float:
        """Frames that it gives per second: a plan has to be as fast."""
        return self.rate / self.samples

    def check_interval(self, cycles: int, clk_hz: int) -> None:
        """Refuse an accelerator that takes so many cycles for a frame, if frames come faster."""
        most = clk_hz * self.samples // self.rate
        if cycles > most:
            raise TargetError(
                f"{self.title} gives {self.samples} samples every {most:,} cycles at "
                f"{clk_hz / 1e6:g} MHz, and the network takes {cycles:,} for them",
                remedy="omit --target-fps, so that the source says it, or give "
                f"{self.frames_per_second:g}, a faster --freq, or a board with more multipliers")

    def to_json(self) -> dict[str, object]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        return cls(**{field.name: entry[field.name] for field in fields(cls)})

    @abstractmethod
    def played(self, samples: IntArray) -> ArrayLike:
        """Return the arguments by which a simulated one gives samples.

        Parameters
        ----------
        samples
            Numbers [N, channels] of 16 bits, or [N] of one channel.
        """

    @abstractmethod
    def heard(self, samples: IntArray) -> IntArray:
        """Return the codes [M, channels] that a network gets of them, from power-on.

        Parameters
        ----------
        samples
            Numbers [N, channels] of 16 bits. Those of one channel are [N], and the codes [M].
        """

    def playing_cycles(self, steps: int, clk_hz: float) -> float:
        """Return the cycles from power-on in which so many frames are heard, and no further one."""
        # a frame's last sample comes a little after its time: until the next frame, less some
        return (steps + 0.9) * clk_hz / self.frames_per_second

    def frame_ends(self, reported: bytes, steps: int, clk_hz: float) -> FloatArray:
        """Return the cycle in which the last sample of each frame came.

        Parameters
        ----------
        reported
            Bytes of the simulated sensor.
        steps
            Frames.
        clk_hz
            Clock of the board in Hz.

        Raises
        ------
        CheckError
            If the board has not taken so many.
        """
        del reported
        return np.arange(1, steps + 1) * clk_hz / self.frames_per_second
