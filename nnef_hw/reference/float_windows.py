"""Float reference: convolution, pooling and matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from nnef_hw.errors import UnsupportedError
from nnef_hw.reference.registry import Array, Call, operator
from nnef_hw.reference.windows import convolve, gather_taps, pad_border

__all__: list[str] = []


def _pairs(padding: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    return [(int(p), int(q)) for p, q in padding]


def _bias(bias: Array, rank: int) -> Array:
    """Bias as [1, C, 1...]; a lone number and [C] are taken too."""
    return bias.reshape(1, -1, *[1] * (rank - 2))


def _activate(call: Call, y: Array) -> Array:
    return np.maximum(y, 0.0) if call.attr("activation") == "relu" else y


def explicit_padding(
    call: Call, extents: Sequence[int], size: Sequence[int]
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Return padding, stride and dilation of a window op with NNEF's defaults filled in."""
    stride = list(call.attr("stride") or [1] * len(size))
    dilation = list(call.attr("dilation") or [1] * len(size))
    if call.attr("padding"):
        return _pairs(call.attr("padding")), stride, dilation
    padding = []
    for n, k, s, d in zip(extents, size, stride, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        padding.append((total // 2, total - total // 2))
    return padding, stride, dilation


@operator("conv")
def conv(call: Call) -> Array:
    x, weights, bias = call.args
    padding, stride, dilation = explicit_padding(call, x.shape[2:], weights.shape[2:])
    groups = call.attr("groups", 1) or x.shape[1]
    padded = pad_border(x, padding, call.attr("border", "constant"))
    y = convolve(padded, weights, stride, dilation, groups)
    return _activate(call, y + _bias(bias, y.ndim))


@operator("deconv")
def deconv(call: Call) -> Array:
    """Transposed convolution: every input pixel adds its filter to the (padded) output."""
    x, weights, bias = call.args
    if call.attr("border", "constant") != "constant":
        raise UnsupportedError(
            f"deconv {call.node.name!r} with border {call.attr('border')!r} cannot be evaluated",
            remedy="use border = 'constant'",
            location=call.node.location,
        )
    size, extents = weights.shape[2:], call.shape[2:]
    stride = list(call.attr("stride") or [1] * len(size))
    dilation = list(call.attr("dilation") or [1] * len(size))
    groups = call.attr("groups", 1) or x.shape[1]
    full = [
        (n - 1) * s + (k - 1) * d + 1
        for n, k, s, d in zip(x.shape[2:], size, stride, dilation, strict=True)
    ]
    if call.attr("padding"):
        before = [p for p, _ in _pairs(call.attr("padding"))]
    else:
        before = [max(f - n, 0) // 2 for f, n in zip(full, extents, strict=True)]
    count, inputs = x.shape[:2]
    outputs = weights.shape[1] * groups
    xg = x.reshape(count, groups, inputs // groups, -1)
    wg = weights.reshape(groups, inputs // groups, weights.shape[1], *size)
    room = [max(f, p + n) for f, p, n in zip(full, before, extents, strict=True)]
    y = np.zeros((count, outputs, *room))
    for tap in product(*map(range, size)):
        part = np.einsum("ngip,gio->ngop", xg, wg[(slice(None),) * 3 + tap])
        where = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, n, s in zip(tap, dilation, x.shape[2:], stride, strict=True)
        )
        y[(slice(None), slice(None), *where)] += part.reshape(count, outputs, *x.shape[2:])
    crop = tuple(slice(p, p + n) for p, n in zip(before, extents, strict=True))
    return y[(slice(None), slice(None), *crop)] + _bias(bias, y.ndim)


@operator("linear")
def linear(call: Call) -> Array:
    x, weights, bias = call.args
    y = x @ np.swapaxes(weights, -1, -2)
    return _activate(call, y + (bias if bias.ndim else bias.reshape(1)))


@operator("matmul")
def matmul(call: Call) -> Array:
    a, b = call.args
    a = np.swapaxes(a, -1, -2) if call.attr("transposeA", False) else a
    b = np.swapaxes(b, -1, -2) if call.attr("transposeB", False) else b
    return np.asarray(a @ b)


@operator("max_pool")
def max_pool(call: Call) -> Array:
    x, size = call.args[0], call.attr("size")
    padding, stride, dilation = explicit_padding(call, x.shape, size)
    border = call.attr("border", "constant")
    padded = pad_border(x, padding, border, -np.inf if border == "ignore" else 0.0)
    return np.asarray(np.maximum.reduce(gather_taps(padded, size, stride, dilation)))


@operator("avg_pool", "box")
def average(call: Call) -> Array:
    """Sum of a window; ``avg_pool`` and a normalized ``box`` divide by the taps that count."""
    x, size = call.args[0], call.attr("size")
    padding, stride, dilation = explicit_padding(call, x.shape, size)
    border = call.attr("border", "constant")
    padded = pad_border(x, padding, border)
    taps = gather_taps(padded, size, stride, dilation)
    total = np.zeros(taps[0].shape)
    for tap in taps:
        total += tap
    if call.node.op == "box" and not call.attr("normalize", False):
        return total
    if border != "ignore":
        return total / len(taps)
    inside = pad_border(np.ones((1, *x.shape[1:])), padding, border)
    return total / sum(gather_taps(inside, size, stride, dilation))


@operator("area_downsample", "nearest_downsample")
def downsample(call: Call) -> Array:
    x, factor = call.args[0], list(call.attr("factor"))
    taps = gather_taps(x, [1, 1, *factor], [1, 1, *factor], [1] * x.ndim)
    return taps[0] if call.node.op == "nearest_downsample" else np.mean(taps, axis=0)


@operator("nearest_upsample")
def upsample(call: Call) -> Array:
    x = call.args[0]
    for axis, factor in enumerate(call.attr("factor"), start=2):
        x = np.repeat(x, factor, axis=axis)
    return x
