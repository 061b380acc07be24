"""Rooflines in logarithmic scales: MACs per cycle, against multipliers or MACs per byte.

The first is of a design whose layers have their own multipliers; the second one of an array that
all share, whose weights come from a memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log, log10

from nnef_hw.report.model.device import Memory
from nnef_hw.report.model.limits import Roofs
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["Dot", "Line", "Roofline", "draw_roofline"]

WIDTH, HEIGHT = 620.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 26.0, 38.0
SLOPES = {1: "one", 2: "two", 4: "four"}
"""MACs per cycle of multipliers, in words: each has a line."""
ROOM_ABOVE = 1.6


@dataclass(frozen=True, slots=True)
class Line:
    """A bound: its ends, its name, and where that is written."""

    start: tuple[float, float]
    end: tuple[float, float]
    label: str
    place: tuple[float, float]
    is_vertical: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """The design, or one of its layers."""

    x: float
    y: float
    title: str
    is_bottleneck: bool = False


@dataclass(frozen=True, slots=True)
class Roofline:
    """Geometry of the plot; ticks are (position, number).

    ``slopes`` are the points of the bounds that depend on what is drawn across.
    """

    width: float
    height: float
    box: tuple[float, float, float, float]
    title: str
    across_title: str
    slopes: tuple[str, ...]
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    design: Dot
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """A logarithmic axis from ``low`` to ``high``."""

    low: float
    high: float

    def part(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return log(value / self.low) / log(self.high / self.low)

    def x(self, value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * self.part(value), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.part(value), 1)

    def ticks(self) -> Iterator[float]:
        tick = 1e-3
        while tick <= self.high * (1 + 1e-9):
            if tick >= self.low * (1 - 1e-9):
                yield tick
            tick *= 10


def draw_roofline(report: Report) -> Roofline | None:
    """Draw the roofline that tells most of a design; None without multipliers."""
    if not report.multipliers:
        return None
    return _of_memory(report, report.memory) if report.memory else _of_multipliers(report)


def _of_memory(report: Report, memory: Memory) -> Roofline:
    """Draw both roofs, layers and the design: MACs per byte that comes from the memory.

    A layer's MACs per cycle are those of its own cycles; its weights may come while others run, so
    that it lies above what the memory allows.
    """
    most = report.multipliers
    speed = memory.bytes_per_cycle
    interval, slowest = report.cycles_per_inference, units.bottlenecks(report)
    points = [
        (layer.macs / layer.memory_bytes, layer.macs / layer.cycles, layer)
        for layer in report.layers
        if layer.macs and layer.memory_bytes
    ]
    own = report.macs / memory.bytes, report.macs / interval
    ridge = most / speed
    places = [own[0], ridge, *(x for x, _, _ in points)]
    across = _Scale(_ten_below(min(places)), 10 * _ten_below(max(places)))
    up = _Scale(_ten_below(min([own[1], *(y for _, y, _ in points)])), ROOM_ABOVE * most)
    flat = up.y(most)
    begin = max(across.low, up.low / speed)
    corners = [(begin, begin * speed), (ridge, most), (across.high, most)]
    return Roofline(
        width=WIDTH,
        height=HEIGHT,
        box=(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM),
        title="MACs per cycle: a ring for the frame, a dot for each layer",
        across_title=f"MACs per byte that comes from {memory.kind}",
        slopes=(" ".join(f"{across.x(x)},{up.y(y)}" for x, y in corners),),
        lines=(
            Line((LEFT, flat), (across.x(across.high), flat), f"{units.count(most)} multipliers",
                 (LEFT + 8, flat - 5)),
            Line((across.x(ridge), up.y(up.low)), (across.x(ridge), flat),
                 f"{memory.kind}: {speed:.2f} bytes per cycle",
                 (across.x(ridge) - 5, up.y(up.low) - 10), is_vertical=True),
        ),
        dots=tuple(
            Dot(across.x(x), up.y(y),
                f"{layer.name}: {units.rate(y)} MACs per cycle, {units.rate(x)} per byte",
                layer.name in slowest)
            for x, y, layer in points
        ),
        design=Dot(
            across.x(own[0]), up.y(own[1]),
            f"{units.rate(own[1])} MACs per cycle, {units.rate(own[0])} per byte",
        ),
        across=tuple((across.x(tick), _number(tick)) for tick in across.ticks()),
        up=tuple((up.y(tick), _number(tick)) for tick in up.ticks()),
    )  # fmt: skip


def _ten_below(value: float) -> float:
    """Return the greatest power of ten that is not above a positive number."""
    return 10.0 ** floor(log10(value))


def _number(tick: float) -> str:
    return units.count(round(tick)) if tick >= 1 else f"{tick:g}"


def _of_multipliers(report: Report) -> Roofline:
    """Draw bounds, layers and the design.

    A layer's MACs per cycle count the cycles of the whole interval; below one they are drawn as
    one.
    """
    roofs, interval = report.roofs, report.cycles_per_inference
    reached = report.macs / interval
    slopes = [macs for macs in SLOPES if macs <= roofs.macs_per_multiplier]
    first, *others = (SLOPES[macs] for macs in slopes)
    lines = f"line{'s' * bool(others)}: {first} MAC per cycle each"
    lines += f", and {' or '.join(others)}" if others else ""
    layers = [layer for layer in report.layers if layer.multipliers]
    rates = [layer.macs / interval for layer in layers]
    high = max(roofs.multipliers, report.multipliers, roofs.streams, 10) * ROOM_ABOVE
    scale = _Scale(low=1.0, high=high)
    slowest = units.bottlenecks(report)
    edge = scale.x(high)
    low, top = scale.y(scale.low), scale.y(high)
    return Roofline(
        width=WIDTH,
        height=HEIGHT,
        box=(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM),
        title="MACs per cycle: a ring for the design, a dot for each layer",
        across_title=f"multipliers built; {lines}",
        slopes=tuple(
            f"{scale.x(scale.low)},{scale.y(macs)} {scale.x(high / macs)},{top}" for macs in slopes
        ),
        lines=(
            *_horizontal(scale, roofs, edge, report.beat),
            *_vertical(scale, roofs, low, top),
        ),
        dots=tuple(
            Dot(
                scale.x(layer.multipliers),
                scale.y(rate),
                f"{layer.name}: {units.rate(rate)} MACs per cycle with "
                f"{units.count(layer.multipliers)} multipliers",
                layer.name in slowest,
            )
            for layer, rate in zip(layers, rates, strict=True)
        ),
        design=Dot(
            scale.x(report.multipliers),
            scale.y(reached),
            f"{units.rate(reached)} MACs per cycle with "
            f"{units.count(report.multipliers)} multipliers",
        ),
        across=tuple((scale.x(tick), _number(tick)) for tick in scale.ticks()),
        up=tuple((scale.y(tick), _number(tick)) for tick in scale.ticks()),
    )


def _horizontal(scale: _Scale, roofs: Roofs, edge: float, beat: str) -> Iterator[Line]:
    """Draw the streams; one that is beyond the plot is not a bound, and the input's may be both."""
    shown = {"busiest stream": roofs.streams}
    if roofs.input != roofs.streams:
        shown["input stream"] = roofs.input
    for title, roof in shown.items():
        if roof < scale.high:
            y = scale.y(roof)
            label = f"{title}, one {beat} per cycle: {units.rate(roof)}"
            yield Line((LEFT, y), (edge, y), label, (LEFT + 8, y - 5))


def _vertical(scale: _Scale, roofs: Roofs, low: float, top: float) -> Iterator[Line]:
    for place, (roof, title) in enumerate((
        (roofs.dsp_multipliers, "DSP blocks"),
        (roofs.multipliers, "with the LUTs left"),
    )):
        if roof:
            x = scale.x(roof)
            label = f"{title}: {units.count(roof)}"
            yield Line((x, low), (x, top), label, (x - 5, low - 10 - 16 * place), is_vertical=True)
