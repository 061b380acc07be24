"""Operators that read or write elements at indices; negative indices count from the end."""

from __future__ import annotations

import numpy as np

from nnef_hw.frontend.onnx.file.model import BOOL, INT64
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.slicing import sliced

__all__: list[str] = []


def _from_front(call: OnnxCall, indices: Value, extent: int) -> Value:
    """Return indices that count from the front."""
    if indices.data is None:
        wrapped = call.emit("add", indices, extent)
        negative = call.emit("lt", indices, 0, element=BOOL)
        return call.emit("select", negative, wrapped, indices, element=indices.type)
    data = np.where(indices.data < 0, indices.data + extent, indices.data)
    if ((data < 0) | (data >= extent)).any():
        raise call.error(f"the indices {indices.tensor.name!r} are not in {-extent}..{extent - 1}")
    return call.constant(data, indices.type, like=indices)


@lowers("Gather", 1, 11, 13)
def gather(call: OnnxCall) -> Value:
    x, axis = call.required(0), call.axis(call.attr("axis"), call.required(0).rank)
    indices = _from_front(call, call.required(1), x.shape[axis])
    if indices.data is not None and indices.rank == 0:
        index = int(indices.data)
        part = sliced(call, x, {axis: range(index, index + 1)})
        if part.data is not None:
            return call.reshaped(part, (*x.shape[:axis], *x.shape[axis + 1 :]))
        return call.emit("squeeze", part, axes=[axis])
    return call.emit("gather", x, indices, axis=axis)


@lowers("GatherElements", 11, 13)
def gather_elements(call: OnnxCall) -> Value:
    x, axis = call.required(0), call.axis(call.attr("axis"), call.required(0).rank)
    indices = _from_front(call, call.required(1), x.shape[axis])
    return call.emit("gather_elements", x, indices, axis=axis)


@lowers("GatherND", 11, 12, 13)
def gather_nd(call: OnnxCall) -> Value:
    x, indices = call.required(0), call.required(1)
    return call.emit("gather_nd", x, indices, batch_dims=call.attr("batch_dims", 0))


def _scatter(call: OnnxCall, reduction: str) -> Value:
    x, axis = call.required(0), call.axis(call.attr("axis"), call.required(0).rank)
    indices = _from_front(call, call.required(1), x.shape[axis])
    updates = call.required(2)
    return call.emit("scatter_elements", x, indices, updates, axis=axis, reduction=reduction)


@lowers("Scatter", 9)
def scatter(call: OnnxCall) -> Value:
    return _scatter(call, "none")


@lowers("ScatterElements", 11, 13, 16, 18)
def scatter_elements(call: OnnxCall) -> Value:
    return _scatter(call, call.attr("reduction", "none"))


@lowers("ScatterND", 11, 13, 16, 18)
def scatter_nd(call: OnnxCall) -> Value:
    return call.emit("scatter_nd", *call.inputs, reduction=call.attr("reduction", "none"))


@lowers("OneHot", 9, 11, 28)
def one_hot(call: OnnxCall) -> Value:
    """One-hot code; indices outside of -depth..depth - 1 give ``off`` everywhere."""
    indices, values = call.required(0), call.required(2)
    depth = call.integer(1, "the depth")
    if values.shape != (2,):
        raise call.error(f"the values have shape {list(values.shape)}, not [2]")
    off, on = (
        call.reshaped(sliced(call, values, {0: range(index, index + 1)}), ()) for index in (0, 1)
    )
    indices = call.convert(indices, INT64)
    axis = call.axis(call.attr("axis"), indices.rank + 1)
    return call.emit("one_hot", indices, off, on, element=values.type, depth=depth, axis=axis)


@lowers("TopK", 1, 10, 11, 24)
def topk(call: OnnxCall) -> list[Value]:
    x = call.required(0)
    axis = call.axis(call.attr("axis"), x.rank)
    k = call.attr("k") if call.since == 1 else call.integer(1, "k")
    largest = bool(call.attr("largest", 1))
    if k == 1:
        best = "max" if largest else "min"
        place = call.emit(f"arg{best}_reduce", x, element=INT64, axes=[axis])
        return [call.emit(f"{best}_reduce", x, axes=[axis]), place]
    return call.emit_many("topk", x, elements=(x.type, INT64), k=k, axis=axis, largest=largest)


@lowers("CumSum", 11, 14)
def cumsum(call: OnnxCall) -> Value:
    x = call.required(0)
    axis = call.axis(call.integer(1, "the axis"), x.rank)
    exclusive, reverse = bool(call.attr("exclusive")), bool(call.attr("reverse"))
    return call.emit("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


@lowers("Trilu", 14)
def trilu(call: OnnxCall) -> Value:
    k = 0 if call.input(1) is None else call.integer(1, "k")
    return call.emit("trilu", call.required(0), k=k, upper=bool(call.attr("upper")))


@lowers("Compress", 9, 11, 28)
def compress(call: OnnxCall) -> Value:
    x, condition = call.required(0), call.integers(1, "the condition") or []
    axis = call.attr("axis")
    if axis is None:
        x, axis = call.reshaped(x, (x.volume,)), 0
    axis = call.axis(axis, x.rank)
    chosen = np.flatnonzero(condition)
    if chosen.size and chosen[-1] >= x.shape[axis]:
        raise call.error(f"the condition is longer than the {x.shape[axis]} elements")
    return call.emit("gather", x, call.constant(chosen, INT64), axis=axis)


@lowers("ReverseSequence", 10, 28)
def reverse_sequence(call: OnnxCall) -> Value:
    """Reverse the first elements of each sequence: a permutation that is known."""
    x = call.required(0)
    lengths = call.integers(1, "the lengths") or []
    batch_axis, time_axis = (
        call.axis(call.attr(key), x.rank) for key in ("batch_axis", "time_axis")
    )
    if {batch_axis, time_axis} != {0, 1}:
        raise call.error(f"the axes {batch_axis} and {time_axis} are not 0 and 1")
    count, steps = x.shape[batch_axis], x.shape[time_axis]
    if len(lengths) != count or any(not 0 <= length <= steps for length in lengths):
        raise call.error(f"the lengths {lengths} do not fit the shape {list(x.shape)}")
    times = np.array([[*reversed(range(length)), *range(length, steps)] for length in lengths])
    order = times if batch_axis == 0 else times.T
    indices = np.broadcast_to(order.reshape(*order.shape, *[1] * (x.rank - 2)), x.shape)
    return call.emit("gather_elements", x, call.constant(indices, INT64), axis=time_axis)
