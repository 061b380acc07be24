"""Report of nextpnr on one placement: clocks, the longest path, and what is used."""

from __future__ import annotations

import math
from collections.abc import Mapping

from nnef_hw.arithmetic.records import JsonObject, JsonView
from nnef_hw.place.nextpnr.dialect import Dialect

__all__ = ["clocks_of", "limiting_path", "longest_path", "slack_of", "slowest_clock", "used_by"]

EDGE = "posedge "


def longest_path(report: Mapping[str, object]) -> list[list[object]]:
    """Return the cells along the path that limits the clock, each with its delay in ns.

    A wire counts for the cell that drives it. Empty if no clock has a path.

    Parameters
    ----------
    report
        nextpnr's, of one placement.
    """
    return [[hop["from"]["cell"], hop["delay"]] for hop in limiting_path(report)]


def limiting_path(report: JsonView) -> list[JsonObject]:
    """Return the hops of the path that limits the clock as nextpnr's report has them."""
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
    hops: list[dict[str, object]] = path["path"]
    return hops


def used_by(report: JsonView, dialect: Dialect) -> dict[str, int]:
    """Return how much of each resource a placement uses, from nextpnr's report."""
    rows = report["utilization"]
    counts = {cell: (row["used"], row["available"]) for cell, row in rows.items()}
    return {name: used for name, (used, _) in dialect.utilization(counts).items()}


def clocks_of(report: JsonView) -> dict[str, tuple[float, float]]:
    """Return frequency and constraint of every clock in nextpnr's report."""
    # rounded down, lest a clock be promised that is not there
    return {
        name: (math.floor(clock["achieved"] * 1000) / 1000, clock["constraint"])
        for name, clock in report["fmax"].items()
    }


def slowest_clock(
    clocks: Mapping[str, tuple[float, float]], frequency_mhz: float
) -> tuple[float | None, float]:
    """Return the clock that is closest to missing its constraint."""
    return min(
        clocks.values(), key=lambda clock: clock[0] / clock[1], default=(None, frequency_mhz)
    )


def slack_of(report: Mapping[str, object]) -> float:
    """Return by what factor the constraints of a placement are reached."""
    return min((fmax / limit for fmax, limit in clocks_of(report).values()), default=1.0)
