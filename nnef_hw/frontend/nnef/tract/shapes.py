"""Sources, casts, shapes and indices: dimensions may be tensors, negative, or out of bounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nnef_hw.frontend.nnef.evaluation import sources
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.tract.datum import datum_type
from nnef_hw.frontend.nnef.tract.values import as_standard, cast, extents, indices, number
from nnef_hw.ir import Tensor

__all__ = ["SHAPES"]

_MAX_RANGE = 1 << 24


def _external(call: Invoked) -> Tensor:
    call.dtype, quant = datum_type(call, "datum_type")
    tensor = sources.external(call)
    return tensor if quant is None else call.evaluator.builder.add(replace(tensor, quant=quant))


def _cast(call: Invoked) -> Tensor:
    """Convert to a type; without one, the quantization file says how to quantize the result."""
    builder, tensor = call.evaluator.builder, call.tensor("input")
    if not call.values["to"]:
        if call.name not in call.evaluator.quantized:
            raise call.error(
                f"it has no type, and graph.quant has no line for {call.name!r}",
                "write to = 'f32', or say how the result is quantized",
            )
        return _copy(call, tensor)
    dtype, quant = datum_type(call, "to")
    result = cast(call, tensor, dtype, call.name)
    if quant is None:
        return result
    return builder.add(replace(_copy(call, result), quant=quant))


def _copy(call: Invoked, tensor: Tensor) -> Tensor:
    (result,) = call.evaluator.builder.node(
        "copy",
        [tensor],
        {},
        [call.evaluator.claim(call.name)],
        (tensor.dtype,),
        location=call.location,
        origin=call.scope.location,
    )
    return result


def _shape_of(call: Invoked) -> Tensor:
    shape = np.array(call.tensor("input").shape, np.int64)
    return call.evaluator.builder.constant(call.name, shape, location=call.location)


def _range(call: Invoked) -> Tensor:
    start, end, step = (number(call, key) for key in ("start", "end", "step"))
    count = (end - start) / step if step else 0
    if not 0 < count <= _MAX_RANGE:
        raise call.error(
            f"there are no numbers, or too many, from {start} to {end} with step {step}", at="end"
        )
    data = np.arange(start, end, step)
    return call.evaluator.builder.constant(call.name, data, location=call.location)


def _broadcast(call: Invoked) -> object:
    shape, tensor = extents(call, "shape"), call.tensor("input")
    if any(extent < 1 for extent in shape):
        raise call.error(f"shape {shape} must be positive", at="shape")
    missing = len(shape) - len(tensor.shape)
    if missing > 0:
        tensor = call.call("unsqueeze", tensor, axes=list(range(missing)))
    return call.call("broadcast", tensor, shape=shape, names=call.names)


def _reshape(call: Invoked) -> object:
    call.dtype = call.tensor("input").dtype
    return as_standard(call, shape=extents(call, "shape"))


def _squeeze(call: Invoked) -> object:
    """Remove axes one after the other, the last first; an axis may be named repeatedly."""
    left = list(range(len(call.tensor("input").shape)))
    removed = [
        left.pop(axis) if 0 <= axis < len(left) else axis
        for axis in sorted(call.values["axes"], reverse=True)
    ]
    return as_standard(call, axes=sorted(removed))


def _unsqueeze(call: Invoked) -> object:
    """Insert axes one after the other, the first first; an axis may be named repeatedly."""
    axes: list[int] = []
    for axis in sorted(call.values["axes"]):
        axes = [*(other + (other >= axis) for other in axes), axis]
    return as_standard(call, axes=sorted(axes))


def _tile(call: Invoked) -> object:
    return as_standard(call, repeats=extents(call, "repeats"))


def _pad(call: Invoked) -> object:
    if call.values["border"] == "replicated":
        call.values["border"] = "replicate"
    return call.node()


def _slice(call: Invoked) -> object:
    """Slice; an end of 0 or less counts from the end of the axis, whatever the stride."""
    source, axes = call.tensor("input").shape, call.values["axes"]
    begin, end = list(call.values["begin"]), list(call.values["end"])
    strides = call.values["stride"] or [1] * len(axes)
    for index, (axis, stride) in enumerate(zip(axes, strides, strict=False)):
        if stride < 1 or not 0 <= axis < len(source) or index >= min(len(begin), len(end)):
            continue
        extent, first, last = source[axis], begin[index], end[index]
        if first == last:
            raise call.error(f"nothing is left of dimension {axis} of {list(source)}", at="end")
        first, last = min(first, extent), min(last, extent)
        begin[index] = max(first + extent if first < 0 else first, 0)
        end[index] = last + extent if last <= 0 else last
    return as_standard(call, begin=begin, end=end)


def _downsample(call: Invoked) -> object:
    tensor, axis = call.tensor("input"), call.values["axis"]
    stride, modulo = call.values["stride"], call.values["modulo"]
    if not 0 <= axis < len(tensor.shape):
        raise call.error(f"there is no dimension {axis} in {list(tensor.shape)}", at="axis")
    begin, end = modulo, tensor.shape[axis]
    if stride < 0:
        begin, end = end - 1, modulo - 1 if modulo else -end - 1
    return as_standard(call, "slice", axes=[axis], begin=[begin], end=[end], stride=[stride])


def _gather(call: Invoked) -> object:
    tensor, axis = call.tensor("input"), call.values["axis"]
    return call.call("gather", tensor, indices(call), axis=axis, names=call.names)


def _gather_elements(call: Invoked) -> object:
    op = call.op.removeprefix("tract_core_")
    key = "axis" if op == "gather_elements" else "batch_dims"
    found = {key: call.values[key]}
    return call.call(op, call.tensor("input"), indices(call), names=call.names, **found)


def _scatter(call: Invoked) -> object:
    op = call.op.removeprefix("tract_core_")
    tensor, updates = call.tensor("input"), call.tensor("updates")
    dtype = "scalar" if "scalar" in {tensor.dtype, updates.dtype} else tensor.dtype
    found = {key: call.values[key] for key in ("axis", "reduction") if key in call.values}
    arguments = cast(call, tensor, dtype), indices(call), cast(call, updates, dtype)
    return call.call(op, *arguments, names=call.names, **found)


def _one_hot(call: Invoked) -> object:
    values = (call.values["value_off"], call.values["value_on"])
    depth, axis = call.values["dim"], call.values["axis"]
    arguments = indices(call, "input"), *values
    return call.call("one_hot", *arguments, depth=depth, axis=axis, names=call.names)


SHAPES: Mapping[str, Callable[[Invoked], object]] = {
    "tract_core_external": _external,
    "tract_core_cast": _cast,
    "tract_core_shape_of": _shape_of,
    "tract_core_range": _range,
    "tract_core_broadcast": _broadcast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "tile": _tile,
    "pad": _pad,
    "slice": _slice,
    "tract_core_downsample": _downsample,
    "tract_core_gather": _gather,
    "tract_core_gather_elements": _gather_elements,
    "tract_core_gather_nd": _gather_elements,
    "tract_core_scatter_elements": _scatter,
    "tract_core_scatter_nd": _scatter,
    "tract_core_one_hot": _one_hot,
}
"""Lowerings by operator."""
