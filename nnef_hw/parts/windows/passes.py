"""Cycles of passes over windows, whose sums leave one by one while later passes begin."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

from nnef_hw.parts.base.maxplus import (
    Times,
    after,
    cycle_mean,
    followed_by,
    latest,
    nothing,
    repeated,
)  # fmt: skip

__all__ = ["window_cycles"]

TAKEN, BEFORE, ENDED, FREED, READ = range(5)
"""Taken from the array or the queue behind it: the sum before, and the one before that. A pass's
last sum left the array: of the pass before, and of that whose place the next one takes. The next
pass can be read."""


@lru_cache(1 << 14)
def window_cycles(
    channels: int,
    rows: int,
    words: int,
    latency: int,
    kept_passes: int,
    interval: int,
    queued: bool,
) -> Fraction:
    """Return cycles per window of an array that always has a window to read, in the long run.

    Parameters
    ----------
    channels, rows
        Sums of a window; of a pass, of which the last one may have fewer.
    words
        Words of a pass; one is read per cycle.
    latency
        Cycles from the accepted last word of a pass to its first sum.
    kept_passes
        Passes whose sums may be inside, 1 or 2: the last word of the next one waits until all
        sums of the first one of them have left.
    interval
        Cycles from one sum that is taken to the next.
    queued
        Whether two sums may stand between the array and what takes them.
    """
    spacing = max(interval, 1)
    full, rest = divmod(channels, rows)
    passes = full + (rest > 0)
    # What each pass takes by itself is exact where all are alike, and where one thing bounds all.
    stay = latency + 1 + _stay(rows, spacing, queued)
    bound = max(words, rows * spacing) * kept_passes
    alike, least = max(bound, stay) * passes, max(passes * words, channels * spacing)
    if not rest or alike == least * kept_passes:
        return Fraction(alike, kept_passes)
    window = repeated(_pass(rows, words, latency, kept_passes, spacing, queued), full)
    if rest:
        last = _pass(rest, words, latency, kept_passes, spacing, queued)
        window = followed_by(window, last)
    return cycle_mean(window)


def _stay(sums: int, spacing: int, queued: bool) -> int:
    """Cycles from the first to the last sum of a pass that leaves an array."""
    if not queued:
        return (sums - 1) * spacing
    # Two wait behind the one that was taken.
    return max(sums - 1, 2 + (sums - 3) * spacing)


def _pass(
    sums: int, words: int, latency: int, kept_passes: int, spacing: int, queued: bool
) -> list[Times]:
    """Return the max-plus matrix of a pass over the five times."""
    start = nothing(5)
    accepted = latest(start[READ], after(start[FREED], 1))
    first = latest(after(accepted, latency), after(start[ENDED], 1))
    one = _leave(first, start[TAKEN], start[BEFORE], spacing, queued)
    left, taken, before = followed_by(one, _more(sums - 1, spacing, queued))
    freed = left if kept_passes == 1 else start[ENDED]
    return [taken, before, left, freed, after(accepted, words)]


@lru_cache(1 << 12)
def _more(sums: int, spacing: int, queued: bool) -> list[Times]:
    """Return the max-plus matrix of so many sums, over what :func:`_leave` says of a sum."""
    left, taken, before = nothing(3)
    return repeated(_leave(after(left, 1), taken, before, spacing, queued), sums)


def _leave(
    offered: Times, taken: Times, before: Times, spacing: int, queued: bool
) -> tuple[Times, Times, Times]:
    """Return when a sum leaves the array, when it is taken, and when the one before it was."""
    if not queued:
        left = latest(offered, after(taken, spacing))
        return left, left, taken
    left = latest(offered, after(before, 1))
    return left, latest(after(left, 1), after(taken, spacing)), taken
