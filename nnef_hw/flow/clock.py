"""The fastest clock of a design, which only place and route knows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from nnef_hw.errors import UnroutedError

__all__ = ["GAIN", "search_clock"]

MOST_CLOCKS = 6
"""Clocks that are tried before the fastest that was met is taken."""
NEXT_SHARE = 0.98
"""The fastest clock that is tried after one that was missed, as a share of it."""
GAIN = 1.01
"""Factor that a further try has to promise over the best clock so far."""
UNROUTED_SHARE = 0.5
"""The fastest clock that is tried after one for which there was no route, as a share of it."""
MOST_UNROUTED = 2
"""Clocks without a route before any was met, after which there is none to be expected."""


def search_clock(
    probe: float,
    available: Callable[[float], float],
    place: Callable[[float], tuple[float, bool]],
    *,
    gain: float = GAIN,
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
    gain
        Factor that a further try has to promise over the best clock; infinite for the first clock
        that is met, from the probe downwards.

    Raises
    ------
    UnroutedError
        If no placement has a route, for several clocks.
    """
    limit, missed, met, tried, unrouted = probe, math.inf, 0.0, 0.0, 0
    for count in itertools.count(1):
        tried = available(limit)
        try:
            reached, enough = place(tried)
        except UnroutedError:
            # the harder a clock is, the more of the shortest wires are wanted
            unrouted += 1
            if not met and unrouted >= MOST_UNROUTED:
                raise
            reached, enough = UNROUTED_SHARE * tried, False
        if enough:
            met = tried
        else:
            missed = NEXT_SHARE * tried
        limit = min(reached, missed)
        if met and (count >= MOST_CLOCKS or available(limit) < gain * met):
            break
    if tried != met:
        place(met)
    return met
