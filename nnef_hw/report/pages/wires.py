"""Wires between boxes that stand in rows: straight ones, and detours through the gutters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

__all__ = ["Edge", "Grid", "Route", "Wiring", "route"]

CORNER = 6.0
STUB = 16.0
FIRST_TRACK = 17.0
TRACK_PITCH = 15.0
CLEARANCE = 12.0
LEAVE, ENTER = 0.74, 0.26
ENTRY_PITCH = 14.0

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Edge:
    """A stream from one box to another, by their numbers; -1 is what comes from outside."""

    source: int
    target: int
    fifo: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """Boxes of one size, ``per_row`` in a row."""

    count: int
    per_row: int
    left: float
    top: float
    width: float
    height: float
    gap: float

    def row(self, box: int) -> int:
        """Row of a box, or of the start."""
        return max(box, 0) // self.per_row

    def x(self, box: int) -> float:
        """Left edge of a box."""
        return round(self.left + box % self.per_row * (self.width + self.gap), 1)

    @property
    def right(self) -> float:
        """Right edge of the last box of a full row."""
        return round(self.x(self.per_row - 1) + self.width, 1)


@dataclass(frozen=True, slots=True)
class Route:
    """A wire as an SVG path, and where its FIFO is drawn."""

    path: str
    fifo: int
    middle: Point


@dataclass(frozen=True, slots=True)
class Wiring:
    """All wires, those that leave last; tops of the rows; dots at the ends; size of the whole."""

    routes: tuple[Route, ...]
    exits: tuple[str, ...]
    dots: tuple[Point, ...]
    tops: tuple[float, ...]
    right: float
    bottom: float


@dataclass
class _Gutter:
    """Horizontal tracks below a row, shared by wires that do not overlap."""

    tracks: list[list[tuple[float, float]]] = field(default_factory=list)

    def take(self, first: float, last: float) -> int:
        """Return the first track that is free between two places."""
        start, end = min(first, last) - CLEARANCE, max(first, last) + CLEARANCE
        for number, occupied in enumerate(self.tracks):
            if all(end <= other_start or other_end <= start for other_start, other_end in occupied):
                occupied.append((start, end))
                return number
        self.tracks.append([(start, end)])
        return len(self.tracks) - 1


@dataclass(frozen=True, slots=True)
class _Wire:
    """A wire before rows have their heights: places along it, where a gutter gives the height.

    A stop is (x, row, track): on a track of the gutter below a row; without a track, at the
    middle of the row's boxes.
    """

    edge: Edge
    stops: tuple[tuple[float, int, int | None], ...]
    starts_below: bool = False
    end: str = "left"


def route(grid: Grid, edges: Sequence[Edge], outputs: Collection[int] = ()) -> Wiring:
    """Lay the wires: to the next box straight or around the end of the row, others by gutters.

    What no box reads leaves, and so does what the boxes ``outputs`` give. Wires that cross more
    than one row, or go back to an earlier one, run beside the rows, each in a column of its own.
    """
    gutters: defaultdict[int, _Gutter] = defaultdict(_Gutter)
    entries: Counter[tuple[int, str]] = Counter()
    straight: set[tuple[int, int]] = set()
    columns = 0
    wires = []
    for edge in edges:
        ends = (edge.source, edge.target)
        if edge.target == edge.source + 1 and ends not in straight:
            straight.add(ends)
            wires.append(_straight(grid, gutters, edge))
            continue
        far = not 0 <= grid.row(edge.target) - grid.row(edge.source) <= 1
        columns += far
        column = grid.right + STUB + 2 + CORNER * columns
        wires.append(_detour(grid, gutters, entries, edge, column))
    rows = grid.row(grid.count - 1) + 1
    tops = [grid.top]
    for row in range(rows):
        tops.append(tops[-1] + grid.height + _depth(gutters[row], is_last=row == rows - 1))

    def at(box: int) -> Point:
        return round(grid.x(box) + grid.width, 1), tops[grid.row(box)] + grid.height / 2

    read = {edge.source for edge in edges}
    leaving = [at(box) for box in range(grid.count) if box not in read or box in outputs]
    start = (grid.left - STUB, grid.top + grid.height / 2)
    return Wiring(
        routes=tuple(_draw(grid, tops, wire) for wire in wires),
        exits=tuple(f"M{x} {y}H{round(x + STUB, 1)}" for x, y in leaving),
        dots=(start, *((round(x + STUB, 1), y) for x, y in leaving)),
        tops=tuple(tops[:-1]),
        right=grid.right + STUB + 6 + CORNER * (columns + 1),
        bottom=tops[-1],
    )


def _depth(gutter: _Gutter, *, is_last: bool) -> float:
    """Height of a gutter: never narrower than one track, except below the last row."""
    if is_last and not gutter.tracks:
        return 0
    return 2 * FIRST_TRACK + TRACK_PITCH * max(0, len(gutter.tracks) - 1)


def _straight(grid: Grid, gutters: defaultdict[int, _Gutter], edge: Edge) -> _Wire:
    row = grid.row(edge.source)
    leave = grid.left - STUB if edge.source < 0 else round(grid.x(edge.source) + grid.width, 1)
    enter = grid.x(edge.target)
    if row == grid.row(edge.target):
        return _Wire(edge, ((leave, row, None), (enter, row, None)))
    out, back = round(leave + STUB - 3, 1), round(enter - STUB, 1)
    track = gutters[row].take(out, back)
    stops = (
        (leave, row, None), (out, row, None), (out, row, track), (back, row, track),
        (back, row + 1, None), (enter, row + 1, None),
    )  # fmt: skip
    return _Wire(edge, stops)


def _detour(
    grid: Grid,
    gutters: defaultdict[int, _Gutter],
    entries: Counter[tuple[int, str]],
    edge: Edge,
    column: float,
) -> _Wire:
    row, last = grid.row(edge.source), grid.row(edge.target)
    side = "bottom" if row >= last else "top"
    leave = grid.left - STUB
    if edge.source >= 0:
        leave = round(grid.x(edge.source) + LEAVE * grid.width, 1)
    nth = entries[edge.target, side]
    entries[edge.target, side] += 1
    enter = round(grid.x(edge.target) + ENTER * grid.width + ENTRY_PITCH * nth, 1)
    stops: list[tuple[float, int, int | None]] = [(leave, row, None)]
    if not 0 <= last - row <= 1:
        track = gutters[row].take(leave, column)
        stops += [(leave, row, track), (column, row, track)]
        leave, row = column, last - 1 if last > row else last
    track = gutters[row].take(leave, enter)
    stops += [(leave, row, track), (enter, row, track), (enter, last, None)]
    return _Wire(edge, tuple(stops), starts_below=edge.source >= 0, end=side)


def _draw(grid: Grid, tops: Sequence[float], wire: _Wire) -> Route:
    def height(row: int, track: int | None) -> float:
        if track is None:
            return tops[row] + grid.height / 2
        return tops[row] + grid.height + FIRST_TRACK + TRACK_PITCH * track

    points = [(x, height(row, track)) for x, row, track in wire.stops]
    if wire.starts_below:
        points[0] = (points[0][0], tops[wire.stops[0][1]] + grid.height)
    if wire.end != "left":
        row = wire.stops[-1][1]
        points[-1] = (points[-1][0], tops[row] + (grid.height if wire.end == "bottom" else 0))
    longest = max(
        (pair for pair in pairwise(points) if pair[0][1] == pair[1][1]),
        key=lambda pair: abs(pair[0][0] - pair[1][0]),
    )
    middle = round((longest[0][0] + longest[1][0]) / 2, 1), longest[0][1]
    return Route("".join(_rounded(points)), wire.edge.fifo, middle)


def _rounded(points: Sequence[Point]) -> Iterator[str]:
    """Write a path of horizontal and vertical parts with rounded corners."""
    yield f"M{points[0][0]} {points[0][1]}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        in_x, in_y = _direction(before, corner)
        out_x, out_y = _direction(corner, after)
        if in_x:
            yield f"H{round(corner[0] - in_x * CORNER, 1)}"
        else:
            yield f"V{round(corner[1] - in_y * CORNER, 1)}"
        yield f"q{in_x * CORNER} {in_y * CORNER} "
        yield f"{(in_x + out_x) * CORNER} {(in_y + out_y) * CORNER}"
    if points[-1][1] == points[-2][1]:
        yield f"H{points[-1][0]}"
    else:
        yield f"V{points[-1][1]}"


def _direction(first: Point, last: Point) -> tuple[int, int]:
    def sign(value: float) -> int:
        return (value > 0) - (value < 0)

    return sign(last[0] - first[0]), sign(last[1] - first[1])
