"""The sink uart_text: a line of text for everything that a network has found."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import prod
from struct import Struct
from typing import Any

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
from nnef_hw.boards.interfaces.uart import uart_divider
from nnef_hw.errors import TargetError, UsageError

__all__ = ["FRACTION_BITS", "HUNDREDTHS", "NUMBER_DIGITS", "UartText"]

PIN = "text"
NUMBER_DIGITS = 8
"""Digits of seconds and of scores."""
HUNDREDTHS = 2
"""Digits of these behind the decimal point: hundredths."""
FRACTION_BITS = 16
"""Bits below a code, for what a hundredth is."""
BAUD = 115_200
SEPARATOR = "/"
_LINE = Struct("<2Q")
_PER_SECOND = 10**HUNDREDTHS
_LATE = 0.05
"""Seconds that a line may come behind its event: while another one is sent."""


@dataclass(frozen=True, kw_only=True)
class UartText(EventSink):
    """Lines of text by a UART, one for each event: ``17.36 s marvin 0.98``.

    An event is a step in which the class with the greatest mean score of the last ``mean`` steps
    has a name, and that mean is at least ``threshold``; after one come ``quiet`` steps without a
    further one. A reset forgets all scores, and time begins anew.

    Parameters
    ----------
    output
        Output of the network, a vector of scores.
    names
        Names of its classes; one without a name is no event.
    mean, quiet
        Steps.
    cutoff
        The least sum of codes that is an event.
    zero, hundredth
        The sum of a mean of 0.0, and how much of it is 0.01, in steps of ``2**-16``, rounded down.
    digits
        Digits of hundredths of the greatest score.
    channels
        Codes of a pixel of the output's stream.
    threshold
        The real mean that ``cutoff`` stands for.
    baud
        Rate of the UART.
    """

    output: str
    names: tuple[str, ...]
    mean: int
    quiet: int
    cutoff: int
    zero: int
    hundredth: int
    digits: int
    channels: int
    threshold: float
    baud: int

    name = "uart_text"
    options = (
        Option("names", str, f"names of the classes, with {SEPARATOR} between them; one without a "
               "name is no event (their numbers)"),
        *MEAN_OPTIONS,
        Option("quiet", int, "steps after an event without a further one (32)"),
        Option("baud", int, f"rate of the line ({BAUD})"),
    )
    board_pins = {PIN: Direction.OUTPUT}
    lut = 450
    least_lut = 310
    """LUTs of a line without names and means."""
    name_lut = 11
    """LUTs that each name takes more, at most."""
    mean_lut = 100
    """LUTs that means of several steps take more, at most."""
    hardware = "nnef_hw.boards.hardware.events.event_text:EventText"

    @classmethod
    def luts(cls, *, names: str | None = None, mean: int = 1, **options: Any) -> int:
        """Return the LUTs that are set aside: for names, and for means of several steps."""
        del options
        if names is None:
            return cls.lut
        named = sum(map(bool, names.split(SEPARATOR)))
        return cls.least_lut + cls.name_lut * named + (cls.mean_lut if mean > 1 else 0)

    @classmethod
    def blocks(cls, *, mean: int = 1, **options: Any) -> int:
        """Return the block RAMs for scores and sums of earlier steps."""
        del options
        return SUM_BLOCKS if mean > 1 else 0

    @classmethod
    def of(cls, result: Result, available: Mapping[str, int], *, names: str | None = None,
           threshold: float = 0.5, mean: int = 1, quiet: int = 32,
           baud: int = BAUD) -> "UartText":
        """Return the sink of an output.

        Raises
        ------
        TargetError
            If the output is no vector of scores, or no mean of these is that high, or each is.
        UsageError
            If names are not those of its classes, or a number makes no sense.
        """
        where = f"sink {cls.name} of output {result.name!r}"
        classes = scores_of(result, where)
        check_steps(where, mean, quiet)
        found = tuple(names.split(SEPARATOR) if names else map(str, range(classes)))
        if len(found) != classes or not any(found):
            raise UsageError(
                f"{where}: {names!r} has {len(found)} names, and there are {classes} classes",
                remedy=f"put {SEPARATOR} between them, as names=yes{SEPARATOR}no; one without a "
                "name is no event")
        for name in found:
            if not (name.isascii() and (name.isprintable() or not name)):
                raise UsageError(f"{where}: the name {name!r} has other than printable ASCII",
                                 remedy="choose another one")
        if threshold < 0:
            raise UsageError(f"{where}: a threshold of {threshold:g} allows scores below 0, and "
                             "these are printed without a sign", remedy="give one of 0 or more")
        if baud <= 0:
            raise UsageError(f"{where}: baud={baud} is no rate")
        cutoff, zero, hundredth, digits = 0, 0, 1, 1
        if result.qtype is not None:
            form = result.qtype
            cutoff = least_sum(where, form, mean, threshold)
            zero = mean * form.zero_point
            steps = Fraction(mean << FRACTION_BITS) / (_PER_SECOND * Fraction(float(form.scale)))
            hundredth = int(steps)
            most = mean * (form.hi - form.zero_point) << FRACTION_BITS
            digits = len(str(most // hundredth)) if hundredth else NUMBER_DIGITS + 1
            if digits > NUMBER_DIGITS:
                raise TargetError(
                    f"{where}: scores in steps of {float(form.scale):g} up to "
                    f"{float(form.dequantize(form.hi)):g} are no numbers of "
                    f"{NUMBER_DIGITS - HUNDREDTHS} digits and {HUNDREDTHS} behind the point",
                    remedy="end the network with a softmax")
        channels = prod(result.shape) if result.image is None else result.image[2]
        return cls(output=result.name, names=found, mean=mean, quiet=quiet, cutoff=cutoff,
                   zero=zero, hundredth=hundredth, digits=digits, channels=channels,
                   threshold=threshold, baud=baud)

    @property
    def given(self) -> Mapping[str, object]:
        return {**super().given, "names": SEPARATOR.join(self.names)}

    @property
    def pins(self) -> Mapping[str, PinUse]:
        return {PIN: PinUse(Direction.OUTPUT)}

    def check_clock(self, clk_hz: int) -> None:
        """Refuse a clock that is too slow for the rate."""
        try:
            uart_divider(clk_hz, self.baud)
        except ValueError as error:
            raise TargetError(f"{self.title}: {error}",
                              remedy="choose another --freq, or baud=NUMBER") from None

    def parameters(self, clk_hz: int) -> Mapping[str, object]:
        same = ("channels", "mean", "names", "quiet", "cutoff", "zero", "hundredth")
        ticks = Fraction(_PER_SECOND, clk_hz)
        return {
            "classes": len(self.names), **{name: getattr(self, name) for name in same},
            "score_digits": self.digits, "ticks": ticks.numerator, "cycles": ticks.denominator,
            "divider": uart_divider(clk_hz, self.baud),
        }

    def to_json(self) -> dict[str, object]:
        return {"kind": self.name, **asdict(self), "names": list(self.names)}

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "UartText":
        given = {field.name: entry[field.name] for field in fields(cls)}
        return cls(**{**given, "names": tuple(entry["names"])})

    def far_end(self, clk_hz: float) -> FarEnd:
        """Return somebody who reads the lines, see :meth:`seen`."""
        return FarEnd(far_end_header("uart_text"), "UartTextFarEnd", (clk_hz / self.baud,))

    @staticmethod
    def seen(data: bytes) -> list[tuple[int, str]]:
        """Return every line, and the cycle in which its first character began."""
        found, place = [], 0
        while place < len(data):
            cycle, length = _LINE.unpack_from(data, place)
            place += _LINE.size
            found.append((cycle, data[place : place + length].decode("latin-1")))
            place += length
        return found

    def occurrences(self, codes: ArrayLike, qtype: QType) -> Sequence[Occurrence]:
        """Return the events of codes [steps, ...] of the output."""
        sums = sums_of(codes, self.mean)
        found: list[Occurrence] = []
        for step in range(self.mean - 1, len(sums)):
            number = int(sums[step].argmax())
            total = int(sums[step, number])
            is_quiet = bool(found) and step - found[-1].step <= self.quiet
            if self.names[number] and total >= self.cutoff and not is_quiet:
                found.append(Occurrence.of(step, number, total, self.mean, qtype))
        return found

    def told(self, data: bytes, clk_hz: float) -> Sequence[tuple[int, str]]:
        """Return the lines: when they came, and what they say if their times are true."""
        found = []
        for cycle, line in self.seen(data):
            time, _, rest = line.partition(" s ")
            late = cycle / clk_hz - float(time) if time.replace(".", "", 1).isdecimal() else -1
            found.append((cycle, rest if 0 <= late < _LATE else line))
        return found

    def says(self, event: Occurrence) -> str:
        """Return the class's name, and its score cut to two decimal places."""
        hundredths = (event.total - self.zero << FRACTION_BITS) // self.hundredth
        whole, part = divmod(hundredths, _PER_SECOND)
        return f"{self.names[event.number]} {whole}.{part:02}"

    def title_of(self, event: Occurrence) -> str:
        """Return the class's name."""
        return self.names[event.number]
