"""Shapes of sliding-window operators; their empty attributes are replaced by explicit values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nnef_hw.frontend.shapes.call import Call

__all__ = ["WINDOW_RULES"]

Shape = tuple[int, ...]
Padding = list[tuple[int, int]]

_BORDERS = ("constant", "replicate", "reflect", "reflect-even")
_POOL_BORDERS = (*_BORDERS, "ignore")
_METHODS = ("symmetric", "asymmetric", "aligned")


def _window_attrs(call: Call, size: Sequence[int], borders: Sequence[str]) -> None:
    """Check border, stride and dilation, and complete the latter two."""
    if call.attrs["border"] not in borders:
        raise call.error(
            f"border {call.attrs['border']!r} does not exist here",
            f"use one of {', '.join(map(repr, borders))}",
            at="border",
        )
    for name in ("stride", "dilation"):
        values = call.attrs[name] or [1] * len(size)
        _check_items(call, name, values, len(size))
        call.attrs[name] = values
    padding = call.attrs["padding"]
    if padding and len(padding) != len(size):
        raise call.error(
            f"padding must have {len(size)} items, one per dimension of the window, "
            f"not {len(padding)}",
            at="padding",
        )
    if any(min(pair) < 0 for pair in padding):
        raise call.error("padding must not be negative", "slice the input", at="padding")


def _check_items(call: Call, name: str, values: Sequence[int], count: int) -> None:
    if len(values) != count:
        raise call.error(
            f"{name} must have {count} items, one per dimension of the window, not {len(values)}",
            at=name,
        )
    if any(value < 1 for value in values):
        raise call.error(f"{name} {list(values)} must be positive", at=name)


def _reach(call: Call, size: Sequence[int]) -> list[int]:
    return [(f - 1) * d + 1 for f, d in zip(size, call.attrs["dilation"], strict=True)]


def _down(call: Call, extents: Sequence[int], size: Sequence[int]) -> Shape:
    """Extents behind a window that shrinks; resolves ``padding = []``."""
    result: list[int] = []
    padding: Padding = []
    for axis, (extent, reach) in enumerate(zip(extents, _reach(call, size), strict=True)):
        stride = call.attrs["stride"][axis]
        if call.attrs["padding"]:
            before, after = call.attrs["padding"][axis]
        else:
            total = max((-(-extent // stride) - 1) * stride + reach - extent, 0)
            before, after = total // 2, total - total // 2
        if before + extent + after < reach:
            raise call.error(
                f"the window covers {reach} elements, but its input has only "
                f"{before + extent + after} in window dimension {axis}",
                "make the window smaller or pad the input",
            )
        padding.append((before, after))
        result.append((before + extent + after - reach) // stride + 1)
    call.attrs["padding"] = padding
    return tuple(result)


def _up(call: Call, extents: Sequence[int], size: Sequence[int], wanted: Sequence[int]) -> Shape:
    """Extents behind a window that grows; ``wanted`` is the part of output_shape, or empty."""
    result: list[int] = []
    padding: Padding = []
    for axis, (extent, reach) in enumerate(zip(extents, _reach(call, size), strict=True)):
        stride = call.attrs["stride"][axis]
        span = (extent - 1) * stride + reach
        if call.attrs["padding"]:
            before, after = call.attrs["padding"][axis]
            up = wanted[axis] if wanted else span - before - after
            down = (before + up + after - reach) // stride + 1
        else:
            up = wanted[axis] if wanted else extent * stride
            total = max(span - up, 0)
            before, after = total // 2, total - total // 2
            down = -(-up // stride)
        if up < 1 or down != extent:
            raise call.error(
                f"an output extent of {up} does not shrink back to {extent} "
                f"in window dimension {axis}",
                at="output_shape" if wanted else "padding",
            )
        padding.append((before, after))
        result.append(up)
    call.attrs["padding"] = padding
    return tuple(result)


def _groups(call: Call, channels: int, outputs: int) -> int:
    groups = call.attrs["groups"] or channels
    if groups < 0 or channels % groups or outputs % groups:
        raise call.error(
            f"groups = {groups} does not divide {channels} input and {outputs} output channels",
            at="groups",
        )
    call.attrs["groups"] = groups
    return int(groups)


def _check_ranks(call: Call, *parameters: str) -> None:
    rank = len(call.inputs[0].shape)
    if rank < 3:
        raise call.error(
            f"the input has rank {rank}, but needs batch, channel and spatial dimensions",
            "reshape it",
            at="input",
        )
    for parameter, tensor in zip(parameters, call.inputs[1:], strict=False):
        if len(tensor.shape) != rank:
            raise call.error(
                f"the {parameter.replace('_', ' ')} {tensor.name!r} has rank {len(tensor.shape)}, "
                f"the input {call.inputs[0].name!r} has rank {rank}",
                at=parameter,
            )


def _check_bias(call: Call, channels: int) -> None:
    shape = call.inputs[-1].shape
    # [channels] is not in the specification, but written by exporters and read by other tools
    fits = math.prod(shape) == 1 or shape == (channels,)
    fits = fits or (len(shape) > 1 and shape[:2] == (1, channels) and math.prod(shape) == channels)
    if not fits:
        raise call.error(
            f"the bias {call.inputs[-1].name!r} has shape {list(shape)}, "
            f"but there are {channels} output channels",
            f"give it shape [1, {channels}]",
            at="bias",
        )


def _check_channels(call: Call, parameter: str, index: int, groups: int, *, axis: int) -> None:
    channels = call.inputs[0].shape[1]
    tensor = call.inputs[index]
    found = tensor.shape[axis] * (groups if axis else 1)
    if found != channels:
        per_group = f" x {groups} groups" if groups != 1 and axis else ""
        raise call.error(
            f"the {parameter.replace('_', ' ')} {tensor.name!r} of shape {list(tensor.shape)} is "
            f"for {tensor.shape[axis]}{per_group} input channels, "
            f"but the input {call.inputs[0].name!r} has {channels}",
            at=parameter,
        )


def _conv(call: Call) -> list[Shape]:
    _check_ranks(call, "filter")
    source, kernel = call.inputs[0].shape, call.inputs[1].shape
    _window_attrs(call, kernel[2:], _BORDERS)
    groups = _groups(call, source[1], kernel[0])
    _check_channels(call, "filter", 1, groups, axis=1)
    _check_bias(call, kernel[0])
    return [(source[0], kernel[0], *_down(call, source[2:], kernel[2:]))]


def _output_shape(call: Call, source: Shape, channels: int | None) -> list[int]:
    wanted: list[int] = call.attrs["output_shape"]
    expected = [source[0], *([] if channels is None else [channels])]
    if wanted and (len(wanted) != len(source) or wanted[: len(expected)] != expected):
        raise call.error(
            f"output_shape {wanted} must have {len(source)} items and begin with {expected}",
            at="output_shape",
        )
    return wanted


def _deconv(call: Call) -> list[Shape]:
    _check_ranks(call, "filter")
    source, kernel = call.inputs[0].shape, call.inputs[1].shape
    _window_attrs(call, kernel[2:], _BORDERS)
    if not call.attrs["groups"]:
        call.attrs["groups"] = source[1]
    groups = call.attrs["groups"]
    channels = kernel[1] * groups
    _groups(call, source[1], channels)
    _check_channels(call, "filter", 1, groups, axis=0)
    _check_bias(call, channels)
    wanted = _output_shape(call, source, channels)
    result = (source[0], channels, *_up(call, source[2:], kernel[2:], wanted[2:]))
    call.attrs["output_shape"] = list(result)
    return [result]


def _separable_conv(call: Call) -> list[Shape]:
    _check_ranks(call, "plane_filter", "point_filter")
    source, plane, point = (tensor.shape for tensor in call.inputs[:3])
    _window_attrs(call, plane[2:], _BORDERS)
    if plane[:2] != (source[1], 1):
        raise call.error(
            f"the plane filter {call.inputs[1].name!r} of shape {list(plane)} must begin with "
            f"[{source[1]}, 1]",
            at="plane_filter",
        )
    groups = _groups(call, source[1], point[0])
    _check_channels(call, "point_filter", 2, groups, axis=1)
    if math.prod(point[2:]) != 1:
        raise call.error("the point filter must cover one pixel", at="point_filter")
    _check_bias(call, point[0])
    return [(source[0], point[0], *_down(call, source[2:], plane[2:]))]


def _pool_attrs(call: Call, borders: Sequence[str] = _POOL_BORDERS) -> list[int]:
    size: list[int] = call.attrs["size"]
    rank = len(call.inputs[0].shape)
    if len(size) != rank:
        raise call.error(
            f"size must have {rank} items like the rank of the input "
            f"{call.inputs[0].name!r}, not {len(size)}",
            "give one item per dimension, batch and channels included",
            at="size",
        )
    _check_items(call, "size", size, rank)
    _window_attrs(call, size, borders)
    return size


def _pool(call: Call) -> list[Shape]:
    size = _pool_attrs(call)
    return [_down(call, call.inputs[0].shape, size)] * len(call.dtypes)


def _sample(call: Call) -> list[Shape]:
    size = _pool_attrs(call, _BORDERS)
    result = _down(call, call.inputs[0].shape, size)
    _check_index(call, result)
    return [result]


def _check_index(call: Call, shape: Shape) -> None:
    if call.inputs[1].shape != shape:
        raise call.error(
            f"the index {call.inputs[1].name!r} has shape {list(call.inputs[1].shape)}, "
            f"but must have {list(shape)}",
            at="index",
        )


def _unpool(call: Call) -> list[Shape]:
    source = call.inputs[0].shape
    if call.op == "desample":
        size = _pool_attrs(call, ("constant",))
        _check_index(call, source)
    else:
        size = _pool_attrs(call)
    wanted: list[int] = call.attrs["output_shape"]
    if wanted and len(wanted) != len(source):
        raise call.error(f"output_shape must have {len(source)} items", at="output_shape")
    result = _up(call, source, size, wanted)
    call.attrs["output_shape"] = list(result)
    return [result]


def _resample(call: Call) -> list[Shape]:
    source, factor = call.inputs[0].shape, call.attrs["factor"]
    _check_ranks(call)
    _check_items(call, "factor", factor, len(source) - 2)
    if call.attrs.get("method", "symmetric") not in _METHODS:
        raise call.error(
            f"method {call.attrs['method']!r} does not exist",
            f"use one of {', '.join(map(repr, _METHODS))}",
            at="method",
        )
    if call.attrs.get("border", "constant") not in _BORDERS:
        raise call.error(f"border {call.attrs['border']!r} does not exist here", at="border")
    if call.op.endswith("upsample"):
        spatial = [extent * f for extent, f in zip(source[2:], factor, strict=True)]
    elif call.op == "area_downsample":
        spatial = [extent // f for extent, f in zip(source[2:], factor, strict=True)]
    else:
        spatial = [-(-extent // f) for extent, f in zip(source[2:], factor, strict=True)]
    if 0 in spatial:
        raise call.error(f"factor {factor} leaves nothing of {list(source)}", at="factor")
    return [(*source[:2], *spatial)]


WINDOW_RULES: dict[str, Callable[[Call], list[Shape]]] = {
    "conv": _conv,
    "deconv": _deconv,
    "separable_conv": _separable_conv,
    "sample": _sample,
    "debox": _unpool,
    "desample": _unpool,
    **dict.fromkeys(
        ("box", "max_pool", "avg_pool", "rms_pool", "argmax_pool", "max_pool_with_index"), _pool
    ),
    **dict.fromkeys(
        ("nearest_downsample", "area_downsample", "nearest_upsample", "multilinear_upsample"),
        _resample,
    ),
}
"""Shapes of the results; each rule checks its call and completes ``call.attrs``."""
