"""Resampling of images."""

from __future__ import annotations

from nnef_hw.frontend.tflite.calls import TfliteCall
from nnef_hw.frontend.tflite.registry import lowers
from nnef_hw.frontend.tflite.values import Value

__all__: list[str] = []

_METHODS = {"half_pixel": "symmetric", "asymmetric": "asymmetric", "align_corners": "aligned"}


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


@lowers("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest_neighbor(call: TfliteCall) -> Value:
    """Take the pixel that contains a place; with aligned corners the nearest, halves up."""
    x, size, scale, coordinates = _sizes(call)
    if size == list(x.tensor.shape):
        return x
    up = [round(factor) for factor in scale[2:]]
    if up == scale[2:] and coordinates != "align_corners":
        return call.emit("nearest_upsample", x, factor=up)
    rounding = "round_prefer_ceil" if coordinates == "align_corners" else "floor"
    if coordinates == "half_pixel":
        coordinates = "tf_half_pixel_for_nn"
    return call.emit(
        "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation="nearest",
        rounding=rounding,
    )  # fmt: skip


@lowers("RESIZE_BILINEAR")
def resize_bilinear(call: TfliteCall) -> Value:
    x, size, scale, coordinates = _sizes(call)
    if size == list(x.tensor.shape):
        return x
    up = [round(factor) for factor in scale[2:]]
    if up == scale[2:]:
        method = _METHODS[coordinates]
        return call.emit("multilinear_upsample", x, factor=up, method=method, border="replicate")
    return call.emit(
        "resize", x, size=size, scale=scale, coordinates=coordinates, interpolation="linear"
    )
