"""The fastest clock of a design, which only place and route knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

__all__ = ["search_clock"]

MOST_CLOCKS = 6
"""Clocks that are tried before the fastest that was met is taken."""
NEXT_SHARE = 0.98
"""The fastest clock that is tried after one that was missed, as a share of it."""
GAIN = 1.01
"""Factor that a further try has to promise over the best clock so far."""


def search_clock(
    probe: float, available: Callable[[float], float], place: Callable[[float], tuple[float, bool]]
) -> float:
    """Return the fastest clock that was met, in MHz; it is the one that was placed last.

    A placement for another clock is another placement, so that what one reaches need not be what
    the next one does.

    Parameters
    ----------
    probe
        Limit of the first clock, beyond what the design reaches.
    available
        The fastest clock up to a limit; raises an error if there is none.
    place
        Places the design for a clock; returns the clock that it reaches, and if that is enough.
    """
    limit, missed, met, tried = probe, math.inf, 0.0, 0.0
    for count in itertools.count(1):
        tried = available(limit)
        reached, enough = place(tried)
        if enough:
            met = tried
        else:
            missed = NEXT_SHARE * tried
        limit = min(reached, missed)
        if met and (count >= MOST_CLOCKS or available(limit) < GAIN * met):
            break
    if tried != met:
        place(met)
    return met
