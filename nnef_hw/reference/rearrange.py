"""Moving elements of tensors [N, C, ...], real numbers and codes alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["depth_to_space", "repeat_pixels", "take_slice"]

Array = NDArray[Any]


def take_slice(x: Array, axis: int, begin: int, end: int) -> Array:
    """Return a part along one axis."""
    part: Array = x[(slice(None),) * axis + (slice(begin, end),)]
    return part


def repeat_pixels(x: Array, factor: Sequence[int]) -> Array:
    """Repeat rows and columns (nearest neighbour)."""
    for axis, count in enumerate(factor, start=2):
        x = np.repeat(x, count, axis=axis)
    return x


def depth_to_space(x: Array, factor: Sequence[int]) -> Array:
    """Spread channels (y, x, c) over ``factor`` rows and columns each."""
    rank = len(factor)
    extents, channels = x.shape[2:], x.shape[1] // int(np.prod(factor))
    phases = x.reshape(len(x), *factor, channels, *extents)
    places = [axis for n in range(rank) for axis in (rank + 2 + n, 1 + n)]
    spread = phases.transpose(0, rank + 1, *places)
    results = (n * f for n, f in zip(extents, factor, strict=True))
    return np.ascontiguousarray(spread.reshape(len(x), channels, *results))
