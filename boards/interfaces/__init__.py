"""Interfaces between an accelerator and the world: links to a host, sources, sinks; and pins.

Facts of each are here, without Amaranth, and its other end for the simulated board in C++, in
``far_ends``; its hardware is in :mod:`nnef_hw.boards.hardware`. A further one is a file here and a
line below.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from nnef_hw.boards.interfaces.bus import BUS_DATA, BUSES, Bus, find_bus
from nnef_hw.boards.interfaces.dvp import Dvp
from nnef_hw.boards.interfaces.event_pin import EventLed, EventPin
from nnef_hw.boards.interfaces.events import EventSink, Occurrence
from nnef_hw.boards.interfaces.i2s import I2s
from nnef_hw.boards.interfaces.imu import Imu
from nnef_hw.boards.interfaces.interface import (
    ChosenSink,
    ChosenSource,
    FarEnd,
    Feed,
    Interface,
    Option,
    Result,
    Sink,
    Source,
)
from nnef_hw.boards.interfaces.leds import ClassOnLeds
from nnef_hw.boards.interfaces.link import HostLink, Link, NoLink, PlainStreams
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.boards.interfaces.mlperf import Mlperf
from nnef_hw.boards.interfaces.pdm import Pdm
from nnef_hw.boards.interfaces.pins import (
    ANY_NUMBER,
    CLOCK,
    STATUS,
    Direction,
    Pins,
    PinUse,
    PinUser,
)
from nnef_hw.boards.interfaces.sampled import SampledSource
from nnef_hw.boards.interfaces.spi import Spi
from nnef_hw.boards.interfaces.spi_adc import Mcp3201, SpiAdc
from nnef_hw.boards.interfaces.token_loop import ChipLoop
from nnef_hw.boards.interfaces.uart import TextLine, Uart
from nnef_hw.boards.interfaces.uart_text import UartText
from nnef_hw.errors import UsageError
from nnef_hw.host.benchmarks import Border

__all__ = [
    "ANY_NUMBER", "BUSES", "BUS_DATA", "Border", "Bus", "CLOCK", "ChipLoop", "ChosenSink",
    "ChosenSource", "ClassOnLeds", "DEFAULT_LINK", "Direction", "Dvp", "EventLed", "EventPin",
    "EventSink", "FarEnd", "Feed", "HostLink", "I2s", "Imu", "Interface", "LINKS", "Link",
    "Mcp3201", "Microphone", "Mlperf", "NO_LINK", "NoLink", "Occurrence", "Option",
    "PLAIN_STREAMS", "Pdm", "PinUse", "PinUser", "Pins", "PlainStreams", "Result", "SINKS",
    "SOURCES", "STATUS", "SampledSource", "Sink", "SinkWish", "Source", "SourceWish", "Spi",
    "SpiAdc", "TextLine", "Uart", "UartText", "find_bus", "find_link", "find_sink", "find_source",
    "find_streams", "link_names", "link_of", "link_options", "sink_names", "sink_of", "source_of",
]

LINKS: tuple[HostLink, ...] = (Uart(), Spi(), Mlperf(), TextLine())
"""Every link to a host, with its options as they are by default."""
NO_LINK = NoLink()
"""Place of a link where there is no host."""
DEFAULT_LINK = LINKS[0]
Wished = TypeVar("Wished", ChosenSink, ChosenSource)
SINKS: tuple[type[ChosenSink], ...] = (ClassOnLeds, EventPin, EventLed, UartText)
"""Every sink that a user may choose for an output."""
SOURCES: tuple[type[ChosenSource], ...] = (I2s, Pdm, SpiAdc, Mcp3201, Dvp, Imu)
"""Every source that a user may choose for an input."""
PLAIN_STREAMS = PlainStreams()


for _sink in (*SINKS, *SOURCES):
    if _sink.__abstractmethods__:
        raise TypeError(f"{_sink.__name__} does not say its {', '.join(_sink.__abstractmethods__)}")


class _Wish:
    """Base of what a user asks for: its class, and values of its options."""

    kind: type[ChosenSink | ChosenSource]
    options: tuple[tuple[str, object], ...]

    @property
    def luts(self) -> int:
        """LUTs that are set aside for it."""
        return self.kind.luts(**dict(self.options))

    @property
    def title(self) -> str:
        """Name of the interface in messages."""
        return f"{self.kind.sort} {self.kind.name}"


@dataclass(frozen=True)
class SinkWish(_Wish):
    """A sink that a user asks for.

    Parameters
    ----------
    kind
        Its class.
    output
        Output of the network; None is the only one.
    options
        Values of its options, by name.
    """

    kind: type[ChosenSink]
    output: str | None = None
    options: tuple[tuple[str, object], ...] = ()

    @property
    def blocks(self) -> int:
        """Block RAMs that are set aside for it."""
        return self.kind.blocks(**dict(self.options))

    @property
    def pins(self) -> Mapping[str, PinUse]:
        """Pins that any sink of this class needs."""
        return {name: PinUse(direction, ANY_NUMBER)
                for name, direction in self.kind.board_pins.items()}


@dataclass(frozen=True)
class SourceWish(_Wish):
    """A source that a user asks for.

    Parameters
    ----------
    kind
        Its class.
    input
        Input of the network; None is the only one.
    options
        Values of its options, by name.
    """

    kind: type[ChosenSource]
    input: str | None = None
    options: tuple[tuple[str, object], ...] = ()

    @property
    def blocks(self) -> int:
        """Block RAMs that are set aside for it."""
        return self.kind.bram

    @property
    def pins(self) -> Mapping[str, PinUse]:
        """Pins that any source of this class needs."""
        return {name: PinUse(direction) for name, direction in self.kind.board_pins.items()}


def link_names() -> list[str]:
    """Return the names of all links to a host."""
    return [link.name for link in (*LINKS, NO_LINK)]


def link_options() -> list[Option]:
    """Return the options that links have, each once."""
    found: dict[str, Option] = {}
    for link in LINKS:
        for option in link.options:
            found.setdefault(option.name, option)
    return list(found.values())


def find_link(name: str, **options: Any) -> HostLink:
    """Return the link of a name.

    Parameters
    ----------
    options
        Its options, and perhaps those of others; None of those that are not given.

    Raises
    ------
    UsageError
        If there is no such link, or it has no such option, or not with such a value.
    """
    known = {type(link).name: type(link) for link in (*LINKS, NO_LINK)}
    if name not in known:
        raise UsageError(f"there is no link {name!r}", remedy=f"use --link {' or '.join(known)}")
    given = {option: value for option, value in options.items() if value is not None}
    own = {option.name for option in known[name].options}
    for option in given:
        if option not in own:
            owners = [link.name for link in LINKS for one in link.options if one.name == option]
            raise UsageError(f"--{option} is for --link {' or '.join(owners)}",
                             remedy=f"omit it: the link {name} has no such option")
    return known[name](**given)


def link_of(entry: Mapping[str, Any]) -> Link:
    """Return the link that a manifest's entry describes.

    Raises
    ------
    UsageError
        If it is none that is known.
    """
    if entry["kind"] == PLAIN_STREAMS.name:
        return PlainStreams.from_json(entry)
    for link in (*LINKS, NO_LINK):
        if entry["kind"] == link.name:
            return type(link).from_json(entry)
    raise UsageError(f"the build has a link {entry['kind']!r}, which is not known",
                     remedy=f"build it with --link {' or '.join(link_names())}")


def find_streams(bus: str | None, data: str, *, program: bool = False) -> PlainStreams:
    """Return the streams of plain IP with a bus of a name, or none.

    ``program`` tells whether that of an engine may be loaded through registers.

    Raises
    ------
    UsageError
        If there is no such bus, or no such way of frames.
    """
    if data not in BUS_DATA:
        raise UsageError(f"frames do not pass through {data!r}",
                         remedy=f"use --bus-data {' or '.join(BUS_DATA)}")
    return PlainStreams(None if bus is None else find_bus(bus), data == BUS_DATA[True], program)


def sink_names() -> list[str]:
    """Return the names of all sinks that a user may choose."""
    return [sink.name for sink in SINKS]


def find_sink(text: str) -> SinkWish:
    """Return the sink of a text, ``[OUTPUT=]NAME`` or ``[OUTPUT=]NAME:OPTION=VALUE,...``.

    Raises
    ------
    UsageError
        If there is no such sink, or it has no such option, or not with such a value.
    """
    chosen, _, options = text.partition(":")
    output, _, name = chosen.rpartition("=")
    for sink in SINKS:
        if sink.name == name:
            return SinkWish(sink, output or None, _options(sink, options))
    raise UsageError(f"there is no sink {name!r}",
                     remedy=f"use --sink {' or '.join(sink_names())}, or OUTPUT=NAME")


def _options(
    kind: type[ChosenSink] | type[ChosenSource], text: str
) -> tuple[tuple[str, object], ...]:
    known = {option.name: option for option in kind.options}
    found = []
    for one in filter(None, text.split(",")):
        name, _, value = one.partition("=")
        if name not in known:
            options = f"its options are {', '.join(known)}" if known else "it has no options"
            raise UsageError(f"the {kind.sort} {kind.name} has no option {name!r}", remedy=options)
        try:
            found.append((name, known[name].type(value)))
        except ValueError as error:
            title = f"{kind.sort} {kind.name}"
            raise UsageError(f"{value!r} is no value of {name}, an option of the {title}",
                             remedy=f"give the {known[name].help}") from error
    return tuple(found)


def find_source(text: str) -> SourceWish:
    """Return the source of a text, ``[INPUT=]NAME`` or ``[INPUT=]NAME:OPTION=VALUE,...``.

    Raises
    ------
    UsageError
        If there is no such source, or it has no such option, or not with such a value.
    """
    chosen, _, options = text.partition(":")
    feed, _, name = chosen.rpartition("=")
    for source in SOURCES:
        if source.name == name:
            return SourceWish(source, feed or None, _options(source, options))
    names = " or ".join(source.name for source in SOURCES)
    raise UsageError(f"there is no source {name!r}", remedy=f"use --source {names}, or INPUT=NAME")


def source_of(entry: Mapping[str, Any]) -> ChosenSource:
    """Return the source that an entry of a manifest's ``sources`` describes.

    Raises
    ------
    UsageError
        If it is none that is known.
    """
    return _described(entry, SOURCES, "source", (source.name for source in SOURCES))



def sink_of(entry: Mapping[str, Any]) -> ChosenSink:
    """Return the sink that an entry of a manifest's ``sinks`` describes.

    Raises
    ------
    UsageError
        If it is none that is known.
    """
    return _described(entry, SINKS, "sink", sink_names())


def _described(
    entry: Mapping[str, Any], kinds: Sequence[type[Wished]], option: str, names: Iterable[str]
) -> Wished:
    """Return the interface of one of some kinds that an entry of a manifest describes."""
    for kind in kinds:
        if kind.name == entry["kind"]:
            return kind.from_json(entry)
    raise UsageError(f"the build has a {option} {entry['kind']!r}, which is not known",
                     remedy=f"build it with --{option} {' or '.join(names)}")
