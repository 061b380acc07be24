"""The longest path of a placed design, in the names of its layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from nnef_hw.architecture.architecture import Station
from nnef_hw.report.model.device import LongestPath, PathPart

__all__ = [
    "ADDED",
    "OUTSIDE",
    "block_of",
    "name_parts",
    "owners_of",
]

ACCELERATOR = "accelerator"
HOST_LINK = "host link"
SHARED = "shared engine"
ADDED = "$nextpnr_"
"""With what the names of cells and nets begin that nextpnr has made."""
OUTSIDE = ""
"""The block of all that is not in the accelerator."""


def owners_of(stations: Iterable[Station]) -> dict[str, str]:
    """Return the names of layers by their instances; one that runs several is theirs together."""
    owners: dict[str, str] = {}
    for station in stations:
        owners[station.instance] = SHARED if station.instance in owners else station.name
    return owners


def name_parts(path: Sequence[Sequence[Any]], instances: Mapping[str, str]) -> LongestPath | None:
    """Return the parts of the design that a path leads through.

    Parameters
    ----------
    path
        :attr:`.SynthesisResult.path`.
    instances
        Names of layers by their instances in the accelerator.

    Returns
    -------
    LongestPath
        None if there is no path.
    """
    if not path:
        return None
    named: list[tuple[str, float]] = []
    for cell, delay in path:
        # nextpnr's own cells are amid the carry chain or the net of the cell before
        is_added = cell.startswith(ADDED) and named
        named.append((named[-1][0] if is_added else _name(cell, instances), delay))
    parts = tuple(
        PathPart(name, round(sum(delay for _, delay in hops), 3))
        for name, hops in groupby(named, key=lambda hop: hop[0])
    )
    return LongestPath(round(sum(delay for _, delay in named), 3), parts)


def _name(cell: str, instances: Mapping[str, str]) -> str:
    """Return the layer of a cell, and the part of it; names of cells are those of the hierarchy."""
    block, below = _levels(cell)
    if block == OUTSIDE:
        return HOST_LINK
    name = instances.get(block, block)
    return f"{name}, {below[0]}" if block in instances and len(below) > 1 else name


def block_of(cell: str) -> str:
    """Return the instance in the accelerator that a cell belongs to; else :data:`OUTSIDE`."""
    return _levels(cell)[0]


def _levels(cell: str) -> tuple[str, list[str]]:
    """Split a cell's name into the instance in the accelerator, and what is below it."""
    levels = cell.split(".")
    if ACCELERATOR not in levels[:-1]:
        return OUTSIDE, []
    block, *below = levels[levels.index(ACCELERATOR) + 1 :]
    return block, below
