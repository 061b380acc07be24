"""Integers that are places: what they choose in tables and caches, and what they hide."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import SampleError

__all__ = ["check_places", "hide_behind", "look_up_rows", "write_rows"]


def look_up_rows(table: Array, index: Array) -> Array:
    """Return rows of a table [R, C] as channels [N, C, P], for integers [N, ...] of P pixels.

    An integer beyond the last row is taken for that of the last one.
    """
    places = index.reshape(len(index), -1).astype(np.int64).clip(0, len(table) - 1)
    return np.moveaxis(table[places], 2, 1)


def hide_behind(x: Array, place: Array, hidden: float) -> Array:
    """Return images [N, C, ...] whose channels behind a place are ``hidden``.

    Those up to it are greater: at least the next code above, of an integer. Of real numbers
    ``hidden`` is minus infinity.
    """
    shown = np.maximum(x, hidden + 1) if np.issubdtype(x.dtype, np.integer) else x
    last = place.reshape(-1, *[1] * (x.ndim - 1)).astype(np.int64)
    channels = np.arange(x.shape[1]).reshape(1, -1, *[1] * (x.ndim - 2))
    return np.where(channels <= last, shown, hidden)


def write_rows(cache: Array, row: Array, place: Array) -> Array:
    """Return caches [N, C, T] with rows [N, C] in place of those at a place of each.

    A place beyond the last one is taken for that.
    """
    last = place.reshape(-1, 1, 1).astype(np.int64).clip(0, cache.shape[2] - 1)
    rows = row.reshape(len(row), -1, 1)
    return np.where(np.arange(cache.shape[2]) == last, rows, cache)


def check_places(name: str, x: Array, count: int) -> None:
    """Refuse integers of an input that are none of so many from 0 on.

    Raises
    ------
    SampleError
        If there is one; the first is named with where it is.
    """
    outside = (x < 0) | (x >= count)
    if outside.any():
        place = [int(n) for n in np.argwhere(outside)[0]]
        raise SampleError(
            f"input {name!r} holds {int(x[tuple(place)])} at {place}, but its integers are 0 to "
            f"{count - 1}",
            remedy="give places that the model's tables have",
        )
