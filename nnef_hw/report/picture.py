"""The network as a chain of boxes in rows, each with where its time and hardware go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import Any

from nnef_hw.report import wording

__all__ = ["Bar", "Box", "Picture", "draw"]

PER_ROW = 5
WIDTH = 1040
MARGIN = 22
GAP = 28
WIDEST = 232
HEIGHT = 162
GUTTER = 34
INSET = 12
CORNER = 6
TAG = 56
NAME_PITCH = 7.4
SMALL_PITCH = 6.9


@dataclass(frozen=True, slots=True)
class Bar:
    """One measure of a layer: what it is, its figure, and the pixels it fills."""

    title: str
    figure: str
    pixels: float
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """One layer; ``squeeze`` asks for the text of the images to be fitted to the box."""

    x: float
    y: float
    name: str
    label: str
    operator: str
    images: str
    squeeze: bool
    is_bottleneck: bool
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """Geometry of the drawing; ``wires`` are SVG paths, ``ends`` where frames enter and leave."""

    width: float
    height: float
    box_width: float
    box_height: float
    inset: float
    boxes: tuple[Box, ...]
    wires: tuple[str, ...]
    ends: tuple[tuple[float, float], ...]


def draw(report: Mapping[str, Any]) -> Picture:
    """Lay the layers out in rows of about equal length, read like text.

    Cycles are drawn against the interval of the whole network, multipliers and block RAM against
    the layer that has most.
    """
    layers: Sequence[Mapping[str, Any]] = report["layers"]
    rows = max(1, ceil(len(layers) / PER_ROW))
    per_row = max(1, ceil(len(layers) / rows))
    width = min(WIDEST, (WIDTH - 2 * MARGIN - (per_row - 1) * GAP) / per_row)
    places = [
        (
            round(MARGIN + (i % per_row) * (width + GAP), 1),
            float(1 + (i // per_row) * (HEIGHT + GUTTER)),
        )
        for i in range(len(layers))
    ]
    names = [wording.printable(x["name"]) for x in layers]
    labels = wording.shorten(names, int((width - 2 * INSET) / NAME_PITCH))
    boxes = tuple(
        _box(report, layer, place, width, label)
        for layer, place, label in zip(layers, places, labels, strict=True)
    )
    wires, ends = _wires(places, width)
    return Picture(
        width=WIDTH,
        height=rows * (HEIGHT + GUTTER) - GUTTER + 2,
        box_width=round(width, 1),
        box_height=HEIGHT,
        inset=INSET,
        boxes=boxes,
        wires=wires,
        ends=ends,
    )


def _box(
    report: Mapping[str, Any],
    layer: Mapping[str, Any],
    place: tuple[float, float],
    width: float,
    label: str,
) -> Box:
    room = width - 2 * INSET
    cycles = wording.share(layer["cycles"], report["cycles_per_inference"])
    is_bottleneck = layer["name"] in wording.bottlenecks(report)
    operator = wording.printable(wording.window(layer))
    images = wording.images(layer)
    operator_room = room - (TAG if is_bottleneck else 0)

    def pixels(part: float | None) -> float:
        filled = room * min(max(part or 0.0, 0.0), 1.0)
        return round(max(filled, 1.5) if part else 0.0, 1)

    def part_of_most(key: str) -> float | None:
        return wording.share(layer[key], max(x[key] or 0 for x in report["layers"]))

    return Box(
        x=place[0],
        y=place[1],
        name=layer["name"],
        label=label,
        operator=wording.middle(operator, int(operator_room / SMALL_PITCH)),
        images=images,
        squeeze=len(images) * SMALL_PITCH > room,
        is_bottleneck=is_bottleneck,
        bars=(
            Bar("cycles", wording.count(layer["cycles"]), pixels(cycles), is_bottleneck),
            Bar(
                "multipliers",
                wording.count(layer["multipliers"]),
                pixels(part_of_most("multipliers")),
            ),
            Bar("block RAM", wording.count(layer["bram"]), pixels(part_of_most("bram"))),
        ),
    )


def _wires(
    places: Sequence[tuple[float, float]], width: float
) -> tuple[tuple[str, ...], tuple[tuple[float, float], ...]]:
    if not places:
        return (), ()
    middle = HEIGHT / 2
    first, last = places[0], places[-1]
    start = (MARGIN - 16.0, first[1] + middle)
    end = (round(last[0] + width + 16, 1), last[1] + middle)
    wires = [f"M{start[0]} {start[1]}H{first[0]}"]
    for (x, y), (next_x, next_y) in pairwise(places):
        if y == next_y:
            wires.append(f"M{round(x + width, 1)} {y + middle}H{next_x}")
        else:
            wires.append(_wrap(round(x + width, 1), y + middle, next_x, next_y + middle))
    wires.append(f"M{round(last[0] + width, 1)} {end[1]}H{end[0]}")
    return tuple(wires), (start, end)


def _wrap(x: float, y: float, next_x: float, next_y: float) -> str:
    """Lead around the end of a row, through the gutter, to the start of the next."""
    out, back = round(x + 13, 1), round(next_x - 16, 1)
    gutter = y + HEIGHT / 2 + GUTTER / 2
    r = CORNER
    return (
        f"M{x} {y}H{out - r}q{r} 0 {r} {r}V{gutter - r}q0 {r} {-r} {r}"
        f"H{back + r}q{-r} 0 {-r} {r}V{next_y - r}q0 {r} {r} {r}H{next_x}"
    )
