"""Resampling of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.model import BOOL
from nnef_hw.frontend.onnx.file.tensors import is_possible
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.matrix import matmul

__all__: list[str] = []

_MAX_SCALE = 1 << 16
_METHODS = {"half_pixel": "symmetric", "asymmetric": "asymmetric", "align_corners": "aligned"}


@dataclass(frozen=True, slots=True)
class _Sampling:
    """Mapping of positions and interpolation of values, as ONNX names them."""

    coordinates: str
    interpolation: str
    rounding: str
    cubic_coefficient: float = -0.75
    exclude_outside: bool = False
    antialias: bool = False


@lowers("Upsample", 7, 9)
def upsample(call: OnnxCall) -> Value:
    x = call.required(0)
    as_attribute = call.since == 7
    scales = call.attr("scales") if as_attribute else _numbers(call.constant_value(1, "the scales"))
    return _resized(call, x, scales, _Sampling("asymmetric", _mode(call), "floor"))


@lowers("Resize", 10, 11, 13, 18, 19)
def resize(call: OnnxCall) -> Value:
    x = call.required(0)
    if x.volume == 0:
        raise call.error(f"the input has shape {list(x.shape)}, without elements")
    if call.since == 10:
        scales = _numbers(call.constant_value(1, "the scales"))
        return _resized(call, x, scales, _Sampling("asymmetric", _mode(call), "floor"))
    axes = call.attr("axes")
    axes = list(range(x.rank)) if axes is None else call.axes(axes, x.rank)
    scales, sizes = list(x.shape), list(x.shape)
    factors = _numbers(call.constant_value(2, "the scales"))
    wanted = call.integers(3, "the sizes")
    if bool(factors) == bool(wanted):
        raise call.error("it must have either scales or sizes")
    if wanted:
        scales, sizes = _from_sizes(call, x, axes, wanted)
    else:
        scales, sizes = _at_axes(call, [1.0] * x.rank, axes, factors), []
    sampling = _Sampling(
        call.attr("coordinate_transformation_mode"),
        _mode(call),
        call.attr("nearest_mode"),
        call.attr("cubic_coeff_a"),
        bool(call.attr("exclude_outside")),
        bool(call.attr("antialias")),
    )
    if sampling.coordinates == "tf_crop_and_resize":
        regions = _numbers(call.constant_value(1, "the regions"))
        sizes = sizes or _extents(call, x, scales)
        return _cropped(call, x, sizes, axes, regions, sampling)
    return _resized(call, x, scales, sampling, sizes)


def _mode(call: OnnxCall) -> str:
    mode: str = call.attr("mode")
    if mode not in {"nearest", "linear", "cubic"}:
        raise call.error(f"there is no mode {mode!r}")
    return mode


def _numbers(data: Array | None) -> list[float]:
    return [] if data is None else [float(item) for item in data.reshape(-1)]


def _at_axes(
    call: OnnxCall, values: list[Any], axes: list[int], replacements: list[Any]
) -> list[Any]:
    """Return values with those of some axes replaced."""
    if len(axes) != len(replacements):
        raise call.error(f"{len(replacements)} scales or sizes are given for {len(axes)} axes")
    result = list(values)
    for axis, value in zip(axes, replacements, strict=True):
        result[axis] = value
    return result


def _from_sizes(
    call: OnnxCall, x: Value, axes: list[int], wanted: list[int]
) -> tuple[list[float], list[int]]:
    """Return scales and extents for the wanted extents, or for what keeps the aspect ratio."""
    sizes = _at_axes(call, list(x.shape), axes, wanted)
    ratios = [sizes[axis] / x.shape[axis] for axis in axes]
    policy = call.attr("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        kept = [math.floor(x.shape[axis] * ratio + 0.5) for axis in axes]
        sizes = _at_axes(call, list(x.shape), axes, kept)
        return _at_axes(call, [1.0] * x.rank, axes, [ratio] * len(axes)), sizes
    return [size / extent for size, extent in zip(sizes, x.shape, strict=True)], sizes


def _extents(call: OnnxCall, x: Value, scales: list[float]) -> list[int]:
    """Return the extents that scales give.

    The product is one of 32-bit floats, as in onnxruntime and PyTorch: 0.7 of 10 is 7. In double
    precision, which onnx's own shape inference computes in, it would be 6.
    """
    if len(scales) != x.rank or not all(0 < scale < _MAX_SCALE for scale in scales):
        raise call.error(f"the scales {scales} do not fit the shape {list(x.shape)}")
    return [
        math.floor(np.float32(extent) * np.float32(scale))
        for extent, scale in zip(x.shape, scales, strict=True)
    ]


def _resized(
    call: OnnxCall,
    x: Value,
    scales: list[float],
    sampling: _Sampling,
    sizes: list[int] | None = None,
) -> Value:
    sizes = sizes or _extents(call, x, scales)
    if any(size < 1 for size in sizes):
        raise call.error(f"the extents {sizes} are not positive")
    if tuple(sizes) == x.shape and set(scales) == {1.0}:
        return x
    exact = _as_standard(call, x, scales, sizes, sampling)
    if exact is not None:
        return exact
    return call.emit(
        "resize",
        x,
        size=sizes,
        scale=scales,
        coordinates=sampling.coordinates,
        interpolation=sampling.interpolation,
        rounding=sampling.rounding,
        cubic_coefficient=sampling.cubic_coefficient,
        exclude_outside=sampling.exclude_outside,
        antialias=sampling.antialias,
    )


def _as_standard(
    call: OnnxCall, x: Value, scales: list[float], sizes: list[int], sampling: _Sampling
) -> Value | None:
    """Resample images by whole factors as NNEF's own operators do, if one of them does the same."""
    if x.rank < 3 or scales[:2] != [1.0, 1.0]:
        return None
    up = [round(scale) for scale in scales[2:]]
    way = (sampling.coordinates, sampling.rounding)
    if up == scales[2:]:
        if sampling.interpolation == "nearest":
            middle = sampling.coordinates == "half_pixel" and "prefer" in sampling.rounding
            if middle or way == ("asymmetric", "floor"):
                return call.emit("nearest_upsample", x, factor=up)
        if sampling.interpolation == "linear" and sampling.coordinates in _METHODS:
            method = _METHODS[sampling.coordinates]
            return call.emit(
                "multilinear_upsample", x, factor=up, method=method, border="replicate"
            )
    down = [n // size for n, size in zip(x.shape[2:], sizes[2:], strict=True)]
    divides = all(n == f * size for n, f, size in zip(x.shape[2:], down, sizes[2:], strict=True))
    exact = divides and all(f * scale == 1 for f, scale in zip(down, scales[2:], strict=True))
    if exact and sampling.interpolation == "nearest" and way == ("asymmetric", "floor"):
        return call.emit("nearest_downsample", x, factor=down)
    return None


def _cropped(
    call: OnnxCall,
    x: Value,
    sizes: list[int],
    axes: list[int],
    regions: list[float],
    sampling: _Sampling,
) -> Value:
    """Resample a constant region: a product with a matrix of weights along each axis."""
    if sampling.interpolation == "cubic" or sampling.antialias:
        raise call.unsupported("tf_crop_and_resize is supported for linear and nearest only")
    if not is_possible(sizes):
        raise call.error(f"the extents {sizes} are not possible")
    if len(regions) != 2 * len(axes) or min(sizes) < 1:
        raise call.error(f"{len(regions)} numbers are given for the regions of {len(axes)} axes")
    inside = np.ones([1] * x.rank, bool)
    y = x
    for index, axis in enumerate(axes):
        start, end = regions[index], regions[index + len(axes)]
        extent, count = x.shape[axis], sizes[axis]
        span = np.linspace(start, end, count) if count > 1 else np.array([(start + end) / 2])
        places = span * (extent - 1)
        valid = (places >= 0) & (places <= extent - 1)
        inside = inside & valid.reshape([-1 if i == axis else 1 for i in range(x.rank)])
        if not np.array_equal(places, np.arange(extent)):
            y = _weighted(call, y, axis, _weights(places, extent, sampling))
    if inside.all():
        return y
    value = call.constant(call.attr("extrapolation_value"), x.type)
    mask = call.constant(np.broadcast_to(inside, y.shape), BOOL)
    return call.emit("select", mask, y, value, element=x.type)


def _weights(places: Array, extent: int, sampling: _Sampling) -> Array:
    """Return the matrix [inputs, outputs] that interpolates at real positions."""
    places = np.clip(places, 0, extent - 1)
    if sampling.interpolation == "nearest":
        shift = {"round_prefer_floor": -0.5, "round_prefer_ceil": 0.5}.get(sampling.rounding, 0.0)
        upwards = sampling.rounding in {"round_prefer_floor", "ceil"}
        places = np.ceil(places + shift) if upwards else np.floor(places + shift)
    result: Array = np.maximum(1 - np.abs(places - np.arange(extent)[:, None]), 0)
    return result


def _weighted(call: OnnxCall, x: Value, axis: int, weights: Array) -> Value:
    """Multiply a matrix to an axis."""
    order = [*(i for i in range(x.rank) if i != axis), axis]
    back = [order.index(i) for i in range(x.rank)]
    product = matmul(call, call.transposed(x, order), call.constant(weights, x.type))
    return call.transposed(product, back)
