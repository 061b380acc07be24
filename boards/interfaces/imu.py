"""The source imu: a sensor of acceleration and rotation on two wires (I2C)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import FloatArray, IntArray
from nnef_hw.boards.interfaces.interface import FarEnd, Feed, Option, far_end_header
from nnef_hw.boards.interfaces.motion import SENSORS, MotionSensor
from nnef_hw.boards.interfaces.motion.sensor import FACTOR_BITS, NUMBER_BITS
from nnef_hw.boards.interfaces.pins import Direction
from nnef_hw.boards.interfaces.sampled import SampledSource
from nnef_hw.errors import CheckError, TargetError, UsageError

__all__ = ["ERROR", "READ", "WRITTEN", "Imu"]

WRITTEN, READ, ERROR = range(3)
"""Sorts of reports of a simulated sensor: a register, the end of a reading, the pin for errors."""
_REPORT = Struct("<Q3B")
_RATE = 100
_NUMBERS = (3, 6)
_CHANNELS = (*(f"acceleration {x}" for x in "xyz"), *(f"rotation {x}" for x in "xyz"))

_BUS_HZ = 400_000
_WAIT = 16384
"""Quarters of a bit before the first register, and until a silent sensor is asked anew: 10 ms."""
_WRITE_QUARTERS = 200
"""Quarters of a bit that a register takes, to write or to look what the sensor is, at most."""
_LEAST_QUARTER = 8
"""Cycles of a quarter of a bit, at least: the level of a wire comes a few cycles later."""


@dataclass(frozen=True)
class Imu(SampledSource):
    """A sensor of motion, which the board reads at a rate of its own.

    A number of the network is a share of the full scale, -1 to 1: acceleration along x, y and z,
    and with six channels the rotation around these.

    Parameters
    ----------
    input, rate, frame
        Those of a :class:`.SampledSource`.
    numbers
        Numbers of a sample: 3, or 6 with the rotation.
    pixel
        Codes that the beats of the input's stream are made of, if these have several.
    bits, signed, zero_point, scale
        Format of a code.
    sensor
        Name of the sensor.
    acceleration, rotation
        Full scales, in g and in degrees per second.

    Raises
    ------
    UsageError
        If there is no such sensor, rate or full scale.
    """

    numbers: int
    pixel: int = 1
    bits: int = 8
    signed: bool = True
    zero_point: int = 0
    scale: float = 2.0**-7
    sensor: str = SENSORS[0].name
    acceleration: int = 2
    rotation: int = 250

    name = "imu"
    medium = "motion"
    sensor_title = "sensor of motion"
    options = (
        Option("rate", int, f"samples per second ({_RATE})"),
        Option("sensor", str, f"{' or '.join(x.name for x in SENSORS)} ({SENSORS[0].name})"),
        Option("acceleration", int, "full scale of the acceleration in g (2)"),
        Option("rotation", int, "full scale of the rotation in degrees per second (250)"),
    )
    board_pins = {
        "imu_scl": Direction.OUTPUT, "imu_sda": Direction.BOTH, "imu_error": Direction.OUTPUT,
    }
    lut = 640
    bram = 1
    hardware = "nnef_hw.boards.hardware.motion.receiver:MotionReceiver"

    def __post_init__(self) -> None:
        known = {sensor.name for sensor in SENSORS}
        if self.sensor not in known:
            raise UsageError(f"source {self.name} knows no sensor {self.sensor!r}",
                             remedy=f"its sensors are {', '.join(sorted(known))}")
        found = self.model
        if not 0 < self.rate <= found.most_rate:
            raise UsageError(f"{found.title} gives 1 to {found.most_rate:,} samples per second, "
                             f"not {self.rate:,}", remedy="give another rate")
        for what, scales in (("acceleration", found.accelerations), ("rotation", found.rotations)):
            if (value := getattr(self, what)) not in scales:
                raise UsageError(f"{found.title} has no full scale of {value} for its {what}",
                                 remedy=f"give {what}={' or '.join(map(str, scales))}")

    @classmethod
    def of(cls, feed: Feed, *, rate: int = _RATE, **options: Any) -> "Imu":
        """Return the sensor of an input, one axis of which has the numbers of a sample.

        Raises
        ------
        TargetError
            If the input has another number of channels, their order is another one, or no factor
            leads to its codes.
        """
        where = f"source {cls.name} cannot feed input {feed.name!r}"
        numbers = _numbers(where, feed)
        pixel = 1 if feed.image is None else feed.image[-1]
        if feed.qtype is None:
            return cls(feed.name, rate, feed.codes, numbers, pixel, **options)
        q = feed.qtype
        if isinstance(q.scale, tuple):
            raise TargetError(f"{where}: its channels have scales of their own",
                              remedy="give it one scale: scale the samples that calibrate")
        found = cls(feed.name, rate, feed.codes, numbers, pixel, q.bits, q.signed, q.zero_point,
                    q.scale, **options)
        if q.bits > NUMBER_BITS or found.shift < 1:
            raise TargetError(f"{where}: its codes have steps of {q.scale:g}, and a number of "
                              f"{found.model.title} has steps of {2.0 ** (1 - NUMBER_BITS):g}",
                              remedy="give the input 8 bits")
        return found

    @property
    def channel_names(self) -> Sequence[str]:
        return _CHANNELS[: self.numbers]

    @property
    def model(self) -> MotionSensor:
        """The sensor."""
        [found] = [sensor for sensor in SENSORS if sensor.name == self.sensor]
        return found

    @property
    def given(self) -> Mapping[str, object]:
        return {option.name: getattr(self, option.name) for option in self.options}

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
        return {
            "frame": self.frame, "pixel": self.pixel, "address": model.address,
            "identity": model.identity,
            "writes": model.writes(self.rate, self.acceleration, self.rotation),
            "register": model.register, "words": self._words,
            "kept": self._kept, "factor": self.factor, "shift": self.shift,
            "zero_point": self.zero_point, "edges": halves.numerator,
            "cycles": halves.denominator, "quarter": self._quarter(clk_hz), "wait": _WAIT,
        }

    def codes(self, numbers: IntArray) -> IntArray:
        """Return the codes of numbers of 16 bits, as the hardware makes them."""
        low = -(1 << self.bits - 1) if self.signed else 0
        half = 1 << self.shift - 1
        found = (np.asarray(numbers, np.int64) * self.factor + half >> self.shift) + self.zero_point
        return np.clip(found, low, low + (1 << self.bits) - 1)

    def heard(self, samples: IntArray) -> IntArray:
        return self.codes(samples)

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return a sensor that does not move, see :meth:`moves`."""
        del clk_hz
        return FarEnd(far_end_header("imu"), "ImuFarEnd", self.moves(np.zeros((0, self.channels))))

    def played(self, samples: IntArray) -> list[float]:
        """Return the arguments of a sensor that is silent after its last sample."""
        return self.moves(samples, readings=len(samples))

    def moves(
        self, samples: ArrayLike, *, readings: float = inf, identity: int | None = None
    ) -> list[float]:
        """Return the arguments of a far end.

        Parameters
        ----------
        samples
            Numbers [N, channels]; those of further samples are 0.
        readings
            Samples after which the sensor acknowledges nothing.
        identity
            Number by which it tells what it is, if not by the right one.
        """
        model = self.model
        number, value = model.identity
        words = np.zeros((len(np.asarray(samples)), self._words))
        words[:, list(self._kept)] = samples
        head = [readings, model.address, number, value if identity is None else identity,
                model.register, self._words]
        return [*map(float, head), *words.ravel().tolist()]

    @staticmethod
    def reported(data: bytes) -> list[tuple[int, int, int, int]]:
        """Return (cycle, sort, register, value) of all that a far end reports: see ``imu.h``."""
        return list(_REPORT.iter_unpack(data))

    def playing_cycles(self, steps: int, clk_hz: float) -> float:
        """Return the cycles in which all is written, and so many frames are heard."""
        model = self.model
        writes = len(model.writes(self.rate, self.acceleration, self.rotation))
        quarters = _WAIT + _WRITE_QUARTERS * (writes + 1)
        return quarters * self._quarter(clk_hz) + super().playing_cycles(steps, clk_hz)

    def frame_ends(self, reported: bytes, steps: int, clk_hz: float) -> FloatArray:
        """Return the cycle in which the last sample of each frame was read."""
        del clk_hz
        read = [cycle for cycle, sort, *_ in self.reported(reported) if sort == READ]
        ends = np.array(read[self.samples - 1 :: self.samples], float)
        if len(ends) < steps:
            raise CheckError(
                f"the board has read {len(read):,} samples of the {steps * self.samples:,} that "
                "the sensor had",
                remedy="please report this with the model: it is a defect of the generated "
                "hardware")
        return ends[:steps]

    @property
    def _words(self) -> int:
        """Numbers that are read."""
        return 1 + max(self._kept)

    @property
    def _kept(self) -> tuple[int, ...]:
        """Which of the numbers that are read are those of a sample."""
        model = self.model
        return (*model.acceleration, *model.rotation)[: self.numbers]

    @staticmethod
    def _quarter(clk_hz: float) -> int:
        """Cycles of a quarter of a bit."""
        return ceil(clk_hz / (4 * _BUS_HZ))


def _numbers(where: str, feed: Feed) -> int:
    """Return the numbers of a sample: those of the first axis that is in the stream's order.

    Raises
    ------
    TargetError
        If there is none.
    """
    long = tuple(extent for extent in feed.shape if extent > 1)
    axes = [axis for axis, extent in enumerate(long) if extent in _NUMBERS and len(long) <= 2]
    shape = "x".join(map(str, feed.shape))
    remedy = "give the network an input of [1, 3, time] or [1, 6, time], or with time ahead"
    if not axes:
        raise TargetError(
            f"{where}: a sensor of motion gives 3 numbers per sample, or 6 with the rotation, and "
            f"its shape is {shape}", remedy=remedy)
    places = np.arange(feed.codes)
    if feed.image is not None:
        height, width, channels = feed.image
        sent = places.reshape(channels, height * width).T.ravel()
        axes = [axis for axis in axes
                if np.array_equal(np.moveaxis(places.reshape(long), axis, -1).ravel(), sent)]
        if not axes:
            raise TargetError(
                f"{where}: its shape is {shape}, and the network does not take the numbers of a "
                "sample one after the other", remedy=remedy)
    return long[axes[0]]
