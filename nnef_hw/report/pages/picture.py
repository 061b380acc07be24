"""The network as boxes in rows, joined by its streams, each with where its time and hardware go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from nnef_hw.report.model.layers import LayerReport
from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.wires import Edge, Grid, Wiring, route
from nnef_hw.report.wording import units

__all__ = ["Bar", "Box", "Fifo", "Picture", "draw"]

PER_ROW = 5
WIDTH = 1040
MARGIN = 22
GAP = 28
WIDEST = 232
HEIGHT = 162
INSET = 12
TAG = 56
NAME_PITCH = 7.4
SMALL_PITCH = 6.9
TINY_PITCH = 6.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One measure of a layer: its label, its figure, and the pixels it fills."""

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
class Fifo:
    """A FIFO on a wire: its middle, its width in the drawing, and its label."""

    x: float
    y: float
    width: float
    label: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Geometry of the drawing.

    ``wires`` are SVG paths from box to box, ``exits`` those that leave; ``ends`` is where frames
    enter and leave.
    """

    width: float
    height: float
    box_width: float
    box_height: float
    inset: float
    boxes: tuple[Box, ...]
    wires: tuple[str, ...]
    exits: tuple[str, ...]
    fifos: tuple[Fifo, ...]
    ends: tuple[tuple[float, float], ...]


def draw(report: Report, full_names: Mapping[str, str]) -> Picture:
    """Lay the layers out in rows of about equal length, read like text.

    Cycles are drawn against the interval of the whole network, multipliers and block RAM against
    the layer that has most. ``full_names`` are the model's own names of the layers.
    """
    layers = report.layers
    rows = max(1, ceil(len(layers) / PER_ROW))
    per_row = max(1, ceil(len(layers) / rows))
    width = min(WIDEST, (WIDTH - 2 * MARGIN - (per_row - 1) * GAP) / per_row)
    grid = Grid(
        count=len(layers),
        per_row=per_row,
        left=MARGIN,
        top=1.0,
        width=width,
        height=HEIGHT,
        gap=GAP,
    )
    outputs = {n for n, layer in enumerate(layers) if layer.tensor in report.outputs}
    wiring = route(grid, list(_edges(layers)), outputs)
    names = [units.printable(x.name) for x in layers]
    labels = units.shorten(names, int((width - 2 * INSET) / NAME_PITCH))
    boxes = tuple(
        _box(
            report,
            layer,
            full_names[layer.name],
            (grid.x(n), wiring.tops[grid.row(n)]),
            width,
            label,
        )
        for n, (layer, label) in enumerate(zip(layers, labels, strict=True))
    )
    return Picture(
        width=max(WIDTH, round(wiring.right, 1)),
        height=wiring.bottom + 1,
        box_width=round(width, 1),
        box_height=HEIGHT,
        inset=INSET,
        boxes=boxes,
        wires=tuple(wire.path for wire in wiring.routes),
        exits=wiring.exits,
        fifos=tuple(_fifos(wiring)),
        ends=wiring.dots,
    )


def _edges(layers: Sequence[LayerReport]) -> Iterator[Edge]:
    """List the streams from layer to layer; what no layer computes comes from outside."""
    numbers = {layer.tensor: n for n, layer in enumerate(layers)}
    for target, layer in enumerate(layers):
        for source in layer.sources:
            yield Edge(numbers.get(source.tensor, -1), target, source.fifo)


def _fifos(wiring: Wiring) -> Iterator[Fifo]:
    """Draw FIFOs; there is room for the word where a wire is long."""
    for wire in wiring.routes:
        if wire.fifo:
            short = wire.middle[1] in {top + HEIGHT / 2 for top in wiring.tops}
            label = units.count(wire.fifo) if short else f"FIFO {units.count(wire.fifo)}"
            yield Fifo(*wire.middle, round(len(label) * TINY_PITCH + 8, 1), label)


def _box(
    report: Report,
    layer: LayerReport,
    full_name: str,
    place: tuple[float, float],
    width: float,
    label: str,
) -> Box:
    room = width - 2 * INSET
    cycles = units.share(layer.cycles, report.cycles_per_inference)
    is_bottleneck = layer.name in units.bottlenecks(report)
    operator = units.printable(units.window(layer))
    images = units.images(layer)
    operator_room = room - (TAG if is_bottleneck else 0)

    def pixels(part: float | None) -> float:
        filled = room * min(max(part or 0.0, 0.0), 1.0)
        return round(max(filled, 1.5) if part else 0.0, 1)

    def part_of_most(key: str) -> float | None:
        return units.share(getattr(layer, key), max(getattr(x, key) for x in report.layers))

    return Box(
        x=place[0],
        y=place[1],
        name=full_name,
        label=label,
        operator=units.middle(operator, int(operator_room / SMALL_PITCH)),
        images=images,
        squeeze=len(images) * SMALL_PITCH > room,
        is_bottleneck=is_bottleneck,
        bars=(
            Bar("cycles", units.count(layer.cycles), pixels(cycles), is_bottleneck),
            Bar(
                "multipliers",
                units.count(layer.multipliers),
                pixels(part_of_most("multipliers")),
            ),
            Bar("block RAM", units.count(layer.bram), pixels(part_of_most("bram"))),
        ),
    )
