"""Which designs are worth more work: those that no other one beats in every respect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nnef_hw.report.model.exploration import Point

__all__ = ["front", "near_front"]


def near_front(points: Sequence[Point], margin: float) -> list[Point]:
    """Return the points that may be on the front of their board, were their LUTs fewer.

    Parameters
    ----------
    margin
        By how much LUTs may be wrong, relative: another point beats one that has more of them even
        then. With 0 this is the front itself.
    """
    return [
        point
        for point in points
        if not any(
            _beats(other, point, margin)
            for other in points
            if other is not point and other.board == point.board
        )
    ]


def front(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other one of their board beats, the fastest first."""
    return sorted(near_front(list(points), 0.0), key=lambda point: (point.board, -point.rate))


def _beats(one: Point, other: Point, margin: float) -> bool:
    """Whether one is at least as good in every respect, and better in one."""
    mine, yours = (_worth(point) for point in (one, other))
    lut = one.lut * (1 + margin)
    no_worse = lut <= other.lut and all(a >= b for a, b in zip(mine, yours, strict=True))
    return no_worse and (lut < other.lut or mine > yours or one.number < other.number)


def _worth(point: Point) -> tuple[float, float]:
    return point.rate, point.quality.value if point.quality else 0.0
