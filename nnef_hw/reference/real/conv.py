"""Float reference: convolution, its reverse, and both in two steps."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.arithmetic.images.windows import convolve, pad_border, scatter_taps
from nnef_hw.reference.real.attributes import WindowAttributes, down_padding, up_padding
from nnef_hw.reference.real.functions import activated
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import constant_weights

__all__: list[str] = []


def _bias(bias: Array, rank: int) -> Array:
    """Bias as [1, C, 1...]; a lone number and [C] are taken too."""
    return bias.reshape(1, -1, *[1] * (rank - 2))


def _window(call: Evaluation, weights: Array) -> WindowAttributes:
    return WindowAttributes.of(call, weights.shape[2:])


def correlate(
    x: Array, weights: Array, window: WindowAttributes, groups: int, border: str
) -> Array:
    """Convolve [N, C, ...] with [outC, C/groups, ...]; padding is explicit or automatic."""
    padding = down_padding(window, x.shape[2:])
    padded = pad_border(x, padding, border)
    return convolve(padded, weights, window.stride, window.dilation, groups or x.shape[1])


def reverse(
    x: Array, weights: Array, window: WindowAttributes, groups: int, border: str,
    extents: Sequence[int],
) -> Array:  # fmt: skip
    """Add the filter [C, outC/groups, ...], times every input pixel, to an output of ``extents``.

    The border is that of the input [N, C, ...], whose pixels outside reach the output too.
    """
    padding = [p for p, _ in up_padding(window, x.shape[2:], extents)]
    x, padding = extend_input(x, window, padding, extents, border)
    count, inputs = x.shape[:2]
    per_group = weights.shape[1]
    columns = x.reshape(count, groups, inputs // groups, -1)
    kernel = weights.reshape(groups, inputs // groups, per_group, -1).transpose(3, 0, 2, 1)
    shape = (count, groups * per_group, *x.shape[2:])
    parts = ((tap @ columns).reshape(shape) for tap in kernel)
    full = scatter_taps(parts, shape, window.size, window.stride, window.dilation)
    crop = [(-p, p + n - f) for p, n, f in zip(padding, extents, full.shape[2:], strict=True)]
    return pad_border(full, crop)


def extend_input(
    x: Array, window: WindowAttributes, padding: Sequence[int], extents: Sequence[int], border: str
) -> tuple[Array, list[int]]:
    """Continue the last axes of a reverse operation's input as far as its output sees them.

    Returns the input and the padding of the output that belongs to it.
    """
    if border in {"constant", "ignore"}:
        return x, list(padding)
    around = [
        (max((f - p - 1) // s, 0), max((n - 1 + p) // s - (z - 1), 0))
        for f, p, s, n, z in zip(
            window.reach, padding, window.stride, extents, x.shape[-len(extents) :], strict=True
        )
    ]
    moved = [p + k * s for p, (k, _), s in zip(padding, around, window.stride, strict=True)]
    return pad_border(x, around, border), moved


@operator("conv", batch=constant_weights)
def conv(call: Evaluation) -> Array:
    x, weights, bias = call.args
    y = correlate(
        x, weights, _window(call, weights), call.attr("groups", 1), call.attr("border", "constant")
    )
    y += _bias(bias, y.ndim)
    return activated(y, call.node.attrs)


@operator("deconv", batch=constant_weights)
def deconv(call: Evaluation) -> Array:
    x, weights, bias = call.args
    window, groups = _window(call, weights), call.attr("groups", 1) or x.shape[1]
    y = reverse(x, weights, window, groups, call.attr("border", "constant"), call.shape[2:])
    return y + _bias(bias, y.ndim)


@operator("separable_conv", batch=constant_weights)
def separable_conv(call: Evaluation) -> Array:
    x, plane, point, bias = call.args
    y = correlate(x, plane, _window(call, plane), 0, call.attr("border"))
    y = correlate(y, point, WindowAttributes.one(x.ndim - 2), call.attr("groups"), "constant")
    return y + _bias(bias, y.ndim)


@operator("separable_deconv", batch=constant_weights)
def separable_deconv(call: Evaluation) -> Array:
    x, plane, point, bias = call.args
    point_window, groups = WindowAttributes.one(x.ndim - 2), call.attr("groups")
    y = reverse(x, point, point_window, groups, "constant", x.shape[2:])
    depthwise = call.shape[1]
    window = _window(call, plane)
    y = reverse(y, plane, window, depthwise, call.attr("border"), call.shape[2:])
    return y + _bias(bias, y.ndim)
