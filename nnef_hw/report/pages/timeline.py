"""The steady frame as rows of areas: which share of its time every layer works."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from nnef_hw.architecture.timeline import Activity, Timeline
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["Drawing", "Row", "draw_timeline"]

WIDTH = 1040
LABEL_WIDTH = 180
FIGURE_WIDTH = 56
PITCH = 24
BAR = 16
LEAST = 0.8
AXIS = 26
NAME_PITCH = 7.4
TICKS = 4


@dataclass(frozen=True, slots=True)
class Row:
    """One layer: SVG paths of the cycles it works, and of those in which it works or waits."""

    y: float
    name: str
    label: str
    busy: str
    occupied: str
    figure: str
    shares: str
    is_bottleneck: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Geometry of the timeline; ``ticks`` are (x, cycle)."""

    width: float
    height: float
    left: float
    right: float
    bar: float
    rows: tuple[Row, ...]
    ticks: tuple[tuple[float, str], ...]


def draw_timeline(report: Report, timeline: Timeline) -> Drawing:
    """Draw inputs and blocks as rows whose height is the share of each step."""
    activities = [*timeline.inputs, *timeline.blocks]
    left, right = LABEL_WIDTH, WIDTH - FIGURE_WIDTH
    names = [units.printable(activity.name) for activity in activities]
    labels = units.shorten(names, int((LABEL_WIDTH - 14) / NAME_PITCH))
    slowest = units.bottlenecks(report)
    height = PITCH * len(activities)
    scale = (right - left) / timeline.interval
    return Drawing(
        width=WIDTH,
        height=height + AXIS,
        left=left,
        right=right,
        bar=BAR,
        rows=tuple(
            _row(timeline, activity, PITCH * n, label, scale, slowest)
            for n, (activity, label) in enumerate(zip(activities, labels, strict=True))
        ),
        ticks=tuple(
            (round(left + cycle * scale, 1), units.count(cycle))
            for cycle in (timeline.interval * n // TICKS for n in range(TICKS + 1))
        ),
    )


def _row(
    timeline: Timeline,
    activity: Activity,
    y: float,
    label: str,
    scale: float,
    slowest: Sequence[str],
) -> Row:
    base = y + BAR
    is_input = any(activity is item for item in timeline.inputs)
    # An input is always there: that it waits says nothing.
    shows_waiting = not is_input and any(activity.waiting)
    busy = sum(activity.busy)
    occupied = [b + w for b, w in zip(activity.busy, activity.waiting, strict=True)]
    return Row(
        y=y,
        name=activity.name,
        label=label,
        busy="".join(_area(timeline, activity.busy, base, scale)),
        occupied="".join(_area(timeline, occupied, base, scale)) if shows_waiting else "",
        figure=units.percent(units.share(busy, timeline.interval)),
        shares=f"{units.count(busy)} codes" if is_input else _shares(timeline, activity),
        is_bottleneck=not is_input and activity.name in slowest,
    )


def _shares(timeline: Timeline, activity: Activity) -> str:
    busy, waiting = sum(activity.busy), sum(activity.waiting)
    cycles = {"works": busy, "waits": waiting, "starves": timeline.interval - busy - waiting}
    return ", ".join(f"{verb} {units.count(n)} cycles" for verb, n in cycles.items())


def _area(timeline: Timeline, cycles: Sequence[int], base: float, scale: float) -> Iterator[str]:
    """Write an area as rectangles, one for neighbouring steps of the same height.

    What is more than nothing can be seen.
    """
    step = timeline.step
    steps = [
        (n * step, min(step, timeline.interval - n * step), count) for n, count in enumerate(cycles)
    ]

    def height_of(item: tuple[int, int, int]) -> float:
        return max(LEAST, round(BAR * item[2] / item[1], 1)) if item[2] else 0.0

    for height, group in groupby(steps, key=height_of):
        if height:
            items = list(group)
            x = round(LABEL_WIDTH + items[0][0] * scale, 1)
            end = round(LABEL_WIDTH + (items[-1][0] + items[-1][1]) * scale, 1)
            yield f"M{x} {base}V{round(base - height, 1)}H{end}V{base}z"
