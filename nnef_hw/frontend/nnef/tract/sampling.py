"""Resampling, and Fourier transforms as products with constant matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.tract.values import extents, is_present, numbers
from nnef_hw.ir import Tensor

__all__ = ["SAMPLING"]

_MAX_SCALE = 1 << 16
_LETTERS = "abcdefghijklmnop"


def _resize(call: Invoked) -> object:
    source = call.tensor("input").shape
    has_scales = is_present(call, "scales")
    has_sizes = "sizes" in call.values and is_present(call, "sizes")
    if has_scales is has_sizes:
        raise call.error("give either scales or sizes", "one number for each dimension")
    values = numbers(call, "scales" if has_scales else "sizes").ravel()
    if len(values) != len(source):
        raise call.error(
            f"{len(values)} {'scales' if has_scales else 'sizes'} are given for the "
            f"{len(source)} dimensions of {call.tensor('input').name!r}"
        )
    if has_scales:
        scale = [float(value) for value in values]
        if not all(0 < value <= _MAX_SCALE for value in scale):
            raise call.error(f"scales {scale} must be positive", at="scales")
        size = [int(np.float32(old * value)) for old, value in zip(source, scale, strict=True)]
    else:
        size = extents(call, "sizes")
        scale = [new / old for new, old in zip(size, source, strict=True)]
    attrs = {
        "size": size,
        "scale": scale,
        "coordinates": call.values["coord_transformer"],
        "interpolation": call.values["interpolator"],
        "rounding": call.values["nearest_mode"],
    }
    return call.call("resize", call.tensor("input"), names=call.names, **attrs, **_onnx_attrs(call))


def _onnx_attrs(call: Invoked) -> dict[str, object]:
    if call.op != "tract_onnx_resize":
        return {}
    if call.values["coord_transformer"] == "tf_crop_and_resize":
        raise UnsupportedError(
            f"{call.op} {call.name!r}: 'tf_crop_and_resize' is not supported",
            remedy="crop the input by slice, then resize",
            location=call.places.get("coord_transformer", call.location),
        )
    return {
        "cubic_coefficient": call.values["cubic_coeff_a"],
        "exclude_outside": call.values["exclude_outside"],
        "antialias": call.values["antialias"],
    }


def _fourier(length: int, *, inverse: bool) -> Array:
    """Return the transform [n, re/im, k, re/im] of ``length`` complex numbers, not normalized."""
    angle = 2 * np.pi * np.outer(np.arange(length), np.arange(length)) / length
    cos, sin = np.cos(angle), np.sin(angle) if inverse else -np.sin(angle)
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1).astype(np.float32)


def _check_complex(call: Invoked, tensor: Tensor) -> None:
    rank, axis = len(tensor.shape), call.values["axis"]
    if rank < 2 or tensor.shape[-1] != 2 or not 0 <= axis < rank - 1:
        raise call.error(
            f"{tensor.name!r} of shape {list(tensor.shape)} cannot be transformed along {axis}",
            "its last dimension holds real and imaginary part",
            at="axis",
        )


def _transform(call: Invoked, tensor: Tensor, axis: int, matrix: Array) -> AttributeValue:
    """Multiply an axis and the last dimension by a matrix [n, re/im, k, re/im]."""
    builder = call.evaluator.builder
    constant = builder.constant(f"{call.name}_matrix", matrix, location=call.location)
    inner = list(_LETTERS[: len(tensor.shape)])
    outer = [*inner]
    outer[axis], outer[-1] = "y", "z"
    term = f"{inner[axis]}{inner[-1]}yz"
    expression = f"{''.join(inner)},{term}->{''.join(outer)}"
    return call.call("einsum", [tensor, constant], expr=expression, names=call.names)


def _fft(call: Invoked) -> object:
    tensor, axis = call.tensor("input"), call.values["axis"]
    _check_complex(call, tensor)
    matrix = _fourier(tensor.shape[axis], inverse=call.values["inverse"])
    return _transform(call, tensor, axis, matrix)


def _stft(call: Invoked) -> object:
    """Transform overlapping frames: gathered, so that they have a dimension of their own."""
    tensor, axis = call.tensor("input"), call.values["axis"]
    _check_complex(call, tensor)
    frame, stride = call.values["frame"], call.values["stride"]
    if not 1 <= frame <= tensor.shape[axis] or stride < 1:
        raise call.error(
            f"frame {frame} and stride {stride} do not fit {tensor.shape[axis]} elements",
            at="frame",
        )
    starts = np.arange(0, tensor.shape[axis] - frame + 1, stride)
    positions = starts[:, None] + np.arange(frame)
    builder = call.evaluator.builder
    chosen = builder.constant(f"{call.name}_positions", positions, location=call.location)
    frames = call.call("gather", tensor, chosen, axis=axis)
    matrix = _fourier(frame, inverse=False) * _window(call, frame)[:, None, None, None]
    return _transform(call, frames, axis + 1, matrix.astype(np.float32))


def _window(call: Invoked, frame: int) -> Array:
    """Return the factor of each element of a frame; a short window stands in its middle."""
    if not is_present(call, "window"):
        return np.ones(frame)
    window = numbers(call, "window").ravel()
    if len(window) > frame:
        raise call.error(f"the window of {len(window)} is longer than the frame", at="window")
    before = (frame - len(window)) // 2
    return np.pad(window, (before, frame - len(window) - before))


def _grid_sample(call: Invoked) -> object:
    """Look up pixels [N, C, H, W] at coordinates [N, P, Q, (x, y)] from -1 to 1."""
    source, grid = call.tensor("input"), call.tensor("grid")
    mode, padding = call.values["mode"], call.values["padding_mode"]
    if mode != "bilinear" or padding not in {"zeros", "border"} or len(source.shape) != 4:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: mode {mode!r} with padding_mode {padding!r} on rank "
            f"{len(source.shape)} is not supported",
            remedy="use 'bilinear' with 'zeros' or 'border' on [N, C, H, W]",
            location=call.location,
        )
    rows, columns = source.shape[2:]
    pixels = call.call("transpose", source, axes=[0, 2, 3, 1])
    x = _position(call, grid, 0, columns)
    y = _position(call, grid, 1, rows)
    low_x, low_y = call.call("floor", x), call.call("floor", y)
    corners = []
    for right in (0.0, 1.0):
        for below in (0.0, 1.0):
            column, row = call.call("add", low_x, right), call.call("add", low_y, below)
            weight = call.call("mul", _closeness(call, x, column), _closeness(call, y, row))
            if padding == "zeros":
                for place, extent in ((column, columns), (row, rows)):
                    weight = call.call("mul", weight, _is_inside(call, place, extent))
            inside = [
                call.call("clamp", place, 0.0, float(extent - 1))
                for place, extent in ((row, rows), (column, columns))
            ]
            where = _as_integers(call, call.call("concat", inside, axis=3))
            found = call.call("gather_nd", pixels, where, batch_dims=1)
            corners.append(call.call("mul", found, weight))
    total = corners[0]
    for corner in corners[1:]:
        total = call.call("add", total, corner)
    return call.call("transpose", total, axes=[0, 3, 1, 2], names=call.names)


def _position(call: Invoked, grid: Tensor, index: int, extent: int) -> Tensor:
    """Return where coordinates point to, in pixels; the first pixel's middle is 0."""
    coordinate = call.call("slice", grid, axes=[3], begin=[index], end=[index + 1])
    aligned = call.values["align_corners"]
    scale = (extent - 1) / 2 if aligned else extent / 2
    place: Tensor = call.call("add", call.call("mul", coordinate, scale), (extent - 1) / 2)
    if call.values["padding_mode"] == "border":
        place = call.call("clamp", place, 0.0, float(extent - 1))
    return place


def _closeness(call: Invoked, place: Tensor, pixel: Tensor) -> Tensor:
    distance = call.call("abs", call.call("sub", place, pixel))
    result: Tensor = call.call("sub", 1.0, distance)
    return result


def _is_inside(call: Invoked, place: Tensor, extent: int) -> Tensor:
    low, high = call.call("ge", place, 0.0), call.call("le", place, float(extent - 1))
    result: Tensor = call.call("select", call.call("and", low, high), 1.0, 0.0)
    return result


def _as_integers(call: Invoked, tensor: Tensor) -> Tensor:
    result: Tensor = call.call("tract_core_cast", tensor, to="i64")
    return result


SAMPLING: Mapping[str, Callable[[Invoked], object]] = {
    "tract_core_resize": _resize,
    "tract_onnx_resize": _resize,
    "tract_core_fft": _fft,
    "tract_core_stft": _stft,
    "tract_core_grid_sample": _grid_sample,
}
"""Lowerings by operator."""
