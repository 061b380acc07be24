"""Shapes of sliding-window operators; their empty attributes are replaced by explicit values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from nnef_hw.errors import ModelError
from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import Shape, check_choice

__all__ = ["METHODS", "WINDOW_RULES"]

Padding = list[tuple[int, int]]

_BORDERS = ("constant", "replicate", "reflect", "reflect-even")
_POOL_BORDERS = (*_BORDERS, "ignore")
METHODS = ("symmetric", "asymmetric", "aligned")


def _window_attrs(call: Call, size: Sequence[int], borders: Sequence[str]) -> None:
    """Check border, stride and dilation, and complete the latter two."""
    check_choice(call, "border", borders)
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


def _wanted_shape(call: Call) -> list[int]:
    """Return the attribute ``output_shape``; an empty one leaves the shape to the window."""
    wanted: list[int] = call.attrs["output_shape"]
    rank = len(call.inputs[0].shape)
    if wanted and (len(wanted) != rank or any(extent < 1 for extent in wanted)):
        raise call.error(
            f"output_shape {wanted} must have {rank} positive items", at="output_shape"
        )
    return wanted


def _check_wanted(call: Call, wanted: Sequence[int], count: int, channels: int) -> None:
    if wanted and list(wanted[:2]) != [count, channels]:
        raise call.error(
            f"output_shape {wanted} must begin with {[count, channels]}", at="output_shape"
        )


def _deconv(call: Call) -> list[Shape]:
    _check_ranks(call, "filter")
    source, kernel = call.inputs[0].shape, call.inputs[1].shape
    _window_attrs(call, kernel[2:], _BORDERS)
    wanted = _wanted_shape(call)
    call.attrs["groups"] = call.attrs["groups"] or (wanted[1:2] or source[1:2])[0]
    channels = kernel[1] * call.attrs["groups"]
    groups = _groups(call, source[1], channels)
    _check_channels(call, "filter", 1, groups, axis=0)
    _check_bias(call, channels)
    _check_wanted(call, wanted, source[0], channels)
    result = (source[0], channels, *_up(call, source[2:], kernel[2:], wanted[2:]))
    call.attrs["output_shape"] = list(result)
    return [result]


def _separable_conv(call: Call) -> list[Shape]:
    _check_ranks(call, "plane_filter", "point_filter")
    source, plane, point = (tensor.shape for tensor in call.inputs[:3])
    _window_attrs(call, plane[2:], _BORDERS)
    if plane[1] != 1 or plane[0] % source[1]:
        raise _separable_error(call, f"a multiple of {source[1]} and 1, one plane per filter")
    groups = _groups(call, plane[0], point[0])
    if point[1] * groups != plane[0] or math.prod(point[2:]) != 1:
        raise call.error(
            f"the point filter {call.inputs[2].name!r} of shape {list(point)} must cover one "
            f"pixel of {plane[0]} channels in {groups} group{'s' * (groups != 1)}",
            at="point_filter",
        )
    _check_bias(call, point[0])
    return [(source[0], point[0], *_down(call, source[2:], plane[2:]))]


def _separable_deconv(call: Call) -> list[Shape]:
    """Deconvolve by the point filter [inC, C/groups], then by the plane filter [C, outC/depth]."""
    _check_ranks(call, "plane_filter", "point_filter")
    source, plane, point = (tensor.shape for tensor in call.inputs[:3])
    _window_attrs(call, plane[2:], _BORDERS)
    call.attrs["groups"] = call.attrs["groups"] or source[1]
    channels = point[1] * call.attrs["groups"]
    _groups(call, source[1], channels)
    if point[0] != source[1] or math.prod(point[2:]) != 1:
        raise call.error(
            f"the point filter {call.inputs[2].name!r} of shape {list(point)} must cover one "
            f"pixel of {source[1]} channels",
            at="point_filter",
        )
    wanted = _wanted_shape(call)
    outputs = (wanted[1:2] or [channels * plane[1]])[0]
    if plane[0] != channels or plane[1] != 1 or channels % outputs:
        raise _separable_error(call, f"{channels} and 1, one plane per filter")
    _check_bias(call, outputs)
    _check_wanted(call, wanted, source[0], outputs)
    result = (source[0], outputs, *_up(call, source[2:], plane[2:], wanted[2:]))
    call.attrs["output_shape"] = list(result)
    return [result]


def _separable_error(call: Call, expected: str) -> ModelError:
    plane = call.inputs[1]
    return call.error(
        f"the plane filter {plane.name!r} of shape {list(plane.shape)} must begin with {expected}",
        at="plane_filter",
    )


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
    result = _up(call, source, size, _wanted_shape(call))
    call.attrs["output_shape"] = list(result)
    return [result]


def _resample(call: Call) -> list[Shape]:
    source, factor = call.inputs[0].shape, call.attrs["factor"]
    _check_ranks(call)
    _check_items(call, "factor", factor, len(source) - 2)
    if call.op == "multilinear_upsample":
        check_choice(call, "method", METHODS)
        check_choice(call, "border", _BORDERS)
    pairs = list(zip(source[2:], factor, strict=True))
    if call.op.endswith("upsample"):
        return [(*source[:2], *(extent * f for extent, f in pairs))]
    if any(extent % f for extent, f in pairs):
        raise call.error(
            f"factor {list(factor)} does not divide the extents {list(source[2:])}",
            "slice or pad the input",
            at="factor",
        )
    return [(*source[:2], *(extent // f for extent, f in pairs))]


WINDOW_RULES: dict[str, Callable[[Call], list[Shape]]] = {
    "conv": _conv,
    "deconv": _deconv,
    "separable_conv": _separable_conv,
    "separable_deconv": _separable_deconv,
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
