"""The roofline of multipliers: MACs per cycle, against multipliers, in logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

from nnef_hw.report import units

__all__ = ["Dot", "Line", "Roofline", "draw_roofline"]

WIDTH, HEIGHT = 620.0, 330.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 26.0, 38.0
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
    """Geometry of the plot; ticks are (position, number)."""

    width: float
    height: float
    box: tuple[float, float, float, float]
    diagonal: tuple[float, float, float, float]
    lines: tuple[Line, ...]
    dots: tuple[Dot, ...]
    design: Dot
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Logarithmic axes that begin at ``low`` and end at ``high``, both ways."""

    low: float
    high: float

    def part(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return log(value / self.low) / log(self.high / self.low)

    def x(self, value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * self.part(value), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.part(value), 1)

    def ticks(self) -> Iterator[int]:
        tick = 1
        while tick <= self.high:
            if tick >= self.low:
                yield tick
            tick *= 10


def draw_roofline(report: Mapping[str, Any]) -> Roofline | None:
    """Draw bounds, layers and the design; None without multipliers.

    A layer's MACs per cycle count the cycles of the whole interval; below one they are drawn as
    one.
    """
    if not report["multipliers"]:
        return None
    roofs, interval = report["roofs"], report["cycles_per_inference"]
    reached = report["macs"] / interval
    layers = [layer for layer in report["layers"] if layer["multipliers"]]
    rates = [layer["macs"] / interval for layer in layers]
    high = max(roofs["multipliers"], report["multipliers"], roofs["streams"], 10) * ROOM_ABOVE
    scale = _Scale(low=1.0, high=high)
    slowest = units.bottlenecks(report)
    edge = scale.x(high)
    low, top = scale.y(scale.low), scale.y(high)
    return Roofline(
        width=WIDTH,
        height=HEIGHT,
        box=(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM),
        diagonal=(scale.x(scale.low), low, edge, top),
        lines=(
            *_horizontal(scale, roofs, edge),
            *_vertical(scale, roofs, low, top),
        ),
        dots=tuple(
            Dot(
                scale.x(layer["multipliers"]),
                scale.y(rate),
                f"{layer['name']}: {units.rate(rate)} MACs per cycle with "
                f"{units.count(layer['multipliers'])} multipliers",
                layer["name"] in slowest,
            )
            for layer, rate in zip(layers, rates, strict=True)
        ),
        design=Dot(
            scale.x(report["multipliers"]),
            scale.y(reached),
            f"{units.rate(reached)} MACs per cycle with "
            f"{units.count(report['multipliers'])} multipliers",
        ),
        across=tuple((scale.x(tick), units.count(tick)) for tick in scale.ticks()),
        up=tuple((scale.y(tick), units.count(tick)) for tick in scale.ticks()),
    )


def _horizontal(scale: _Scale, roofs: Mapping[str, float], edge: float) -> Iterator[Line]:
    """Draw the streams; one that is beyond the plot is not a bound."""
    for key, title in (("streams", "busiest stream"), ("input", "input stream")):
        if roofs[key] < scale.high and (key == "streams" or roofs[key] != roofs["streams"]):
            y = scale.y(roofs[key])
            label = f"{title}, one code per cycle: {units.rate(roofs[key])}"
            yield Line((LEFT, y), (edge, y), label, (LEFT + 8, y - 5))


def _vertical(scale: _Scale, roofs: Mapping[str, float], low: float, top: float) -> Iterator[Line]:
    for place, (key, title) in enumerate((
        ("dsp_multipliers", "DSP blocks"),
        ("multipliers", "with the LUTs left"),
    )):
        if roofs[key]:
            x = scale.x(roofs[key])
            label = f"{title}: {units.count(roofs[key])}"
            yield Line((x, low), (x, top), label, (x - 5, low - 10 - 16 * place), is_vertical=True)
