"""Float reference: images of other extents, by whole factors and by ONNX's Resize."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.images.rearrange import repeat_pixels
from nnef_hw.arithmetic.images.windows import gather_taps, pad_border
from nnef_hw.arithmetic.interpolation import WHOLE, interpolated
from nnef_hw.ir.operators import InterpolateAttributes
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import Case, always

__all__: list[str] = []

FloatArray = NDArray[np.float64]


def _resize_samples(case: Case) -> bool:
    return bool(case.node.attrs["scale"][0] == 1)


@operator("resize", batch=_resize_samples)
def resize(call: Evaluation) -> Array:
    """Resize one axis after the other."""
    x = np.asarray(call.args[0], np.float64)
    for axis, (size, scale) in enumerate(zip(call.shape, call.attr("scale"), strict=True)):
        extent = x.shape[axis]
        if size == extent and scale == 1:
            continue
        places = _coordinates(call.attr("coordinates"), size, extent, scale)
        taps, weights = _taps(call, places, scale)
        if call.attr("exclude_outside"):
            weights = np.where((taps >= 0) & (taps < extent), weights, 0.0)
            weights /= weights.sum(axis=1, keepdims=True)
        taps = np.clip(taps, 0, extent - 1)
        if call.attr("interpolation") == "nearest":
            x = np.take(x, taps[np.arange(size), weights.argmax(axis=1)], axis=axis)
        else:
            matrix = np.zeros((size, extent))
            np.add.at(matrix, (np.arange(size)[:, None], taps), weights)
            x = np.moveaxis(np.tensordot(x, matrix, (axis, 1)), -1, axis)
    return np.ascontiguousarray(x)


@operator("interpolate", batch=always)
def interpolate(call: Evaluation) -> Array:
    """Interpolate between codes, in real numbers."""
    x = np.asarray(call.args[0], np.float64)
    places = call.node.attributes(InterpolateAttributes).places(x.shape)
    return interpolated(x, *places) / WHOLE


def _coordinates(mode: str, size: int, extent: int, scale: float) -> FloatArray:
    """Place of every result element in the input."""
    i = np.arange(size, dtype=np.float64)
    if mode == "asymmetric":
        return i / scale
    if mode == "align_corners":
        reach = extent * scale - 1
        return i * ((extent - 1) / reach) if reach else np.zeros(size)
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "pytorch_half_pixel" and size == 1:
        return np.zeros(1)
    offset = 0.0
    if mode == "half_pixel_symmetric":
        offset = extent / 2 * (1 - size / (extent * scale))
    return offset + (i + 0.5) / scale - 0.5


def _taps(
    call: Evaluation, places: FloatArray, scale: float
) -> tuple[NDArray[np.int64], FloatArray]:
    """Input positions [size, n] that make each result element, and their weights."""
    left = np.ceil(places) - 1
    ratio = (places - left)[:, None]
    mode, antialias = call.attr("interpolation"), bool(call.attr("antialias"))
    if mode == "nearest":
        steps, weights = np.arange(2), _nearest(call.attr("rounding"), ratio)
    else:
        shrink = min(scale, 1.0) if antialias else 1.0
        radius = 2 if mode == "cubic" else 1
        first = math.floor(-radius / shrink) + 1
        steps = np.arange(first, 2 - first)
        distance = np.abs(steps - ratio) * shrink
        if mode == "linear":
            weights = np.maximum(1 - distance, 0)
        else:
            weights = _cubic(distance, call.attr("cubic_coefficient"))
        if antialias:
            weights /= weights.sum(axis=1, keepdims=True)
    return (left[:, None] + steps).astype(np.int64), weights


def _nearest(rounding: str, ratio: FloatArray) -> FloatArray:
    """Weights of the left and the right neighbour; ratio is in (0, 1], 1 means on the right one."""
    takes_left: NDArray[np.bool_] = {
        "round_prefer_floor": ratio <= 0.5,
        "round_prefer_ceil": ratio < 0.5,
        "floor": ratio < 1,
        "ceil": ratio < 0,
    }[rounding]
    return np.hstack([takes_left, ~takes_left]).astype(np.float64)


def _cubic(distance: FloatArray, a: float) -> FloatArray:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


@operator("area_downsample", "nearest_downsample", batch=always)
def downsample(call: Evaluation) -> Array:
    x, factor = call.args[0], list(call.attr("factor"))
    taps = gather_taps(x, factor, factor, [1] * len(factor))
    return taps[0] if call.node.op == "nearest_downsample" else np.mean(taps, axis=0)


@operator("nearest_upsample", batch=always)
def nearest_upsample(call: Evaluation) -> Array:
    return repeat_pixels(call.args[0], call.attr("factor"))


@operator("multilinear_upsample", batch=always)
def multilinear_upsample(call: Evaluation) -> Array:
    """Interpolate axis by axis; the border holds one element beyond each end."""
    x, border = call.args[0], call.attr("border")
    for axis, factor in enumerate(call.attr("factor"), start=2):
        extent = x.shape[axis]
        place = _places(call.attr("method"), extent, factor)
        left = np.floor(place).astype(np.int64)
        weight = (place - left).reshape(-1, *[1] * (x.ndim - axis - 1))
        padded = pad_border(x, [(0, 0)] * axis + [(1, 1)] + [(0, 0)] * (x.ndim - axis - 1), border)
        low, high = (padded.take(left + step, axis) for step in (1, 2))
        x = (1 - weight) * low + weight * high
    return x


def _places(method: str, extent: int, factor: int) -> Array:
    """Place of every result element in the input."""
    i = np.arange(extent * factor, dtype=np.float64)
    if method == "asymmetric":
        return i / factor
    if method == "symmetric":
        return (i - (factor - 1) / 2) / factor
    return i * ((extent - 1) / max(extent * factor - 1, 1))
