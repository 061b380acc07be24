"""Normalization and softmax."""

from __future__ import annotations

import math

from nnef_hw.frontend.onnx.file.model import BOOL, INT64
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__: list[str] = []


def _per_channel(call: OnnxCall, value: Value) -> Value:
    """Return [C] as [1, C], which NNEF spreads over the channels."""
    return call.reshaped(value, (1, *value.shape))


@lowers("BatchNormalization", 6, 7, 9, 14, 15)
def batch_normalization(call: OnnxCall) -> list[Value | None]:
    x = call.required(0)
    parameters = [call.required(index) for index in range(1, 5)]
    for value in parameters:
        if x.rank > 1 and value.volume not in {1, x.shape[1]}:
            raise call.error(
                f"{value.tensor.name!r} has {value.volume} numbers, but dimension 1 of the input "
                f"{x.tensor.name!r} of shape {list(x.shape)} is {x.shape[1]}",
                "export the model again, with the channels in dimension 1",
            )
    scale, offset, mean, variance = (_per_channel(call, value) for value in parameters)
    epsilon = call.attr("epsilon")
    if not call.attr("training_mode"):
        return [call.emit("batch_normalization", x, mean, variance, offset, scale, epsilon=epsilon)]
    axes = [axis for axis in range(x.rank) if axis != 1]
    batch = call.emit_many("moments", x, elements=(x.type, x.type), axes=axes)
    y = call.emit("batch_normalization", x, *batch, offset, scale, epsilon=epsilon)
    momentum = call.attr("momentum")
    running = [
        call.reshaped(
            call.emit(
                "add",
                call.emit("mul", old, momentum),
                call.emit("mul", call.reshaped(new, old.shape), 1 - momentum),
            ),
            (old.volume,),
        )
        for old, new in zip((mean, variance), batch, strict=True)
    ]
    return [y, *running]


def _normalized(
    call: OnnxCall, x: Value, axes: list[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """Return x with mean 0 and variance 1 over axes, the mean, and the inverse deviation."""
    mean, variance = call.emit_many("moments", x, elements=(x.type, x.type), axes=axes)
    inverse = call.emit("rsqrt", call.emit("add", variance, epsilon))
    return call.emit("mul", call.emit("sub", x, mean), inverse), mean, inverse


@lowers("InstanceNormalization", 6, 22)
def instance_normalization(call: OnnxCall) -> Value:
    x, scale, offset = call.inputs
    axes = list(range(2, x.rank))
    mean, variance = call.emit_many("moments", x, elements=(x.type, x.type), axes=axes)
    operands = (_per_channel(call, offset), _per_channel(call, scale))
    epsilon = call.attr("epsilon")
    return call.emit("batch_normalization", x, mean, variance, *operands, epsilon=epsilon)


@lowers("GroupNormalization", 18, 21)
def group_normalization(call: OnnxCall) -> Value:
    """Scale and offset are those of channels, in opset 18 those of groups."""
    x, scale, offset = call.inputs
    groups = call.attr("num_groups")
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise call.error(f"{groups} groups do not divide the channels of shape {list(x.shape)}")
    grouped = call.reshaped(x, (x.shape[0], groups, x.volume // x.shape[0] // groups))
    y, _, _ = _normalized(call, grouped, [2], call.attr("epsilon"))
    if call.since < 21:
        y = call.emit("mul", y, _per_channel(call, scale))
        y = call.emit("add", y, _per_channel(call, offset))
        return call.reshaped(y, x.shape)
    y = call.emit("mul", call.reshaped(y, x.shape), _per_channel(call, scale))
    return call.emit("add", y, _per_channel(call, offset))


@lowers("LayerNormalization", 17)
def layer_normalization(call: OnnxCall) -> list[Value | None]:
    x, scale, offset = call.required(0), call.required(1), call.input(2)
    axis = call.axis(call.attr("axis"), x.rank)
    return [*layer_normalized(call, x, scale, offset, axis)]


def layer_normalized(
    call: OnnxCall, x: Value, scale: Value, offset: Value | None, axis: int
) -> tuple[Value, Value, Value]:
    """Return normalized values from an axis on, their mean, and the inverse of their deviation."""
    y, mean, inverse = _normalized(call, x, list(range(axis, x.rank)), call.attr("epsilon"))
    y = call.spread("mul", y, scale)
    return y if offset is None else call.spread("add", y, offset), mean, inverse


@lowers("RMSNormalization", 23)
def rms_normalization(call: OnnxCall) -> Value:
    x = call.required(0)
    return rms_normalized(call, x, call.required(1), call.axis(call.attr("axis"), x.rank))[0]


def rms_normalized(call: OnnxCall, x: Value, scale: Value, axis: int) -> tuple[Value, Value]:
    """Return values divided by their root mean square from an axis on, and one by that root."""
    square = call.emit("mean_reduce", call.emit("sqr", x), axes=list(range(axis, x.rank)))
    inverse = call.emit("rsqrt", call.emit("add", square, call.attr("epsilon")))
    return call.spread("mul", call.emit("mul", x, inverse), scale), inverse


@lowers("LRN", 1, 13)
def local_response_normalization(call: OnnxCall) -> Value:
    x = call.required(0)
    size = [1, call.attr("size"), *[1] * (x.rank - 2)]
    attrs = {key: call.attr(key) for key in ("alpha", "beta", "bias")}
    return call.emit("local_response_normalization", x, size=size, **attrs)


@lowers("LpNormalization", 1, 22)
def lp_normalization(call: OnnxCall) -> Value:
    """Division by a norm; 0 stays 0."""
    x, p = call.required(0), call.attr("p")
    if p not in {1, 2}:
        raise call.error(f"p is {p}, not 1 or 2")
    axis = call.axis(call.attr("axis"), x.rank)
    return call.emit(f"l{p}_normalization", x, axes=[axis], bias=0.0, epsilon=1e-37)


def _softmax_axes(call: OnnxCall, x: Value) -> list[int]:
    """Axes of a softmax: before opset 13 all behind one that splits the shape in two."""
    axis = call.attr("axis")
    if call.since < 13:
        if not -x.rank <= axis <= x.rank:
            raise call.error(f"axis {axis} is not in {-x.rank}..{x.rank}")
        return list(range(axis + x.rank if axis < 0 else axis, x.rank))
    return [call.axis(axis, x.rank)]


@lowers("Softmax", 1, 11, 13)
def softmax(call: OnnxCall) -> Value:
    x = call.required(0)
    return call.emit("softmax", x, axes=_softmax_axes(call, x))


@lowers("LogSoftmax", 1, 11, 13)
def log_softmax(call: OnnxCall) -> Value:
    """Logarithm of the softmax, without an exponential that could overflow or vanish."""
    x = call.required(0)
    axes = _softmax_axes(call, x)
    shifted = call.emit("sub", x, call.emit("max_reduce", x, axes=axes))
    total = call.emit("sum_reduce", call.emit("exp", shifted), axes=axes, normalize=False)
    return call.emit("sub", shifted, call.emit("log", total))


@lowers("Hardmax", 1, 11, 13)
def hardmax(call: OnnxCall) -> Value:
    """1 at the first maximum, else 0."""
    x = call.required(0)
    axes = _softmax_axes(call, x)
    lead = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    if len(axes) != 1:
        x = call.reshaped(x, (*lead, x.volume // max(math.prod(lead), 1)))
        axes = [len(lead)]
    index = call.emit("argmax_reduce", x, element=INT64, axes=axes)
    numbers = call.constant(range(x.shape[axes[0]]), INT64)
    shape = [-1 if axis in axes else 1 for axis in range(x.rank)]
    shape[axes[0]] = x.shape[axes[0]]
    hit = call.emit("eq", index, call.reshaped(numbers, shape), element=BOOL)
    return call.reshaped(call.convert(hit, x.type), call.required(0).shape)
