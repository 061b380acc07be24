"""Moving elements of tensors [N, C, ...], real numbers and codes alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnef_hw.arithmetic.arrays import Array

__all__ = [
    "begin_steps", "depth_to_space", "join_steps", "last_step", "repeat_pixels", "reverse_steps",
    "split_steps", "take_slice",
]  # fmt: skip


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


def split_steps(x: Array, steps: int) -> Array:
    """Return the steps of images [N, C, steps * H, W], one after the other: [N * steps, ...]."""
    count, channels, rows, *width = x.shape
    parts = x.reshape(count, channels, steps, rows // steps, *width).swapaxes(1, 2)
    return np.ascontiguousarray(parts.reshape(-1, channels, rows // steps, *width))


def join_steps(x: Array, steps: int) -> Array:
    """Return [N, C, steps * H, W] of the images of all steps; inverse of :func:`split_steps`."""
    _, channels, rows, *width = x.shape
    parts = x.reshape(-1, steps, channels, rows, *width).swapaxes(1, 2)
    return np.ascontiguousarray(parts.reshape(len(parts), channels, steps * rows, *width))


def last_step(x: Array, steps: int) -> Array:
    """Return the last of every so many."""
    return x[steps - 1 :: steps]


def begin_steps(initial: Array, later: Array) -> Array:
    """Return ``later`` [N * steps, ...] with ``initial`` [N, ...] in place of each first step."""
    found = later.reshape(len(initial), -1, *later.shape[1:]).copy()
    found[:, 0] = initial
    return found.reshape(later.shape)


def reverse_steps(x: Array, steps: int) -> Array:
    """Return the steps of images [N, C, steps * H, W], the last one first."""
    parts = x.reshape(*x.shape[:2], steps, -1, *x.shape[3:])
    return np.ascontiguousarray(parts[:, :, ::-1].reshape(x.shape))
