"""Sliding windows shared by the float and the fixed reference: padding, gathering, convolution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["convolve", "gather_taps", "pad_border", "window_extent"]

Padding = Sequence[tuple[int, int]]

_NUMPY_BORDERS = {"replicate": "edge", "reflect": "reflect", "reflect-even": "symmetric"}


def window_extent(
    extent: int, size: int, stride: int = 1, padding: tuple[int, int] = (0, 0), dilation: int = 1
) -> int:
    """Return the number of window positions along one axis."""
    return (extent + sum(padding) - (size - 1) * dilation - 1) // stride + 1


def pad_border(
    x: NDArray[Any], padding: Padding, border: str = "constant", value: float = 0
) -> NDArray[Any]:
    """Extend the trailing axes of ``x``; negative padding crops.

    Parameters
    ----------
    padding
        Before and after, one pair for each of the last ``len(padding)`` axes.
    border
        NNEF's border mode; ``constant`` and ``ignore`` insert ``value``.
    """
    if any(p < 0 for pair in padding for p in pair):
        lead = (slice(None),) * (x.ndim - len(padding))
        extents = x.shape[x.ndim - len(padding) :]
        x = x[
            lead
            + tuple(
                slice(max(-p, 0), n - max(-q, 0))
                for n, (p, q) in zip(extents, padding, strict=True)
            )
        ]
    pairs = [(max(p, 0), max(q, 0)) for p, q in padding]
    if not any(map(any, pairs)):
        return x
    pairs = [(0, 0)] * (x.ndim - len(pairs)) + pairs
    if border in _NUMPY_BORDERS:
        return np.pad(x, pairs, mode=_NUMPY_BORDERS[border])  # type: ignore[call-overload, no-any-return]
    shape = [n + p + q for n, (p, q) in zip(x.shape, pairs, strict=True)]
    padded = np.full(shape, value, x.dtype)
    padded[tuple(slice(p, p + n) for n, (p, _) in zip(x.shape, pairs, strict=True))] = x
    return padded


def gather_taps(
    x: NDArray[Any], size: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[NDArray[Any], ...]:
    """Return one strided view of ``x`` per tap of a window over its last axes, in row-major order.

    ``x`` is padded already; each view holds that tap of every window.
    """
    lead = x.ndim - len(size)
    extents = [
        window_extent(n, k, s, dilation=d)
        for n, k, s, d in zip(x.shape[lead:], size, stride, dilation, strict=True)
    ]
    return tuple(
        x[
            (slice(None),) * lead
            + tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilation, extents, stride, strict=True)
            )
        ]
        for tap in product(*map(range, size))
    )


def convolve(
    x: NDArray[np.float64],
    weights: NDArray[np.float64],
    stride: Sequence[int],
    dilation: Sequence[int],
    groups: int = 1,
) -> NDArray[np.float64]:
    """Correlate padded ``x`` [N, C, ...] with ``weights`` [outC, C/groups, ...].

    A product of float64 matrices: exact for integers as long as sums stay below ``2**53``.
    """
    count, channels = x.shape[:2]
    out_channels, size = weights.shape[0], weights.shape[2:]
    taps = gather_taps(x, size, stride, dilation)
    extents = taps[0].shape[2:]
    columns = np.empty((count, channels, len(taps), *extents))
    for index, tap in enumerate(taps):
        columns[:, :, index] = tap
    depth = channels // groups * len(taps)
    kernel = weights.reshape(groups, out_channels // groups, depth)
    pixels = int(np.prod(extents, dtype=np.int64))
    if groups == 1 and pixels == 1:
        flat = columns.reshape(count, depth) @ kernel[0].T
    else:
        flat = kernel @ columns.reshape(count, groups, depth, pixels)
    return np.asarray(flat.reshape(count, out_channels, *extents))
