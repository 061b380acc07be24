"""The source imu: a sensor of acceleration and rotation on two wires (I2C)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.boards.interfaces.interface import (
    ChosenSource,
    FarEnd,
    Feed,
    Option,
    far_end_header,
)
from nnef_hw.boards.interfaces.motion import SENSORS, MotionSensor
from nnef_hw.boards.interfaces.motion.sensor import FACTOR_BITS, NUMBER_BITS
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError, UsageError

__all__ = ["Imu"]

_BUS_HZ = 400_000
_WAIT = 16384
"""Quarters of a bit before the first register, and until a silent sensor is asked anew: 10 ms."""
_LEAST_QUARTER = 8
"""Cycles of a quarter of a bit, at least: the level of a wire comes a few cycles later."""


@dataclass(frozen=True)
class Imu(ChosenSource):
    """A sensor of motion, which the board reads at a rate of its own.

    A number of the network is a share of the full scale, -1 to 1: acceleration along x, y and z,
    and with six channels the rotation around these.

    Parameters
    ----------
    input
        Input of the network that it feeds.
    frame
        Codes of a frame.
    channels
        Numbers of an instant: 3, or 6 with the rotation.
    bits, signed, zero_point, scale
        Format of a code.
    rate
        Instants per second.
    sensor
        Name of the sensor.
    acceleration, rotation
        Full scales, in g and in degrees per second.

    Raises
    ------
    UsageError
        If there is no such sensor, rate or full scale.
    """

    input: str
    frame: int
    channels: int
    bits: int = 8
    signed: bool = True
    zero_point: int = 0
    scale: float = 2.0**-7
    rate: int = 100
    sensor: str = SENSORS[0].name
    acceleration: int = 2
    rotation: int = 250

    name = "imu"
    waits = False
    options = (
        Option("rate", int, "instants per second (100)"),
        Option("sensor", str, f"{' or '.join(x.name for x in SENSORS)} ({SENSORS[0].name})"),
        Option("acceleration", int, "full scale of the acceleration in g (2)"),
        Option("rotation", int, "full scale of the rotation in degrees per second (250)"),
    )
    board_pins = {
        "imu_scl": Direction.OUTPUT, "imu_sda": Direction.BOTH, "imu_error": Direction.OUTPUT,
    }
    lut = 420
    bram = 1
    hardware = "nnef_hw.boards.hardware.motion.receiver:MotionReceiver"

    def __post_init__(self) -> None:
        known = {sensor.name for sensor in SENSORS}
        if self.sensor not in known:
            raise UsageError(f"source {self.name} knows no sensor {self.sensor!r}",
                             remedy=f"its sensors are {', '.join(sorted(known))}")
        found = self.model
        if not 0 < self.rate <= found.most_rate:
            raise UsageError(f"{found.title} gives 1 to {found.most_rate:,} instants per second, "
                             f"not {self.rate:,}", remedy="give another rate")
        for what, scales in (("acceleration", found.accelerations), ("rotation", found.rotations)):
            if (value := getattr(self, what)) not in scales:
                raise UsageError(f"{found.title} has no full scale of {value} for its {what}",
                                 remedy=f"give {what}={' or '.join(map(str, scales))}")

    @classmethod
    def of(cls, feed: Feed, **options: Any) -> "Imu":
        """Return the sensor of an input whose channels are those of an instant.

        Raises
        ------
        TargetError
            If the input has another number of channels, or codes that no factor leads to.
        """
        channels = feed.picture[0] if feed.picture else 0
        where = f"source {cls.name} cannot feed input {feed.name!r}"
        if channels not in (3, 6):
            shape = "x".join(map(str, feed.shape))
            raise TargetError(
                f"{where}: a sensor of motion gives 3 numbers per instant, or 6 with the rotation, "
                f"and its shape is {shape}",
                remedy="give the network an input of [1, 3, ...] or [1, 6, ...], time behind it")
        if feed.qtype is None:
            return cls(feed.name, feed.codes, channels, **options)
        q = feed.qtype
        found = cls(feed.name, feed.codes, channels, q.bits, q.signed, q.zero_point, q.scale,
                    **options)
        if q.bits > NUMBER_BITS or found.shift < 1:
            raise TargetError(f"{where}: its codes have steps of {q.scale:g}, and a number of "
                              f"{found.model.title} has steps of {2.0 ** (1 - NUMBER_BITS):g}",
                              remedy="give the input 8 bits")
        return found

    @property
    def model(self) -> MotionSensor:
        """The sensor."""
        [found] = [sensor for sensor in SENSORS if sensor.name == self.sensor]
        return found

    @property
    def given(self) -> Mapping[str, object]:
        return {option.name: getattr(self, option.name) for option in self.options}

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {name: PinUse(direction) for name, direction in self.board_pins.items()}

    @property
    def frames_per_second(self) -> float:
        return self.rate * self.channels / self.frame

    def check_interval(self, cycles: int, clk_hz: int) -> None:
        """Refuse an accelerator that takes so many cycles for a frame, if frames come faster."""
        most = int(clk_hz / self.frames_per_second)
        if cycles > most:
            raise TargetError(
                f"{self.title} gives {self.frame // self.channels} instants every {most:,} cycles "
                f"at {clk_hz / 1e6:g} MHz, and the network takes {cycles:,} for them",
                remedy=f"omit --target-fps, or give {self.frames_per_second:g}, a faster --freq, a "
                "smaller rate, or a board with more multipliers")

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock of which a quarter of a bit, or a reading, has too few cycles."""
        least = _BUS_HZ * _LEAST_QUARTER
        if clk_hz < least:
            raise TargetError(
                f"two wires of {_BUS_HZ // 1000} kHz need a clock of {least / 1e6:g} MHz, not "
                f"{clk_hz / 1e6:g}", remedy=f"give --freq {least / 1e6:g} or more")

    @property
    def shift(self) -> int:
        """Bits behind the factor, as many as it has room for."""
        step = 2.0 ** (1 - NUMBER_BITS) / self.scale
        shift = FACTOR_BITS
        while round(step * 2.0**shift) >= 1 << FACTOR_BITS:
            shift -= 1
        while round(step * 2.0 ** (shift + 1)) < 1 << FACTOR_BITS:
            shift += 1
        return shift

    @property
    def factor(self) -> int:
        """Factor by which a number becomes a code, with :attr:`shift` bits below 1."""
        return round(2.0 ** (1 - NUMBER_BITS + self.shift) / self.scale)

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        model, halves = self.model, Fraction(2 * self.rate, clk_hz)
        kept = model.acceleration + (model.rotation if self.channels > 3 else ())
        return {
            "frame": self.frame, "address": model.address,
            "writes": model.writes(self.rate, self.acceleration, self.rotation),
            "register": model.register, "words": model.words if self.channels > 3 else 3,
            "kept": kept, "factor": self.factor, "shift": self.shift,
            "zero_point": self.zero_point, "edges": halves.numerator,
            "cycles": halves.denominator, "quarter": ceil(clk_hz / (4 * _BUS_HZ)), "wait": _WAIT,
        }

    def to_json(self) -> dict[str, object]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Imu":
        return cls(**{field.name: entry[field.name] for field in fields(cls)})

    def codes(self, numbers: IntArray) -> IntArray:
        """Return the codes of numbers of 16 bits, as the hardware makes them."""
        low = -(1 << self.bits - 1) if self.signed else 0
        half = 1 << self.shift - 1
        found = (np.asarray(numbers, np.int64) * self.factor + half >> self.shift) + self.zero_point
        return np.clip(found, low, low + (1 << self.bits) - 1)

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return a sensor that does not move, see :meth:`moves`."""
        del clk_hz
        return FarEnd(far_end_header("imu"), "ImuFarEnd", self.moves(np.zeros((0, 7), int)))

    def moves(self, instants: IntArray) -> list[float]:
        """Return the arguments of a far end with numbers [instants, words], then zeros."""
        model = self.model
        return [model.address, model.register, model.words, *map(float, np.ravel(instants))]
