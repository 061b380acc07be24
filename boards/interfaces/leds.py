"""The sink LED: the class that a network finds, on the board's LEDs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from struct import Struct
from typing import Any

from nnef_hw.boards.interfaces.interface import ChosenSink, FarEnd, Result, far_end_header
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError

__all__ = ["ClassOnLeds"]

PINS = "leds"
_EVENT = Struct("<2Q")


@dataclass(frozen=True)
class ClassOnLeds(ChosenSink):
    """The class of the latest frame: an LED for each class, or the number of the class in binary.

    LED 0 is the lowest bit. All are off until the first frame has left the accelerator, and after
    each reset of a session.

    Parameters
    ----------
    output
        Output of the network.
    classes
        How many there are.
    leds
        LEDs that are used: as many as classes, or as a class has bits.
    is_index
        The output is the number of the class; else it is a score for each class, of which the first
        of the greatest counts.
    channels
        Channels of a pixel of the output's stream; its pixels are those of the first channel, then
        those of the second one.
    """

    output: str
    classes: int
    leds: int
    is_index: bool
    channels: int

    name = "led"
    board_pins = {PINS: Direction.OUTPUT}
    lut = 130
    hardware = "nnef_hw.boards.hardware.leds:ClassLeds"
    keeps_time = False

    @classmethod
    def of(cls, result: Result, available: Mapping[str, int], **options: Any) -> "ClassOnLeds":
        """Return the sink of an output, on a board with so many LEDs.

        Raises
        ------
        TargetError
            If the output is no class and no vector of scores, or has more classes than the LEDs
            can show.
        """
        assert not options, "it has none"
        where = f"sink {cls.name} cannot show output {result.name!r}"
        long = [extent for extent in result.shape if extent > 1]
        if result.classes is None and len(long) != 1:
            shape = "x".join(map(str, result.shape)) or "1"
            what = "several axes" if long else "one score, not several"
            raise TargetError(f"{where}: it has {what} (its shape is {shape})",
                              remedy="name an output with a score for each class, or an argmax")
        classes = result.classes or long[0]
        count = available[PINS]
        leds = classes if classes <= count else max(1, (classes - 1).bit_length())
        if leds > count:
            raise TargetError(
                f"{where}: its {classes} classes need {leds} LEDs in binary, and the board has "
                f"{count}", remedy="take a board with more LEDs")
        channels = 1 if result.image is None else result.image[2]
        return cls(result.name, classes, leds, result.classes is not None, channels)

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {PINS: PinUse(Direction.OUTPUT, self.leds)}

    def check_clock(self, clk_hz: int) -> None:
        """Accept any."""

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        return {name: value for name, value in asdict(self).items() if name != "output"}

    def to_json(self) -> dict[str, object]:
        code = "one LED for each class" if self.leds == self.classes else "binary"
        return {"kind": self.name, **asdict(self), "code": code}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "ClassOnLeds":
        names = ("output", "classes", "leds", "is_index", "channels")
        return cls(**{name: entry[name] for name in names})

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return somebody who looks at them, see :meth:`seen`."""
        return FarEnd(far_end_header("leds"), "LedsFarEnd")

    @staticmethod
    def seen(data: bytes) -> list[tuple[int, int]]:
        """Return (cycle, number of the lit LEDs, one bit each) of every change that was seen."""
        return list(_EVENT.iter_unpack(data))

    def shown(self, number: int | None) -> int:
        """Return the lit LEDs, one bit each, that say a class; None before the first frame."""
        if number is None:
            return 0
        return 1 << number if self.leds == self.classes else number
