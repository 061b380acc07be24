"""The sinks pin and event_led: high, or lit, for a while after a network has found something."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import prod
from struct import Struct
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.interfaces.events import (
    MEAN_OPTIONS,
    SUM_BLOCKS,
    EventSink,
    Occurrence,
    check_steps,
    least_sum,
    scores_of,
    sums_of,
)
from nnef_hw.boards.interfaces.interface import FarEnd, Option, Result, far_end_header
from nnef_hw.boards.interfaces.pins import Direction, PinUse
from nnef_hw.errors import TargetError, UsageError

__all__ = ["EventLed", "EventPin"]

STEP_LUTS = 27
"""LUTs for a score of an earlier step."""
BEST_LUTS = 150
"""LUTs that are set aside where all classes are compared."""
_CHANGE = Struct("<2Q")


@dataclass(frozen=True, kw_only=True)
class EventPin(EventSink):
    """A pin that is high for ``quiet`` steps from an event on: a mean of scores is high enough.

    The mean is that of a class's scores in the last ``mean`` steps. The pin is low for a step, at
    least, before a further event. A reset forgets all scores.

    Parameters
    ----------
    output
        Output of the network.
    number
        Number of the class in the output.
    mean
        Steps of the mean.
    quiet
        Steps that the pin is high.
    cutoff
        The least sum of codes that is an event.
    codes, channels
        Codes of a frame of the output's stream, and of a pixel of it.
    place
        Place of the class's code among them.
    threshold
        The real mean that ``cutoff`` stands for.
    best
        Whether the class has to have the greatest mean, too: the first of several that are equal.
    """

    output: str
    number: int
    mean: int
    quiet: int
    cutoff: int
    codes: int
    channels: int
    place: int
    threshold: float
    best: int = 0

    name = "pin"
    far_end_class: ClassVar[str] = "EventPinFarEnd<Vtop>"
    options = (
        Option("number", int, "class that it shows (0)"),
        *MEAN_OPTIONS,
        Option("quiet", int, "steps that it is high, without a further event (32)"),
        Option("best", int, "1 if the class has to have the greatest mean of all, too (0)"),
    )
    pin: ClassVar[str] = "alert"
    """Name of the pin."""
    board_pins = {"alert": Direction.OUTPUT}
    lut = 45
    hardware = "nnef_hw.boards.hardware.events.event_pin:EventOnPin"
    keeps_time = False

    @classmethod
    def of(cls, result: Result, available: Mapping[str, int], *, number: int = 0,
           threshold: float = 0.5, mean: int = 1, quiet: int = 32, best: int = 0) -> "EventPin":
        """Return the sink of an output.

        Raises
        ------
        TargetError
            If no mean of its scores is that high, or each is.
        UsageError
            If there is no such class, or a number of steps makes no sense.
        """
        where = f"sink {cls.name} of output {result.name!r}"
        count = prod(result.shape)
        if result.classes is not None:
            raise TargetError(f"{where}: it is the number of a class, and a mean of numbers says "
                              "nothing", remedy="name an output with scores")
        if not 0 <= number < count:
            raise UsageError(f"{where}: there is no class {number}",
                             remedy=f"its {count} scores have the numbers 0 to {count - 1}")
        check_steps(where, mean, quiet)
        if best not in (0, 1):
            raise UsageError(f"{where}: best={best} is neither 0 nor 1")
        if best:
            scores_of(result, where)
        cutoff = 0 if result.qtype is None else least_sum(where, result.qtype, mean, threshold)
        height, width, channels = result.image or (1, 1, count)
        channel, pixel = divmod(number, height * width)
        return cls(output=result.name, number=number, mean=mean, quiet=quiet, cutoff=cutoff,
                   codes=count, channels=channels, place=pixel * channels + channel,
                   threshold=threshold, best=best)

    @classmethod
    def luts(cls, *, mean: int = 1, best: int = 0, **options: Any) -> int:
        """Return the LUTs that are set aside: registers and adders for each step of one class."""
        del options
        return BEST_LUTS if best else cls.lut + STEP_LUTS * (mean - 1)

    @classmethod
    def blocks(cls, *, mean: int = 1, best: int = 0, **options: Any) -> int:
        """Return the block RAMs for scores and sums of all classes: one alone has registers."""
        del options
        return SUM_BLOCKS if mean > 1 and best else 0

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {self.pin: PinUse(Direction.OUTPUT)}

    def check_clock(self, clk_hz: int) -> None:
        """Accept any."""

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        names = ("codes", "channels", "place", "mean", "quiet", "cutoff")
        return {**{name: getattr(self, name) for name in names}, "pin": self.pin,
                "best": bool(self.best)}

    def to_json(self) -> dict[str, object]:
        return {"kind": self.name, **asdict(self)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "EventPin":
        return cls(**{field.name: entry[field.name] for field in fields(cls)
                      if field.name in entry})

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return somebody who watches the pin, see :meth:`seen`."""
        return FarEnd(far_end_header("event_pin"), self.far_end_class)

    @staticmethod
    def seen(data: bytes) -> list[int]:
        """Return the cycle of every event that was seen: of every rise."""
        return [cycle for cycle, level in _CHANGE.iter_unpack(data) if level]

    def events(self, codes: ArrayLike) -> Sequence[int]:
        """Return the steps of events for codes [steps, ...] of the output."""
        everything = sums_of(codes, self.mean)
        sums = everything[:, self.number]
        counts = (everything.argmax(axis=1) == self.number) | (not self.best)
        counts &= sums >= self.cutoff
        found: list[int] = []
        for step in range(self.mean - 1, len(sums)):
            if counts[step] and (not found or step - found[-1] > self.quiet):
                found.append(step)
        return found

    def occurrences(self, codes: ArrayLike, qtype: QType) -> Sequence[Occurrence]:
        """Return the events of codes [steps, ...] of the output."""
        sums = sums_of(codes, self.mean)[:, self.number]
        return [Occurrence.of(step, self.number, int(sums[step]), self.mean, qtype)
                for step in self.events(codes)]

    def told(self, data: bytes, clk_hz: float) -> Sequence[tuple[int, str]]:
        """Return the cycle of every rise: a pin says no more."""
        return [(cycle, "") for cycle in self.seen(data)]

    def says(self, event: Occurrence) -> str:
        """Return nothing: the pin rises."""
        return ""

    def title_of(self, event: Occurrence) -> str:
        """Return output and number of the class."""
        return f"{self.output} {event.number}"


class EventLed(EventPin):
    """An LED of the board, the first one, that is lit as the pin of :class:`EventPin` is high."""

    name = "event_led"
    pin = "leds"
    far_end_class = "EventLedFarEnd<Vtop>"
    board_pins = {"leds": Direction.OUTPUT}
