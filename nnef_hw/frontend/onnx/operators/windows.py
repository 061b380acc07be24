"""Convolution and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nnef_hw.arithmetic.records import Fields
from nnef_hw.frontend.onnx.file.model import ELEMENT_TYPES, INT64
from nnef_hw.frontend.onnx.file.tensors import MAX_GENERATED, is_possible
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []

Padding = list[tuple[int, int]]

_EXACT = ELEMENT_TYPES[11]
"""Numbers that hold every index."""


@dataclass(frozen=True, slots=True)
class _Window:
    """A window over the spatial dimensions; ``extra`` is what ``ceil_mode`` adds behind them."""

    size: list[int]
    stride: list[int]
    dilation: list[int]
    padding: Padding
    extra: list[int]

    @property
    def extended(self) -> Padding:
        """Padding, including the part that ``ceil_mode`` adds."""
        return [(p, q + e) for (p, q), e in zip(self.padding, self.extra, strict=True)]


def _same(call: OnnxCall, total: int) -> tuple[int, int]:
    """Share padding out: the odd one goes behind for SAME_UPPER, in front for SAME_LOWER."""
    less = total // 2
    return (total - less, less) if call.attr("auto_pad") == "SAME_LOWER" else (less, total - less)


def _steps(call: OnnxCall, x: Value, size: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """Return strides, dilations, and the extents that one window covers."""
    rank = x.rank - 2
    if rank < 1 or len(size) != rank:
        raise call.error(f"a window of {list(size)} does not fit the shape {list(x.shape)}")
    stride, dilation = (call.attr(key) or [1] * rank for key in ("strides", "dilations"))
    for name, values in (("kernel_shape", size), ("strides", stride), ("dilations", dilation)):
        if len(values) != rank or min(values) < 1:
            raise call.error(f"{name} {list(values)} must have {rank} positive items")
    return stride, dilation, [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]


def _explicit(call: OnnxCall, rank: int) -> Padding:
    pads = call.attr("pads") or [0] * (2 * rank)
    if len(pads) != 2 * rank or min(pads) < 0:
        raise call.error(f"pads {pads} must have {2 * rank} items, none of them negative")
    return list(zip(pads[:rank], pads[rank:], strict=True))


def _window(call: OnnxCall, x: Value, size: Sequence[int]) -> _Window:
    """Return a window with explicit padding."""
    stride, dilation, reach = _steps(call, x, size)
    rank, extents = len(stride), x.shape[2:]
    extra = [0] * rank
    if call.attr("auto_pad") in {"SAME_UPPER", "SAME_LOWER"}:
        padding = [
            _same(call, max((-(-n // s) - 1) * s + r - n, 0))
            for n, s, r in zip(extents, stride, reach, strict=True)
        ]
    elif call.attr("auto_pad") == "VALID":
        padding = [(0, 0)] * rank
    else:
        padding = _explicit(call, rank)
    if call.attr("ceil_mode"):
        for axis, (n, s, r, (p, q)) in enumerate(zip(extents, stride, reach, padding, strict=True)):
            count = -(-(p + n + q - r) // s) + 1
            count -= (count - 1) * s >= n + p  # a window may not begin behind the input
            extra[axis] = max((count - 1) * s + r - (p + n + q), 0)
    return _Window(list(size), stride, dilation, padding, extra)


def _padded(call: OnnxCall, x: Value, padding: Padding) -> Value:
    whole = [(0, 0), (0, 0), *padding]
    return call.emit("pad", x, padding=whole, border="constant", value=0.0)


@lowers("Conv", 1, 11, 22)
def conv(call: OnnxCall) -> Value:
    x, weights = call.required(0), call.required(1)
    size = call.attr("kernel_shape", list(weights.shape[2:]))
    if list(weights.shape[2:]) != size:
        raise call.error(f"kernel_shape {size} is not that of the filter {list(weights.shape)}")
    window = _window(call, x, size)
    return call.emit(
        "conv",
        x,
        weights,
        _bias(call),
        border="constant",
        padding=window.padding,
        stride=window.stride,
        dilation=window.dilation,
        groups=_groups(call),
    )


def _groups(call: OnnxCall) -> int:
    groups: int = call.attr("group")
    if groups < 1:
        raise call.error(f"group is {groups}, not positive")
    return groups


def _bias(call: OnnxCall) -> Value:
    """Return the bias as [1, channels]; 0 if there is none."""
    bias = call.input(2)
    if bias is None:
        return call.constant(0, call.required(0).type)
    return call.reshaped(bias, (1, bias.volume))


@lowers("ConvTranspose", 1, 11, 22)
def conv_transpose(call: OnnxCall) -> Value:
    """Transposed convolution; where ONNX pads the output, the bias goes into the padding too."""
    x, weights = call.required(0), call.required(1)
    size = call.attr("kernel_shape", list(weights.shape[2:]))
    stride, dilation, reach = _steps(call, x, size)
    full = [(n - 1) * s + r for n, s, r in zip(x.shape[2:], stride, reach, strict=True)]
    padding = _output_padding(call, x, stride, full)
    shape = [f - p - q for f, (p, q) in zip(full, padding, strict=True)]
    if min(shape) < 1:
        raise call.error(f"its padding leaves an output of {shape}")
    attrs: Fields = {"border": "constant", "stride": stride, "dilation": dilation}
    attrs["groups"] = _groups(call)
    fits = all(
        p >= 0 and (n + p + max(q, 0) - r) // s + 1 == extent
        for n, (p, q), r, s, extent in zip(shape, padding, reach, stride, x.shape[2:], strict=True)
    )
    if fits:
        whole = [x.shape[0], weights.shape[1] * attrs["groups"], *shape]
        limited = [(p, max(q, 0)) for p, q in padding]
        return call.emit(
            "deconv", x, weights, _bias(call), padding=limited, output_shape=whole, **attrs
        )
    nothing = call.constant(0, x.type)
    y = call.emit(
        "deconv", x, weights, nothing, padding=[(0, 0)] * len(full), output_shape=[], **attrs
    )
    y = _padded(call, y, [(-p, -q) for p, q in padding])
    return y if call.input(2) is None else call.emit("add", y, _bias(call))


def _output_padding(call: OnnxCall, x: Value, stride: list[int], full: list[int]) -> Padding:
    """Return how much is cropped before and behind each dimension; negative if added."""
    rank = len(stride)
    added = call.attr("output_padding") or [0] * rank
    if len(added) != rank or min(added) < 0:
        raise call.error(f"output_padding {added} must have {rank} items, none of them negative")
    wanted = call.attr("output_shape")
    automatic = call.attr("auto_pad")
    if automatic in {"SAME_UPPER", "SAME_LOWER"} and not wanted:
        wanted = [n * s for n, s in zip(x.shape[2:], stride, strict=True)]
    if wanted:
        wanted = wanted[-rank:]
        if len(wanted) != rank:
            raise call.error(f"output_shape {wanted} must have {rank} items")
        upper = automatic == "SAME_UPPER"
        totals = [f + a - n for f, a, n in zip(full, added, wanted, strict=True)]
        halves = [(total // 2, total - total // 2) for total in totals]
        pads = halves if upper else [(q, p) for p, q in halves]
    else:
        pads = [(0, 0)] * rank if automatic == "VALID" else _explicit(call, rank)
    return [(p, q - a) for (p, q), a in zip(pads, added, strict=True)]


def _pool(
    call: OnnxCall, op: str, x: Value, window: _Window, padding: Padding, border: str
) -> Value:
    return call.emit(op, x, **_pool_attrs(window, padding, border))


def _pool_attrs(window: _Window, padding: Padding, border: str) -> Fields:
    return {
        "size": [1, 1, *window.size],
        "border": border,
        "padding": [(0, 0), (0, 0), *padding],
        "stride": [1, 1, *window.stride],
        "dilation": [1, 1, *window.dilation],
    }


@lowers("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(call: OnnxCall) -> list[Value]:
    x = call.required(0)
    window = _window(call, x, call.attr("kernel_shape"))
    if not call.wants(1):
        return [_pool(call, "max_pool", x, window, window.extended, "ignore")]
    attrs = _pool_attrs(window, window.extended, "ignore")
    y, index = call.emit_many("max_pool_with_index", x, elements=(x.type, INT64), **attrs)
    attrs["border"] = "constant"
    places = call.emit("sample", _numbered(call, x), index, **attrs)
    return [y, call.convert(places, INT64)]


def _numbered(call: OnnxCall, x: Value) -> Value:
    """Return every element's index in the flat tensor: what ONNX has for the index of a maximum."""
    numbers = np.arange(x.volume).reshape(x.shape)
    if call.attr("storage_order"):
        columns = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:][::-1]).T
        first = numbers.reshape(*x.shape[:2], -1)[..., 0]
        numbers = first.reshape(*first.shape, *[1] * columns.ndim) + columns
    return call.constant(numbers, _EXACT)


@lowers("AveragePool", 1, 7, 10, 11, 19, 22)
def average_pool(call: OnnxCall) -> Value:
    """Mean of windows; what ``ceil_mode`` adds behind the padding never counts."""
    x = call.required(0)
    window = _window(call, x, call.attr("kernel_shape"))
    if not call.attr("count_include_pad"):
        return _pool(call, "avg_pool", x, window, window.extended, "ignore")
    if not any(window.extra):
        return _pool(call, "avg_pool", x, window, window.padding, "constant")
    behind = [(0, extra) for extra in window.extra]
    return _pool(call, "avg_pool", _padded(call, x, window.padding), window, behind, "ignore")


@lowers("LpPool", 2, 11, 18, 22)
def lp_pool(call: OnnxCall) -> Value:
    x = call.required(0)
    window = _window(call, x, call.attr("kernel_shape"))
    powers, root = _powers(call, x)
    attrs = _pool_attrs(window, window.extended, "constant")
    return _root(call, call.emit("box", powers, normalize=False, **attrs), root)


def _powers(call: OnnxCall, x: Value) -> tuple[Value, int]:
    """Return ``|x| ** p`` and p."""
    p = call.attr("p")
    if p < 1:
        raise call.error(f"p is {p}, not positive")
    if p == 2:
        return call.emit("sqr", x), p
    x = call.emit("abs", x)
    return (x if p == 1 else call.emit("pow", x, float(p))), p


def _root(call: OnnxCall, x: Value, p: int) -> Value:
    if p == 1:
        return x
    return call.emit("sqrt", x) if p == 2 else call.emit("pow", x, 1 / p)


def _spatial(call: OnnxCall, x: Value) -> list[int]:
    if x.rank < 3:
        raise call.error(f"the input has rank {x.rank}, without spatial dimensions")
    return list(range(2, x.rank))


@lowers("GlobalAveragePool", 1, 22)
def global_average_pool(call: OnnxCall) -> Value:
    x = call.required(0)
    return call.emit("mean_reduce", x, axes=_spatial(call, x))


@lowers("GlobalMaxPool", 1, 22)
def global_max_pool(call: OnnxCall) -> Value:
    x = call.required(0)
    return call.emit("max_reduce", x, axes=_spatial(call, x))


@lowers("GlobalLpPool", 2, 22)
def global_lp_pool(call: OnnxCall) -> Value:
    x = call.required(0)
    powers, root = _powers(call, x)
    total = call.emit("sum_reduce", powers, axes=_spatial(call, x), normalize=False)
    return _root(call, total, root)


@lowers("MaxUnpool", 9, 11, 22)
def max_unpool(call: OnnxCall) -> Value:
    """Put maxima back to where they came from: indices count in the flat output."""
    x, indices = call.required(0), call.required(1)
    requested = call.integers(2, "the output shape")
    stride, *_ = _steps(call, x, call.attr("kernel_shape"))
    rank = x.rank - 2
    natural = [
        (n - 1) * s + k - p - q
        for n, s, k, (p, q) in zip(
            x.shape[2:], stride, call.attr("kernel_shape"), _explicit(call, rank), strict=True
        )
    ]
    shape = [*x.shape[:2], *natural] if requested is None else requested
    if len(shape) != x.rank or min(shape) < 1:
        raise call.error(f"the output shape {shape} does not fit rank {x.rank}")
    if not is_possible(shape, MAX_GENERATED):
        raise call.error(f"the output shape {shape} has more than {MAX_GENERATED} elements")
    if shape[2:] != natural:
        raise call.unsupported(f"the output shape {shape[2:]} is not the window's {natural}")
    zeros = call.constant(np.zeros(math.prod(shape)), x.type)
    flat = [call.reshaped(value, (x.volume,)) for value in (indices, x)]
    y = call.emit("scatter_elements", zeros, *flat, axis=0, reduction="none", element=x.type)
    return call.reshaped(y, shape)
