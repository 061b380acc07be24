"""The network as boxes in rows, joined by its streams, each with where its time and hardware go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from nnef_hw.report.model.report import Report
from nnef_hw.report.pages.wires import Edge, Grid, Wiring, route
from nnef_hw.report.wording import units
from nnef_hw.report.wording.blocks import Block

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
    """One measure of a box: its label, its figure, and the pixels it fills."""

    title: str
    figure: str
    pixels: float
    is_limit: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """One layer or block; ``squeeze`` asks for the text of the images to be fitted to the box."""

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


def draw(report: Report, full_names: Mapping[str, str], shown: Sequence[Block]) -> Picture:
    """Lay blocks of layers out in rows of about equal length, read like text.

    Cycles are drawn against the interval of the whole network, multipliers and block RAM against
    the block that has most. ``full_names`` are the model's own names of the layers.
    """
    rows = max(1, ceil(len(shown) / PER_ROW))
    per_row = max(1, ceil(len(shown) / rows))
    width = min(WIDEST, (WIDTH - 2 * MARGIN - (per_row - 1) * GAP) / per_row)
    grid = Grid(
        count=len(shown),
        per_row=per_row,
        left=MARGIN,
        top=1.0,
        width=width,
        height=HEIGHT,
        gap=GAP,
    )
    outputs = {
        n
        for n, block in enumerate(shown)
        if any(layer.tensor in report.outputs for layer in block.layers)
    }
    wiring = route(grid, list(_edges(shown)), outputs)
    names = [units.printable(block.name or block.layers[0].name) for block in shown]
    labels = units.shorten(names, int((width - 2 * INSET) / NAME_PITCH))
    most = _Bars(
        report.cycles_per_inference,
        max((block.multipliers(report) for block in shown), default=0),
        max((sum(layer.bram for layer in block.layers) for block in shown), default=0),
    )
    boxes = tuple(
        _box(
            report,
            block,
            full_names.get(name, name),
            (grid.x(n), wiring.tops[grid.row(n)]),
            width,
            label,
            most,
        )
        for n, (block, name, label) in enumerate(zip(shown, names, labels, strict=True))
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


@dataclass(frozen=True, slots=True)
class _Bars:
    """Figures of a full bar: those of the network, or of the box that has most."""

    cycles: int
    multipliers: int
    bram: int


def _edges(shown: Sequence[Block]) -> Iterator[Edge]:
    """List the streams from block to block; what no layer computes comes from outside.

    Of several from one block to another it is the one with the longest FIFO.
    """
    numbers = {layer.tensor: n for n, block in enumerate(shown) for layer in block.layers}
    longest: dict[tuple[int, int], int] = {}
    for target, block in enumerate(shown):
        for source in (source for layer in block.layers for source in layer.sources):
            ends = numbers.get(source.tensor, -1), target
            if ends[0] != target:
                longest[ends] = max(longest.get(ends, 0), source.fifo)
    return (Edge(*ends, fifo) for ends, fifo in longest.items())


def _fifos(wiring: Wiring) -> Iterator[Fifo]:
    """Draw FIFOs; there is room for the word where a wire is long."""
    for wire in wiring.routes:
        if wire.fifo:
            short = wire.middle[1] in {top + HEIGHT / 2 for top in wiring.tops}
            label = units.count(wire.fifo) if short else f"FIFO {units.count(wire.fifo)}"
            yield Fifo(*wire.middle, round(len(label) * TINY_PITCH + 8, 1), label)


def _box(
    report: Report,
    block: Block,
    full_name: str,
    place: tuple[float, float],
    width: float,
    label: str,
    most: _Bars,
) -> Box:
    room = width - 2 * INSET
    cycles, multipliers = block.cycles(report), block.multipliers(report)
    bram = sum(layer.bram for layer in block.layers)
    slowest = units.bottlenecks(report)
    is_bottleneck = any(layer.name in slowest for layer in block.layers)
    what = f"{len(block.layers)} layers" if block.name else units.window(block.layers[0])
    operator_room = room - (TAG if is_bottleneck else 0)

    def pixels(part: float | None) -> float:
        filled = room * min(max(part or 0.0, 0.0), 1.0)
        return round(max(filled, 1.5) if part else 0.0, 1)

    def bar(title: str, value: int, whole: int, *, is_limit: bool = False) -> Bar:
        return Bar(title, units.count(value), pixels(units.share(value, whole)), is_limit)

    return Box(
        x=place[0],
        y=place[1],
        name=full_name,
        label=label,
        operator=units.middle(units.printable(what), int(operator_room / SMALL_PITCH)),
        images=block.images,
        squeeze=len(block.images) * SMALL_PITCH > room,
        is_bottleneck=is_bottleneck,
        bars=(
            bar("cycles", cycles, most.cycles, is_limit=is_bottleneck),
            bar("multipliers", multipliers, most.multipliers),
            bar("block RAM", bram, most.bram),
        ),
    )
