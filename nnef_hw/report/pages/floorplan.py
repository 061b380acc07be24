"""Places of a design's layers in the device, as a drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from nnef_hw.report.model.device import Floorplan, Spots
from nnef_hw.report.model.report import Report
from nnef_hw.report.wording import units

__all__ = ["FloorplanDrawing", "Region", "draw_floorplan"]

HUE_STEP = 137.508
"""Degrees between the colours of neighbours: the golden angle, so that none come twice."""
LEAST_TILE = 8
LOGIC = "lut"
BLOCKS = {"dsp": "DSP", "bram": "block RAM", "spram": "SPRAM"}


@dataclass(frozen=True, slots=True)
class Region:
    """Outlines of a layer: SVG paths of its logic and of its block RAMs and DSP blocks.

    ``hue`` is in degrees; None for what is no layer's.
    """

    number: int
    name: str
    hue: float | None
    logic: str
    blocks: str
    figures: str


@dataclass(frozen=True, slots=True)
class FloorplanDrawing:
    """Geometry of the picture; ``path`` are the points of the path that limits the clock."""

    width: int
    height: int
    regions: tuple[Region, ...]
    path: str


def draw_floorplan(report: Report, floorplan: Floorplan | None) -> FloorplanDrawing | None:
    """Draw every tile of the device as a square, which its LUTs fill; None without a placement.

    Parameters
    ----------
    report
        Its layers, in their order, have the first colours.
    floorplan
        Places of the cells.
    """
    if floorplan is None:
        return None
    columns, rows = floorplan.size
    regions = floorplan.regions
    layers = [layer.name for layer in report.layers]
    names = [name for name in layers if name in regions]
    names += sorted(set(regions) - {*layers, ""}) + [""] * ("" in regions)
    logic, most = _stacked([regions[name].get(LOGIC, ()) for name in names])
    tile = max(most, LEAST_TILE)
    height = rows * tile

    def place(column: int, row: int) -> tuple[float, float]:
        return (column + 0.5) * tile, height - (row + 0.5) * tile

    def blocks(resources: Mapping[str, Spots]) -> Iterator[str]:
        for key in BLOCKS:
            for column, row, _ in resources.get(key, ()):
                x, y = column * tile + 1, height - (row + 1) * tile + 1
                yield f"M{x} {y}h{tile - 2}v{tile - 2}h{2 - tile}z"

    def runs(found: list[tuple[int, int, int]]) -> Iterator[str]:
        for column, first, last in found:
            y = height - last * tile / most
            yield f"M{column * tile} {y:g}h{tile - 1}v{(last - first) * tile / most:g}h{1 - tile}z"

    return FloorplanDrawing(
        width=columns * tile,
        height=height,
        regions=tuple(
            Region(
                number=number,
                name=name,
                hue=round(number * HUE_STEP % 360, 1) if name else None,
                logic="".join(runs(found)),
                blocks="".join(blocks(regions[name])),
                figures=_figures(regions[name]),
            )
            for number, (name, found) in enumerate(zip(names, logic, strict=True))
        ),
        path=" ".join(f"{x:g},{y:g}" for x, y in (place(*spot) for spot in floorplan.path)),
    )


Runs = list[tuple[int, int, int]]


def _stacked(regions: Sequence[Spots]) -> tuple[list[Runs], int]:
    """Return for each region its stacks of cells, (column, first, last), and the most of a tile.

    First and last are counted in places for a cell, as many to a tile as the fullest has; what
    touches is one stack.
    """
    filled: dict[tuple[int, int], int] = {}
    for region in regions:
        for column, row, count in region:
            filled[column, row] = filled.get((column, row), 0) + count
    most = max(filled.values(), default=1)
    filled.clear()
    stacks = []
    for region in regions:
        found: Runs = []
        for column, row, count in sorted(region):
            first = row * most + filled.get((column, row), 0)
            filled[column, row] = filled.get((column, row), 0) + count
            if found and found[-1][0] == column and found[-1][2] == first:
                first = found.pop()[1]
            found.append((column, first, row * most + filled[column, row]))
        stacks.append(found)
    return stacks, most


def _figures(resources: Mapping[str, Spots]) -> str:
    """Say how many LUTs and blocks there are."""
    titles = {LOGIC: "LUT", **BLOCKS}
    counts = {key: sum(count for _, _, count in resources.get(key, ())) for key in titles}
    return ", ".join(f"{units.count(n)} {titles[key]}" for key, n in counts.items() if n)
