"""Operators that change shapes, or compute them."""

from __future__ import annotations

import math

import numpy as np

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []

_MAX_GENERATED = 1 << 24


@lowers("RESHAPE", newest=1, shape_argument=1, moves=True)
def reshape(call: TfliteCall) -> Value:
    x = call.required(0)
    if call.input(1) is not None:
        shape = call.integers(1, "the shape")
    else:
        shape = list(call.option("NewShape", call.target().shape))
    if shape.count(-1) == 1:
        known = -math.prod(shape)
        if known <= 0 or x.volume % known:
            raise call.error(f"the shape {shape} does not fit {list(x.shape)}")
        shape[shape.index(-1)] = x.volume // known
    if any(extent < 0 for extent in shape) or math.prod(shape) != x.volume:
        raise call.error(f"the shape {shape} does not fit {list(x.shape)}")
    return call.reshaped(x, shape)


@lowers("SQUEEZE", newest=2, moves=True)
def squeeze(call: TfliteCall) -> Value:
    x = call.required(0)
    axes = [call.axis(axis, x.rank) for axis in call.option("SqueezeDims", []) or []]
    axes = axes or [axis for axis, extent in enumerate(x.shape) if extent == 1]
    wrong = [axis for axis in axes if x.shape[axis] != 1]
    if wrong:
        raise call.error(f"dimension {wrong[0]} is {x.shape[wrong[0]]}, not 1")
    return call.reshaped(x, [extent for axis, extent in enumerate(x.shape) if axis not in axes])


@lowers("EXPAND_DIMS", newest=1, moves=True)
def expand_dims(call: TfliteCall) -> Value:
    x = call.required(0)
    [axis] = call.integers(1, "the axis")
    axis = call.axis(axis, x.rank + 1)
    return call.reshaped(x, (*x.shape[:axis], 1, *x.shape[axis:]))


@lowers("TRANSPOSE", newest=9, moves=True)
def transpose(call: TfliteCall) -> Value:
    x, axes = call.required(0), call.integers(1, "the axes")
    if sorted(axes) != list(range(x.rank)):
        raise call.error(f"the axes {axes} are no permutation of {x.rank}")
    return call.transposed(x, axes)


@lowers("SHAPE", newest=1)
def shape_of(call: TfliteCall) -> Value:
    return call.shape_constant(call.required(0).shape)


@lowers("RANK", newest=1)
def rank_of(call: TfliteCall) -> Value:
    return call.shape_constant(call.required(0).rank)


@lowers("TILE", newest=3)
def tile(call: TfliteCall) -> Value:
    x, repeats = call.plain(call.required(0)), call.integers(1, "the repeats")
    return call.emit("tile", x, repeats=repeats)


@lowers("BROADCAST_TO", newest=4, shape_argument=1)
def broadcast_to(call: TfliteCall) -> Value:
    x, shape = call.plain(call.required(0)), call.integers(1, "the shape")
    if len(shape) < x.rank:
        raise call.error(f"the shape {shape} does not fit {list(x.shape)}")
    x = call.reshaped(x, (1,) * (len(shape) - x.rank) + x.shape)
    return call.emit("broadcast", x, shape=shape)


@lowers("FILL", newest=5, shape_argument=0)
def fill(call: TfliteCall) -> Value:
    shape = call.integers(0, "the shape")
    value = call.constant_value(1, "the value")
    if any(extent < 0 for extent in shape) or math.prod(shape) > _MAX_GENERATED:
        raise call.error(f"the shape {shape} is not possible")
    return call.constant(np.full(shape, value.reshape(-1)[0]), call.required(1).type)


@lowers("ZEROS_LIKE", newest=1)
def zeros_like(call: TfliteCall) -> Value:
    x = call.plain(call.required(0))
    kinds = {"integer": np.int64, "logical": np.bool_}
    kind = kinds.get(x.tensor.dtype, np.float32)
    if x.volume > _MAX_GENERATED:
        raise call.error(f"the shape {list(x.shape)} is not possible")
    return call.constant(np.zeros(x.shape, kind), x.type)


@lowers("RANGE", newest=2)
def range_of(call: TfliteCall) -> Value:
    first, limit, step = (
        call.constant_value(index, what).reshape(-1)[0].item()
        for index, what in enumerate(("the start", "the limit", "the step"))
    )
    if not step or not 0 <= (limit - first) / step <= _MAX_GENERATED:
        raise call.error(f"the range {first}, {limit}, {step} is not possible")
    return call.constant(np.arange(first, limit, step), call.required(0).type)
