"""Sliding windows shared by the float and the fixed reference: padding, gathering, convolution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.hardware.geometry.window import taps_inside

__all__ = [
    "count_taps",
    "convolve",
    "gather_taps",
    "pad_border",
    "scatter_taps",
    "window_extent",
]

Padding = Sequence[tuple[int, int]]

_SMALL_PRODUCT = 1 << 18
"""Multiplications that BLAS libraries do in one thread; waiting for others costs more."""

_LEAST_WIDTH = 4
"""Columns of a part: with fewer, the overhead of each costs more."""


def window_extent(
    extent: int, size: int, stride: int = 1, padding: tuple[int, int] = (0, 0), dilation: int = 1
) -> int:
    """Return the number of window positions along one axis."""
    return (extent + sum(padding) - (size - 1) * dilation - 1) // stride + 1


def pad_border(x: Array, padding: Padding, border: str = "constant", value: float = 0) -> Array:
    """Extend the trailing axes of ``x``; negative padding crops.

    Parameters
    ----------
    padding
        Before and after, one pair for each of the last ``len(padding)`` axes.
    border
        NNEF's border mode; ``constant`` and ``ignore`` insert ``value``.
    """
    if not any(map(any, padding)):
        return x
    lead = x.ndim - len(padding)
    if border not in {"constant", "ignore"}:
        for axis, (p, q) in enumerate(padding, start=lead):
            if p or q:
                x = x.take(_border_indices(x.shape[axis], p, q, border), axis)
        return x
    extents = x.shape[lead:]
    shape = [n + p + q for n, (p, q) in zip(extents, padding, strict=True)]
    padded = np.full((*x.shape[:lead], *shape), value, x.dtype)
    kept, place = [], []
    for n, (p, q) in zip(extents, padding, strict=True):
        first = max(-p, 0)
        last = max(min(n, n + q), first)
        kept.append(slice(first, last))
        place.append(slice(first + p, last + p) if last > first else slice(0))
    padded[_last(lead, place)] = x[_last(lead, kept)]
    return padded


def _border_indices(extent: int, before: int, after: int, border: str) -> NDArray[np.int64]:
    """Return which element stands at each position of a padded axis."""
    index = np.arange(-before, extent + after)
    if border == "replicate":
        return np.clip(index, 0, extent - 1)
    twice = 1 if border == "reflect-even" else 0
    period = max(2 * extent - 2 + 2 * twice, 1)
    index %= period
    return np.where(index >= extent, period - twice - index, index)


def count_taps(
    extents: Sequence[int],
    padding: Padding,
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> NDArray[np.int64]:
    """Count the taps of every window that lie inside of an input of ``extents``.

    Returns
    -------
    ndarray
        One axis for each axis of the input.
    """
    axes = zip(extents, padding, size, stride, dilation, strict=True)
    return np.asarray(reduce(np.multiply.outer, [np.array(taps_inside(*axis)) for axis in axes]))


def _last(lead: int, slices: Iterable[slice]) -> tuple[slice, ...]:
    """Index the axes behind the first ``lead`` ones."""
    return (*[slice(None)] * lead, *slices)


def _tap_slices(
    tap: Sequence[int], extents: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> Iterable[slice]:
    """Cut out what one tap sees in ``extents`` window positions."""
    for t, n, s, d in zip(tap, extents, stride, dilation, strict=True):
        yield slice(t * d, t * d + (n - 1) * s + 1, s)


def gather_taps(
    x: Array, size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[Array, ...]:
    """Return one strided view of ``x`` per tap of a window over its last axes, in row-major order.

    ``x`` is padded already; each view holds that tap of every window.
    """
    lead = x.ndim - len(size)
    extents = [
        window_extent(n, k, s, dilation=d)
        for n, k, s, d in zip(x.shape[lead:], size, stride, dilation, strict=True)
    ]
    return tuple(
        x[_last(lead, _tap_slices(tap, extents, stride, dilation))]
        for tap in product(*map(range, size))
    )


def scatter_taps(
    parts: Iterable[Array],
    shape: Sequence[int],
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
) -> NDArray[np.float64]:
    """Reverse :func:`gather_taps`: add one array per tap, where its window reads it.

    Parameters
    ----------
    parts
        Arrays whose last axes are window positions, in row-major order of the taps.
    shape
        Extents of the parts.

    Returns
    -------
    ndarray
        Extents ``(n - 1) * stride + (size - 1) * dilation + 1`` along the last axes.
    """
    lead = len(shape) - len(size)
    reach = [
        (n - 1) * s + (k - 1) * d + 1
        for n, k, s, d in zip(shape[lead:], size, stride, dilation, strict=True)
    ]
    y = np.zeros((*shape[:lead], *reach))
    for part, tap in zip(parts, product(*map(range, size)), strict=True):
        y[_last(lead, _tap_slices(tap, shape[lead:], stride, dilation))] += part
    return y


def convolve(
    x: Array,
    weights: Array,
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> Array:
    """Correlate padded ``x`` [N, C, ...] with ``weights`` [outC, C/groups, ...].

    Products of matrices of floats: exact for integers as long as sums stay below ``2**53``,
    or ``2**24`` if both are float32.
    """
    count, channels = x.shape[:2]
    out_channels, size = weights.shape[0], weights.shape[2:]
    taps = gather_taps(x, size, stride, dilation)
    extents = taps[0].shape[2:]
    columns = np.empty((channels, len(taps), count, *extents), x.dtype)
    for index, tap in enumerate(taps):
        columns[:, index] = tap.swapaxes(0, 1)
    kernel = weights.reshape(groups, out_channels // groups, -1)
    flat = _product(kernel, columns.reshape(groups, kernel.shape[2], -1))
    return flat.reshape(out_channels, count, *extents).swapaxes(0, 1)


def _product(kernel: Array, columns: Array) -> Array:
    """Multiply matrices [G, rows, depth] and [G, depth, n], in parts that need one thread only."""
    width = _SMALL_PRODUCT // kernel[0].size
    if width < _LEAST_WIDTH:
        return np.asarray(kernel @ columns)
    y = np.empty((*kernel.shape[:2], columns.shape[2]), columns.dtype)
    for start in range(0, columns.shape[2], width):
        part = np.s_[..., start : start + width]
        np.matmul(kernel, columns[part], out=y[part])
    return y
