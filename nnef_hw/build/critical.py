"""The longest path of a placed design, in the names of its layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

__all__ = ["longest_path", "name_parts"]

EDGE = "posedge "
ACCELERATOR = "accelerator"
HOST_LINK = "host link"


def longest_path(report: Mapping[str, Any]) -> list[list[Any]]:
    """Return the cells along the path that limits the clock, each with its delay in ns.

    A wire counts for the cell that drives it. Empty if no clock has a path.

    Parameters
    ----------
    report
        nextpnr's, of one placement.
    """
    slack = {
        clock: row["achieved"] / row["constraint"] for clock, row in report.get("fmax", {}).items()
    }
    paths = [
        path
        for path in report.get("critical_paths", ())
        if path["from"] == path["to"] and path["from"].removeprefix(EDGE) in slack
    ]
    if not paths:
        return []
    path = min(paths, key=lambda path: slack[path["from"].removeprefix(EDGE)])
    return [[hop["from"]["cell"], hop["delay"]] for hop in path["path"]]


def name_parts(
    path: Sequence[Sequence[Any]], instances: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the parts of the design that a path leads through.

    Parameters
    ----------
    path
        What :func:`longest_path` returns.
    instances
        Names of layers by their instances in the accelerator.

    Returns
    -------
    dict
        ``ns`` of the whole path, and ``parts`` in their order: ``name`` and ``ns``. None if there
        is no path.
    """
    if not path:
        return None
    named = [(_name(cell, instances), delay) for cell, delay in path]
    parts = [
        {"name": name, "ns": round(sum(delay for _, delay in hops), 3)}
        for name, hops in groupby(named, key=lambda hop: hop[0])
    ]
    return {"ns": round(sum(delay for _, delay in named), 3), "parts": parts}


def _name(cell: str, instances: Mapping[str, str]) -> str:
    """Return the layer of a cell, and the part of it; names of cells are those of the hierarchy."""
    levels = cell.split(".")
    if ACCELERATOR not in levels[:-1]:
        return HOST_LINK
    below = levels[levels.index(ACCELERATOR) + 1 :]
    name = instances.get(below[0], below[0])
    return f"{name}, {below[1]}" if below[0] in instances and len(below) > 2 else name
