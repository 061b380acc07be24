"""Resampling of images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []

_METHODS = {"half_pixel": "symmetric", "asymmetric": "asymmetric", "align_corners": "aligned"}
_SHORT_FACTORS = {1, 2, 4, 8}
"""Their weights, and products of two of them, have at most 8 bits."""


def _sizes(call: TfliteCall) -> tuple[Value, list[int], list[float], str]:
    """Return the image, its new extents and their ratios, and how places are mapped."""
    x = call.required(0)
    if x.rank != 4:
        raise call.error(f"the input has shape {list(x.shape)}, not of four dimensions")
    wanted = call.integers(1, "the size")
    if len(wanted) != 2 or min(wanted) < 1:
        raise call.error(f"the size is {wanted}")
    image = call.image(x)
    size = [*image.tensor.shape[:2], *wanted]
    scale = [new / old for new, old in zip(size, image.tensor.shape, strict=True)]
    if call.option("AlignCorners"):
        coordinates = "align_corners"
    else:
        coordinates = "half_pixel" if call.option("HalfPixelCenters") else "asymmetric"
    return image, size, scale, coordinates


@lowers("RESIZE_NEAREST_NEIGHBOR", newest=4)
def resize_nearest_neighbor(call: TfliteCall) -> Value:
    """Take the pixel that contains a place; with aligned corners the nearest, halves up."""
    x, size, scale, coordinates = _sizes(call)
    taken = [_nearest(call, old, new) for old, new in zip(x.tensor.shape, size, strict=True)][2:]
    up = [round(factor) for factor in scale[2:]]
    if up == scale[2:] and all(
        np.array_equal(places, np.arange(len(places)) // factor)
        for places, factor in zip(taken, up, strict=True)
    ):
        return x if up == [1, 1] else call.emit("nearest_upsample", x, factor=up)
    rounding = "round_prefer_ceil" if coordinates == "align_corners" else "floor"
    if coordinates == "half_pixel":
        coordinates = "tf_half_pixel_for_nn"
    if not call.option("HalfPixelCenters") or rounding == "floor":
        return call.emit(
            "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation="nearest",
            rounding=rounding,
        )  # fmt: skip
    for axis, places in enumerate(taken, 2):
        x = call.emit("gather", x, call.shape_constant(places), axis=axis)
    return x


def _nearest(call: TfliteCall, old: int, new: int) -> NDArray[np.int64]:
    """Return which element of an axis each result is (``GetNearestNeighbor``)."""
    is_aligned, half = call.option("AlignCorners"), call.option("HalfPixelCenters")
    ends = (old - 1, new - 1) if is_aligned and new > 1 else (old, new)
    step = np.float32(ends[0]) / np.float32(ends[1])
    places = (np.arange(new, dtype=np.float32) + np.float32(0.5 * half)) * step
    rounded = np.floor(places + np.float32(0.5) if is_aligned else places)
    return np.asarray(np.clip(rounded, 0, old - 1).astype(np.int64))


def _fewer(call: TfliteCall, x: Value, size: list[int], coordinates: str) -> Value | None:
    """Take the mean of the one or two pixels at each place; None if places lie otherwise.

    By an even factor f between the centers of pixels, places lie in the middle of pixels
    f / 2 - 1 and f / 2; by any other whole factor, on a pixel.
    """
    old = x.tensor.shape[2:]
    steps = [n // new for n, new in zip(old, size, strict=True)]
    if coordinates == "align_corners" or [n * new for n, new in zip(steps, size, strict=True)] != (
        list(old)
    ):
        return None
    is_half = coordinates == "half_pixel"
    taps = [2 if is_half and step % 2 == 0 else 1 for step in steps]
    begin = [(step - 1) // 2 if is_half else 0 for step in steps]
    end = [n + step * (new - 1) + count
           for n, step, new, count in zip(begin, steps, size, taps, strict=True)]  # fmt: skip
    stride = steps if taps == [1, 1] else [1, 1]
    if begin != [0, 0] or end != list(old) or stride != [1, 1]:
        x = call.emit("slice", x, axes=[2, 3], begin=begin, end=end, stride=stride)
    if taps == [1, 1]:
        return x
    return call.emit(
        "avg_pool", x, size=[1, 1, *taps], border="constant", padding=[(0, 0)] * 4,
        stride=[1, 1, *steps], dilation=[1] * 4,
    )  # fmt: skip


@lowers("RESIZE_BILINEAR", newest=4)
def resize_bilinear(call: TfliteCall) -> Value:
    """Interpolate; corners aligned by a whole factor are those of a larger image's part.

    Of codes only factors whose weights are short binary fractions are lowered to that: the kernel
    rounds others to 10 bits.
    """
    x, size, scale, coordinates = _sizes(call)
    old = list(x.tensor.shape)
    source, target = call.source(0).quantization, call.target().quantization
    if source is not None and target is not None and source.args != target.args:
        raise call.unsupported(
            "its result has another format than its input, which the kernel does not regard",
            "convert the model again",
        )
    if size == old:
        return x
    if (fewer := _fewer(call, x, size[2:], coordinates)) is not None:
        return fewer
    method, factors = _METHODS[coordinates], scale[2:]
    if coordinates == "align_corners" and all(n > 1 for n in old[2:]):
        method = "asymmetric"
        factors = [(new - 1) / (n - 1) for n, new in zip(old[2:], size[2:], strict=True)]
    up = [round(factor) for factor in factors]
    if up == factors and min(up) > 0 and (target is None or set(up) <= _SHORT_FACTORS):
        y = call.emit("multilinear_upsample", x, factor=up, method=method, border="replicate")
        if list(y.tensor.shape) == size:
            return y
        return call.emit("slice", y, axes=[2, 3], begin=[0, 0], end=size[2:], stride=[1, 1])
    return call.emit(
        "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation="linear"
    )
