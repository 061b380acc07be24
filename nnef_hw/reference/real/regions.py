"""Float reference: regions of interest (spec section 4.6), in any number of spatial dimensions.

A region is [begin..., end...] in pixels of the feature map.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nnef_hw.arithmetic.images.windows import gather_taps
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import never

__all__: list[str] = []


def _regions(call: Evaluation) -> list[tuple[Array, Array, Array]]:
    """Feature map [C, ...], begin and end of each region."""
    x, rois, batch_index = call.args
    images = call.indices(batch_index.reshape(-1), len(x))
    return [(x[image], *np.split(roi, 2)) for image, roi in zip(images.tolist(), rois, strict=True)]


@operator("avg_roi_pool", "max_roi_pool", batch=never)
def roi_pool(call: Evaluation) -> Array:
    """Pool cells of ceil(extent / size) pixels that begin every floor(extent / size) pixels.

    The specification lets the first cell begin at ``c_H``, the extent of a cell, which must mean
    the begin of the region. The part of a cell outside of the map does not count; an empty cell
    is 0.
    """
    pool = np.mean if call.node.op == "avg_roi_pool" else np.max
    y = np.zeros(call.shape)
    for result, (image, begin, end) in zip(y, _regions(call), strict=True):
        first, last = (np.floor(corner + 0.5).astype(np.int64) for corner in (begin, end))
        for cell in np.ndindex(*call.shape[2:]):
            where = [
                slice(max(start, 0), max(start + extent, 0))
                for start, extent in _cell(cell, first, last, call.shape[2:])
            ]
            part = image[(slice(None), *where)].reshape(len(image), -1)
            if part.size:
                result[(slice(None), *cell)] = pool(part, axis=1)
    return y


def _cell(
    cell: tuple[int, ...], first: Array, last: Array, size: tuple[int, ...]
) -> list[tuple[int, int]]:
    return [
        (int(a) + index * int((b - a) // n), int(-((a - b) // n)))
        for index, a, b, n in zip(cell, first, last, size, strict=True)
    ]


@operator("roi_resample", batch=never)
def roi_resample(call: Evaluation) -> Array:
    return _resampled(call, call.attr("output_size"), call.attr("method"))


@operator("avg_roi_align", "max_roi_align", batch=never)
def roi_align(call: Evaluation) -> Array:
    rate = list(call.attr("sampling_rate"))
    size = [n * k for n, k in zip(call.attr("output_size"), rate, strict=True)]
    taps = gather_taps(
        _resampled(call, size, call.attr("resize_method")), rate, rate, [1] * len(rate)
    )
    pool: Callable[..., object] = np.mean if call.node.op == "avg_roi_align" else np.max
    return np.asarray(pool(taps, axis=0))


def _resampled(call: Evaluation, size: list[int], method: str) -> Array:
    """Interpolate every region to ``size`` points; beyond the map its edge goes on."""
    regions = []
    for region, begin, end in _regions(call):
        image = region
        for axis, (a, b, n) in enumerate(zip(begin, end, size, strict=True), start=1):
            place = np.clip(a + _places(method, b - a, n), 0, image.shape[axis] - 1)
            left = np.minimum(np.floor(place).astype(np.int64), max(image.shape[axis] - 2, 0))
            right = np.minimum(left + 1, image.shape[axis] - 1)
            weight = (place - left).reshape(-1, *[1] * (image.ndim - axis - 1))
            image = (1 - weight) * image.take(left, axis) + weight * image.take(right, axis)
        regions.append(image)
    return np.stack(regions)


def _places(method: str, extent: float, size: int) -> Array:
    """Place of every point in a region that begins at 0."""
    i = np.arange(size, dtype=np.float64)
    if method == "asymmetric":
        return i * (extent / size)
    if method == "symmetric":
        return (i + 0.5) * (extent / size) - 0.5
    return i * ((extent - 1) / max(size - 1, 1))
