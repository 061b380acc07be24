"""Operators that take parts of tensors, or extend them."""

from __future__ import annotations

import numpy as np

from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__ = ["sliced"]


def sliced(call: OnnxCall, x: Value, ranges: dict[int, range]) -> Value:
    """Take arithmetic sequences of indices along axes; all are within the extents."""
    ranges = {axis: r for axis, r in ranges.items() if r != range(x.shape[axis])}
    if not ranges:
        return x
    if x.data is not None or not all(map(len, ranges.values())):
        data = np.zeros(x.shape) if x.data is None else x.data
        for axis, r in ranges.items():
            data = np.take(data, list(r), axis=axis)
        return call.constant(data, x.type, like=x)
    axes = sorted(ranges)
    ends = []
    for axis in axes:
        # NNEF adds the extent to a negative end: -1 itself cannot be said
        end = ranges[axis].stop
        ends.append(end if end >= 0 else end - x.shape[axis])
    return call.emit(
        "slice",
        x,
        axes=axes,
        begin=[ranges[axis].start for axis in axes],
        end=ends,
        stride=[ranges[axis].step for axis in axes],
    )


@lowers("Slice", 1, 10, 11, 13)
def slice_of(call: OnnxCall) -> Value:
    x = call.required(0)
    if call.since == 1:
        starts, ends = call.attr("starts"), call.attr("ends")
        listed, steps = call.attr("axes"), None
    else:
        starts = call.integers(1, "the starts") or []
        ends = call.integers(2, "the ends") or []
        listed, steps = call.integers(3, "the axes"), call.integers(4, "the steps")
    listed = list(range(len(starts))) if listed is None else listed
    axes, steps = call.axes(listed, x.rank), steps or [1] * len(listed)
    if not len(axes) == len(starts) == len(ends) == len(steps) or 0 in steps:
        raise call.error(
            f"starts {starts}, ends {ends}, axes {listed} and steps {steps} do not fit"
        )
    ranges = {
        axis: range(*slice(start, end, step).indices(x.shape[axis]))
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    }
    return sliced(call, x, ranges)


@lowers("Split", 2, 11, 13, 18)
def split(call: OnnxCall) -> list[Value | None]:
    x = call.required(0)
    axis = call.axis(call.attr("axis"), x.rank)
    extent, count = x.shape[axis], len(call.node.outputs)
    sizes = call.attr("split")
    if sizes is None:
        sizes = call.integers(1, "the sizes")
    if sizes is None:
        if call.attr("num_outputs", count) != count:
            raise call.error(f"num_outputs is not the number of its outputs, {count}")
        size = -(-extent // count)
        if call.since < 18 and extent % count:
            raise call.error(f"{extent} elements do not split into {count} equal parts")
        sizes = [max(min(size, extent - index * size), 0) for index in range(count)]
    if len(sizes) != count or sum(sizes) != extent or any(size < 0 for size in sizes):
        raise call.error(f"the {extent} elements of dimension {axis} do not split into {sizes}")
    if count == 1:
        return [x]
    if 0 not in sizes and x.data is None:
        ratios = [1] * count if len(set(sizes)) == 1 else sizes
        return [*call.emit_many("split", x, elements=(x.type,), axis=axis, ratios=ratios)]
    begins = np.cumsum([0, *sizes]).tolist()
    return [
        sliced(call, x, {axis: range(begin, begin + size)})
        for begin, size in zip(begins, sizes, strict=False)
    ]


_BORDERS = {"constant": "constant", "edge": "replicate", "reflect": "reflect"}


@lowers("Pad", 2, 11, 13, 18, 19, 21, 23, 24, 25)
def pad(call: OnnxCall) -> Value:
    x, mode = call.required(0), call.attr("mode")
    if call.since == 2:
        pads, axes, value = call.attr("pads"), None, call.attr("value")
    else:
        pads = call.integers(1, "the pads") or []
        axes, value = (
            call.integers(3, "the axes"),
            call.optional_number(2, "the constant value") or 0,
        )
    axes = list(range(x.rank)) if axes is None else call.axes(axes, x.rank)
    if len(pads) != 2 * len(axes):
        raise call.error(f"{len(pads)} pads are given for {len(axes)} axes")
    padding = [(0, 0)] * x.rank
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        padding[axis] = (before, after)
    if mode == "wrap":
        return _wrapped(call, x, padding)
    if mode not in _BORDERS:
        raise call.error(f"there is no mode {mode!r}")
    if not any(map(any, padding)):
        return x
    border = _BORDERS[mode]
    return call.emit("pad", x, padding=padding, border=border, value=float(value))


def _wrapped(call: OnnxCall, x: Value, padding: list[tuple[int, int]]) -> Value:
    """Continue a tensor periodically."""
    for axis, (before, after) in enumerate(padding):
        extent = x.shape[axis]
        if max(before, after) > extent or min(before, after) < 0:
            raise call.unsupported(
                f"the padding {(before, after)} of {extent} elements wraps more than once"
            )
        parts = [
            sliced(call, x, {axis: part})
            for part in (range(extent - before, extent), range(extent), range(after))
            if part
        ]
        x = call.emit("concat", *parts, axis=axis) if len(parts) > 1 else x
    return x
