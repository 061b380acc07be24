"""Max-plus matrices: times of things that each wait for the latest of others.

An entry ``m[i][j]`` says how long thing ``i`` of one turn comes after thing ``j`` of the turn
before; turns in a row are a product, in which sums take the place of products and maxima that of
sums. In the long run a turn takes the greatest mean of all cycles of waits (Baccelli, Cohen,
Olsder, Quadrat, *Synchronization and Linearity*, 1992, section 3.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import inf, lcm
from operator import add

__all__ = ["NEVER", "Times", "after", "cycle_mean", "followed_by", "latest", "nothing", "repeated"]

NEVER = -inf
"""Nothing waits for that."""

Times = tuple[float, ...]
"""When something happens: so many cycles after each of the things of the turn before."""


def nothing(count: int) -> list[Times]:
    """Return the matrix of a turn in which nothing happens to ``count`` things."""
    return [tuple(0 if j == i else NEVER for j in range(count)) for i in range(count)]


def after(times: Times, cycles: int) -> Times:
    """Return times that are so many cycles later."""
    return tuple(time + cycles for time in times)


def latest(*all_times: Times) -> Times:
    """Return the times of an event that waits for several others."""
    return tuple(map(max, *all_times))


def followed_by(turn: Sequence[Times], next_turn: Sequence[Times]) -> list[Times]:
    """Return the matrix of two turns in a row."""
    columns = list(zip(*turn, strict=True))
    return [tuple([max(map(add, row, column)) for column in columns]) for row in next_turn]


def repeated(turn: Sequence[Times], times: int) -> list[Times]:
    """Return the matrix of so many equal turns in a row."""
    result, power = nothing(len(turn)), list(turn)
    while times:
        if times & 1:
            result = followed_by(result, power)
        times >>= 1
        if times:
            power = followed_by(power, power)
    return result


def cycle_mean(turn: Sequence[Times]) -> Fraction:
    """Return the cycles that a turn takes in the long run (Karp's theorem, 1978).

    Each thing waits for another one, at least.
    """
    things = len(turn)
    times: list[list[float]] = [[0] * things]
    for _ in range(things):
        before = times[-1]
        times.append([max(map(sum, zip(row, before, strict=True))) for row in turn])
    last = times.pop()
    # Counted in parts of a cycle that every mean is a whole number of.
    parts = lcm(*range(1, things + 1))
    mean = max(
        min((last[v] - before[v]) * parts // (things - k) for k, before in enumerate(times))
        for v in range(things)
    )
    return Fraction(int(mean), parts)
