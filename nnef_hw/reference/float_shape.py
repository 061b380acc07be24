"""Float reference: operators that only move elements."""

from __future__ import annotations

import numpy as np

from nnef_hw.reference.rearrange import depth_to_space
from nnef_hw.reference.registry import Array, Call, operator
from nnef_hw.reference.windows import pad_border

__all__: list[str] = []


@operator("reshape", "squeeze", "unsqueeze")
def reshape(call: Call) -> Array:
    return call.args[0].reshape(call.shape)


@operator("transpose")
def transpose(call: Call) -> Array:
    x, axes = call.args[0], list(call.attr("axes"))
    return x.transpose(axes + list(range(len(axes), x.ndim)))


@operator("concat")
def concat(call: Call) -> Array:
    return np.concatenate(call.args, axis=call.attr("axis"))


@operator("stack")
def stack(call: Call) -> Array:
    return np.stack(call.args, axis=call.attr("axis"))


@operator("unstack")
def unstack(call: Call) -> list[Array]:
    return list(np.moveaxis(call.args[0], call.attr("axis"), 0))


@operator("split")
def split(call: Call) -> list[Array]:
    axis = call.attr("axis")
    extents = [shape[axis] for shape in call.shapes]
    return np.split(call.args[0], np.cumsum(extents)[:-1].tolist(), axis=axis)


@operator("slice")
def slice_(call: Call) -> Array:
    """Slice as NNEF 1.0.5 does; ``end = 0`` means the end where all strides are 1."""
    x = call.args[0]
    axes, begins, ends = call.attr("axes"), call.attr("begin"), call.attr("end")
    strides = call.attr("stride") or [1] * len(axes)
    index: list[slice] = [slice(None)] * x.ndim
    for axis, begin, end, stride in zip(axes, begins, ends, strides, strict=True):
        extent = x.shape[axis]
        begin = begin + extent if begin < 0 else begin
        if end == 0 and all(s == 1 for s in strides):
            end = extent
        end = end + extent if end < 0 else end
        if stride < 0:
            index[axis] = slice(min(begin, extent - 1), None if end < 0 else end, stride)
        else:
            index[axis] = slice(max(begin, 0), min(end, extent), stride)
    return x[tuple(index)]


@operator("tile")
def tile(call: Call) -> Array:
    return np.tile(call.args[0], call.attr("repeats"))


@operator("pad")
def pad(call: Call) -> Array:
    padding = [tuple(pair) for pair in call.attr("padding")]
    return pad_border(
        call.args[0], padding, call.attr("border", "constant"), call.attr("value", 0.0)
    )


@operator("depth_to_space")
def spread(call: Call) -> Array:
    return depth_to_space(call.args[0], call.attr("factor"))


@operator("gather")
def gather(call: Call) -> Array:
    x, axis = call.args[0], call.attr("axis", 0)
    return np.take(x, call.indices(call.args[1], x.shape[axis]), axis=axis)
