"""Placements with several seeds: the first that is in time, or the fastest."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from functools import partial

from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.errors import UnroutedError
from nnef_hw.place.nextpnr.attempt import IsNeedless
from nnef_hw.place.nextpnr.policy import MOST_SEEDS
from nnef_hw.place.nextpnr.run import SupersededError
from nnef_hw.place.nextpnr.timing import slack_of
from nnef_hw.system.process_group import run_parallel

__all__ = ["placements_of"]

_Report = JsonObject


def placements_of(
    place: Callable[[int, IsNeedless], _Report], seeds: Sequence[int]
) -> tuple[dict[int, _Report], list[int]]:
    """Return reports of placements by their seeds, and seeds of placements without a route.

    There is none behind the first that is in time, nor one that was known to be late once another
    is in time: what is returned does not depend on which was faster.

    Raises
    ------
    UnroutedError
        If no placement has a route.
    """
    met: list[int] = []
    late: set[int] = set()
    reports: dict[int, _Report] = {}
    errors: dict[int, UnroutedError] = {}

    def attempt(seed: int) -> None:
        def is_needless(in_reach: bool) -> bool:
            if not in_reach:
                late.add(seed)
            return bool(met) and (seed in late or min(met) < seed)

        if is_needless(True):
            return
        try:
            reports[seed] = report = place(seed, is_needless)
        except UnroutedError as error:
            errors[seed] = error
        except SupersededError:
            return
        else:
            if slack_of(report) >= 1 and seed not in late:
                met.append(seed)

    run_parallel([partial(attempt, seed) for seed in seeds], os.cpu_count())
    following = itertools.count(max(seeds) + 1)
    while len(errors) < MOST_SEEDS and not reports:
        attempt(next(following))
    if not reports:
        *_, last = errors.values()
        tried = ", ".join(map(str, sorted(errors)))
        raise UnroutedError(
            f"seeds {tried} lead to no placement with a route; of the last one: {last.reason}",
            remedy=last.remedy,
        ) from last
    if met:
        needless = late | {seed for seed in seeds if seed > min(met)}
        reports = {seed: report for seed, report in reports.items() if seed not in needless}
        errors = {seed: error for seed, error in errors.items() if seed not in needless}
    return {seed: reports[seed] for seed in sorted(reports)}, sorted(errors)
