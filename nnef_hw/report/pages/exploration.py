"""A sweep of designs as one self-contained HTML page, and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from nnef_hw.hardware.devices import LUT_SHARE
from nnef_hw.report.model.exploration import Explored, Point
from nnef_hw.report.pages.pages import page_template
from nnef_hw.report.wording import units
from nnef_hw.system.files import write_atomic

__all__ = ["draw_points", "exploration_tables", "render_exploration", "write_exploration"]

WIDTH, HEIGHT = 720.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 26.0, 44.0
LARGEST, SMALLEST, STEP = 7.5, 3.5, 2.0
"""Half widths of markers, from the widest weights on."""
COLOURS = 8
SHAPES = (
    "M-{0} 0A{0} {0} 0 1 1 {0} 0A{0} {0} 0 1 1 -{0} 0Z",
    "M-{0} -{0}H{0}V{0}H-{0}Z",
    "M0 -{0}L{0} {0}H-{0}Z",
    "M0 -{0}L{0} 0L0 {0}L-{0} 0Z",
    "M-{0} -{0}H{0}L0 {0}Z",
)
"""A circle, a square, triangles and a diamond, whose half width is put in."""


@dataclass(frozen=True, slots=True)
class Marker:
    """A point in a plot: its place, colour, outline and, if seeds differ, the span of its rates."""

    number: int
    x: float
    y: float
    colour: int
    outline: str
    is_filled: bool
    span: tuple[float, float] | None
    title: str


@dataclass(frozen=True, slots=True)
class Plot:
    """Geometry of a plot; ticks are (position, number), ``fronts`` (colour, points of a line).

    ``level`` is a line across, ``limit`` one upright: a position and what it says.
    """

    width: float
    height: float
    box: tuple[float, float, float, float]
    markers: tuple[Marker, ...]
    fronts: tuple[tuple[int, str], ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    level: tuple[float, str] | None = None
    limit: tuple[float, str] | None = None


def write_exploration(found: Explored, path: Path) -> None:
    """Write :func:`render_exploration` to a file, whose folder is made if need be."""
    write_atomic(path, render_exploration(found))


def render_exploration(found: Explored) -> str:
    """Return a page that needs no other file, no network and no script."""
    points = found.points
    drawn = [point for point in points if not point.refusal]
    return page_template("exploration.html").render(
        say=units,
        shown=units.printable,
        clocks=_clocks,
        goal=_goal,
        found=found,
        points=points,
        plot=draw_points(drawn) if drawn else None,
        quality=_draw_quality(drawn),
        metric=_metric(drawn),
        scored=_scored(drawn),
        boards=list(enumerate(_names(points))),
        widths=[(bits, _outline(0, size)) for bits, size in _sizes(points).items()],
        archs=[(arch, _outline(shape, SMALLEST)) for arch, shape in _shapes(drawn).items()],
        placed=sum(point.stage == "placed" for point in points),
    )


def draw_points(points: Sequence[Point]) -> Plot:
    """Draw inferences per second over the share of LUTs."""
    colours = {name: place % COLOURS for place, name in enumerate(_names(points))}
    sizes, shapes = _sizes(points), _shapes(points)
    spans = {point.number: _span(point) for point in points}
    rates = [point.rate for point in points]
    rates += [rate for span in spans.values() if span for rate in span]
    low, high = 10 ** math.floor(math.log10(min(rates))), 10 ** math.ceil(math.log10(max(rates)))
    high = max(high, 10 * low)
    most = max(math.ceil(10 * max(point.lut for point in points)) / 10, 0.1)

    def x(share: float) -> float:
        return _tenth(LEFT + (WIDTH - LEFT - RIGHT) * share / most)

    def y(rate: float) -> float:
        part = math.log(rate / low) / math.log(high / low)
        return _tenth(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part)

    markers = tuple(
        Marker(
            point.number, x(point.lut), y(point.rate),
            colours[point.board], _outline(shapes[point.arch or ""], sizes[point.weight_bits]),
            point.stage == "placed",
            None if (span := spans[point.number]) is None else (y(span[0]), y(span[1])),
            f"{point.number}: {point.board}, {point.arch}, {point.weight_bits} bits, "
            f"{units.rate(point.rate)}/s, {units.percent(point.lut)} "
            f"of the LUTs, {point.stage}",
        )
        for point in points
    )  # fmt: skip
    fronts = []
    for name, bits in product(colours, sizes):
        kind = [p for p in points if (p.board, p.weight_bits) == (name, bits)]
        best = [point for point in kind if point.is_front]
        line = " ".join(
            f"{x(point.lut)},{y(point.rate)}"
            for point in sorted(best, key=lambda point: point.rate)
        )
        fronts.append((colours[name], line))
    steps = round(most * 10)
    stride = max(1, steps // 5)
    return Plot(
        WIDTH, HEIGHT, (LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM), markers,
        tuple(fronts), tuple((x(n / 10), f"{10 * n}%") for n in range(0, steps + 1, stride)),
        tuple((y(10.0**n), units.rate(10.0**n))
              for n in range(round(math.log10(low)), round(math.log10(high)) + 1)),
        limit=(x(LUT_SHARE), f"{LUT_SHARE:.0%} can be placed") if most > LUT_SHARE else None,
    )  # fmt: skip


def _draw_quality(points: Sequence[Point]) -> Plot | None:
    """Draw how good the integers of every width are; None if that is not known."""
    first = {point.weight_bits: point for point in reversed(points) if point.quality}
    sizes = _sizes(points)
    widths = [bits for bits in sizes if bits in first]
    values = [_quality(first[bits]) for bits in widths]
    if not widths or any(value is None for value in values):
        return None
    numbers = [value for value in values if value is not None]
    metric = _metric(points)
    judged = first[widths[0]].quality
    real = None if judged is None else judged.real
    shown = [*numbers, *([] if real is None else [real])]
    low, high = min(shown), max(shown)
    room = max(high - low, 0.01 * abs(high), 1e-9) * 0.15
    low, high = low - room, high + room
    if metric == "accuracy":
        high = min(high, 1.0) if max(shown) < 1 else 1.0 + room / 4
    width, height = WIDTH / 2, HEIGHT * 0.7

    def x(place: int) -> float:
        return _tenth(LEFT + (width - LEFT - RIGHT) * (place + 0.5) / len(widths))

    def y(value: float) -> float:
        return _tenth(height - BOTTOM - (height - TOP - BOTTOM) * (value - low) / (high - low))

    markers = tuple(
        Marker(first[bits].number, x(place), y(value), 0, _outline(0, sizes[bits]), True, None,
               f"{bits} bits: {_said(value, metric)}")
        for place, (bits, value) in enumerate(zip(widths, numbers, strict=True))
    )  # fmt: skip
    ticks = [low + (high - low) * part / 4 for part in range(1, 4)]
    return Plot(
        width, height, (LEFT, TOP, width - LEFT - RIGHT, height - TOP - BOTTOM), markers, (),
        tuple((x(place), f"{bits} bits") for place, bits in enumerate(widths)),
        tuple((y(value), _said(value, metric)) for value in ticks),
        None if real is None else (y(real), f"float {_said(real, metric)}"),
    )  # fmt: skip


def exploration_tables(points: Sequence[Point]) -> Iterator[RenderableType]:
    """Yield the front as a table, and why designs were refused."""
    table = Table(box=None, pad_edge=False)
    for heading in ("no.", "board", "bits", "goal/s", "cycles", "inferences/s", "LUT", "DSP",
                    "BRAM", _metric(points), "MHz", "stage"):  # fmt: skip
        left = heading in {"board", "stage"}
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    best = sorted(
        (point for point in points if point.is_front),
        key=lambda point: (point.board, -point.rate),
    )
    for point in best:
        used, available = point.mapped or point.estimated, point.available
        table.add_row(
            str(point.number), point.board, str(point.weight_bits), _goal(point),
            units.count(point.cycles_per_inference), units.rate(point.rate),
            *(units.percent(units.share(used.get(key, 0), available[key]))
              for key in ("lut", "dsp", "bram")),
            _said(_quality(point), _metric(points)), _clocks(point), point.stage,
        )  # fmt: skip
    if best:
        yield table
    refused: dict[tuple[str, str], list[str]] = {}
    for point in points:
        if point.refusal:
            name = f"{point.number} ({point.board}, {point.weight_bits} bits)"
            refused.setdefault((point.refusal, point.remedy), []).append(name)
    for (refusal, remedy), names in refused.items():
        yield Text(f"\n{', '.join(names)}: {refusal}" + (f"; {remedy}" if remedy else ""))


def _tenth(value: float) -> float:
    return round(value, 1)


def _names(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.board for point in points))


def _widths(points: Sequence[Point]) -> list[int]:
    return sorted({point.weight_bits for point in points}, reverse=True)


def _outline(shape: int, size: float) -> str:
    return SHAPES[shape % len(SHAPES)].format(size)


def _sizes(points: Sequence[Point]) -> dict[int, float]:
    """Return the half width of markers by the bits of weights."""
    return {
        bits: max(LARGEST - STEP * place, SMALLEST) for place, bits in enumerate(_widths(points))
    }


def _shapes(points: Sequence[Point]) -> dict[str, int]:
    """Return the number of an outline for each architecture."""
    return {arch: place for place, arch in enumerate(sorted({p.arch or "" for p in points}))}


def _span(point: Point) -> tuple[float, float] | None:
    """Return the least and the most inferences per second that placements would allow."""
    if point.placed is None or not point.placed.fmax_mhz or not point.cycles_per_inference:
        return None
    rates = [clock * 1e6 / point.cycles_per_inference for clock in point.placed.fmax_mhz.values()]
    return min(rates), max(rates)


def _clocks(point: Point) -> str:
    """Clock, and what placements reach."""
    clocks = [] if point.placed is None else sorted(point.placed.fmax_mhz.values())
    if not clocks:
        return f"{point.clock_mhz:g}"
    reached = f"{clocks[0]:.1f}"
    if len(clocks) > 1:
        reached += f"-{clocks[-1]:.1f}"
    return f"{point.clock_mhz:g} of {reached}"


def _goal(point: Point) -> str:
    goal = point.target_fps
    return "fastest" if goal is None else units.rate(goal)


def _metric(points: Sequence[Point]) -> str:
    known = (point.quality.metric for point in points if point.quality)
    return next(known, None) or "SQNR dB"


def _scored(points: Sequence[Point]) -> str:
    """Say of which samples scores are; nothing if there are none."""
    known = (point.quality for point in points if point.quality)
    return next((units.scored_samples(x.samples, calibrated=x.calibrated) for x in known), "")


def _quality(point: Point) -> float | None:
    found = point.quality
    if found is None:
        return None
    return found.fixed if found.metric else found.output_sqnr_db


def _said(value: float | None, metric: str) -> str:
    if value is None:
        return units.MISSING
    return f"{value:.1f}" if metric == "SQNR dB" else units.score(value, metric)
