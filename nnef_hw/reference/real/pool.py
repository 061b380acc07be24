"""Float reference: windows without weights, over any axes, and normalization by them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nnef_hw.arithmetic.images.windows import count_taps, gather_taps, pad_border, scatter_taps
from nnef_hw.reference.real.attributes import WindowAttributes, down_padding, up_padding
from nnef_hw.reference.real.conv import extend_input
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import one_sample_windows

__all__: list[str] = []


def _window(call: Evaluation) -> WindowAttributes:
    return WindowAttributes.of(call, call.attr("size"))


def _taps(call: Evaluation, x: Array, outside: float = 0.0) -> tuple[Array, ...]:
    """Return a view of the padded input per tap; ``outside`` fills a border that is ignored."""
    window, border = _window(call), call.attr("border", "constant")
    value = outside if border == "ignore" else 0.0
    padded = pad_border(x, down_padding(window, x.shape), border, value)
    return gather_taps(padded, window.size, window.stride, window.dilation)


def _box(call: Evaluation, x: Array, *, normalize: bool) -> Array:
    """Sum of a window; if normalized, divided by the taps that count."""
    taps = _taps(call, x)
    total = np.zeros(taps[0].shape)
    for tap in taps:
        total += tap
    if not normalize:
        return total
    if call.attr("border", "constant") != "ignore":
        return total / len(taps)
    window = _window(call)
    padding = down_padding(window, x.shape)
    return np.asarray(
        total / count_taps(x.shape, padding, window.size, window.stride, window.dilation)
    )


def _maxima(call: Evaluation) -> tuple[Array, Array]:
    """Greatest tap of every window and its number, the first of equals."""
    taps = np.stack(_taps(call, np.asarray(call.args[0], np.float64), -np.inf))
    index = taps.argmax(axis=0)
    return np.take_along_axis(taps, index[np.newaxis], 0)[0], index


@operator("max_pool", batch=one_sample_windows)
def max_pool(call: Evaluation) -> Array:
    x = np.asarray(call.args[0], np.float64)
    return np.asarray(np.maximum.reduce(_taps(call, x, -np.inf)))


@operator("argmax_pool", batch=one_sample_windows)
def argmax_pool(call: Evaluation) -> Array:
    return _maxima(call)[1]


@operator("max_pool_with_index", batch=one_sample_windows)
def max_pool_with_index(call: Evaluation) -> tuple[Array, Array]:
    return _maxima(call)


@operator("avg_pool", "box", batch=one_sample_windows)
def box(call: Evaluation) -> Array:
    normalize = call.node.op == "avg_pool" or call.attr("normalize", False)
    return _box(call, call.args[0], normalize=normalize)


@operator("rms_pool", batch=one_sample_windows)
def rms_pool(call: Evaluation) -> Array:
    return np.asarray(np.sqrt(_box(call, np.square(call.args[0]), normalize=True)))


@operator("sample", batch=one_sample_windows)
def sample(call: Evaluation) -> Array:
    taps = np.stack(_taps(call, call.args[0]))
    index = call.indices(call.args[1], len(taps))
    return np.asarray(np.take_along_axis(taps, index[np.newaxis], 0)[0])


def _spread(call: Evaluation, parts: list[Array], padding: Sequence[int]) -> Array:
    """Add one array per tap to the result's positions."""
    window, extents = _window(call), call.shape
    full = scatter_taps(parts, parts[0].shape, window.size, window.stride, window.dilation)
    crop = [(-p, p + n - f) for p, n, f in zip(padding, extents, full.shape, strict=True)]
    return pad_border(full, crop)


@operator("desample", batch=one_sample_windows)
def desample(call: Evaluation) -> Array:
    x, window = call.args[0], _window(call)
    count = math.prod(window.size)
    index = call.indices(call.args[1], count)
    parts = [np.where(index == tap, x, 0.0) for tap in range(count)]
    return _spread(call, parts, [p for p, _ in up_padding(window, x.shape, call.shape)])


@operator("debox", batch=one_sample_windows)
def debox(call: Evaluation) -> Array:
    """Reverse of box; of a border that is ignored, the taps do not count in the volume."""
    x, window, border = call.args[0], _window(call), call.attr("border")
    volume = math.prod(window.size)
    padding = [p for p, _ in up_padding(window, x.shape, call.shape)]

    def spread(x: Array, border: str) -> Array:
        extended, moved = extend_input(x, window, padding, call.shape, border)
        return _spread(call, [extended] * volume, moved)

    total = spread(x, border)
    if not call.attr("normalize"):
        return total
    if border != "ignore":
        return total / volume
    ones = np.ones(x.shape)
    outside = spread(ones, "replicate") - spread(ones, "constant")
    return np.asarray(total / (volume - outside))


@operator("local_response_normalization", batch=one_sample_windows)
def local_response_normalization(call: Evaluation) -> Array:
    x = call.args[0]
    sigma = call.attr("bias") + call.attr("alpha") * _box(call, x * x, normalize=True)
    return np.asarray(x / sigma ** call.attr("beta"))


def _by_deviation(call: Evaluation, x: Array) -> Array:
    sigma = np.sqrt(_box(call, x * x, normalize=True))
    return np.asarray(x / np.maximum(sigma + call.attr("bias"), call.attr("epsilon")))


def _centered(call: Evaluation) -> Array:
    return np.asarray(call.args[0] - _box(call, call.args[0], normalize=True))


@operator("local_mean_normalization", batch=one_sample_windows)
def local_mean_normalization(call: Evaluation) -> Array:
    return _centered(call)


@operator("local_variance_normalization", batch=one_sample_windows)
def local_variance_normalization(call: Evaluation) -> Array:
    return _by_deviation(call, call.args[0])


@operator("local_contrast_normalization", batch=one_sample_windows)
def local_contrast_normalization(call: Evaluation) -> Array:
    return _by_deviation(call, _centered(call))
