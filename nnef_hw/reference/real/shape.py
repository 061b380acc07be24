"""Float reference: operators that only move elements."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.images import rearrange
from nnef_hw.arithmetic.images.rearrange import depth_to_space
from nnef_hw.arithmetic.images.windows import pad_border
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import (
    Case,
    all_beside_axis,
    always,
    beside_axes,
    beside_axis,
)

__all__: list[str] = []


@operator("reshape", batch=always)
@operator("squeeze", "unsqueeze", batch=beside_axes)
def reshape(call: Evaluation) -> Array:
    return call.args[0].reshape(call.shape)


def _keeps_samples_first(case: Case) -> bool:
    return case.node.attrs["axes"][:1] in ([], [0])


@operator("transpose", batch=_keeps_samples_first)
def transpose(call: Evaluation) -> Array:
    x, axes = call.args[0], list(call.attr("axes"))
    return x.transpose(axes + list(range(len(axes), x.ndim)))


@operator("concat", batch=all_beside_axis)
def concat(call: Evaluation) -> Array:
    return np.concatenate(call.args, axis=call.attr("axis"))


@operator("stack", batch=all_beside_axis)
def stack(call: Evaluation) -> Array:
    return np.stack(call.args, axis=call.attr("axis"))


@operator("unstack", batch=beside_axis)
def unstack(call: Evaluation) -> list[Array]:
    return list(np.moveaxis(call.args[0], call.attr("axis"), 0))


@operator("split", batch=beside_axis)
def split(call: Evaluation) -> list[Array]:
    axis = call.attr("axis")
    extents = [shape[axis] for shape in call.shapes]
    return np.split(call.args[0], np.cumsum(extents)[:-1].tolist(), axis=axis)


@operator("slice", batch=beside_axes)
def slice_(call: Evaluation) -> Array:
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


def _repeats_within_samples(case: Case) -> bool:
    return bool(case.node.attrs["repeats"][0] == 1)


@operator("tile", batch=_repeats_within_samples)
def tile(call: Evaluation) -> Array:
    return np.tile(call.args[0], call.attr("repeats"))


def _pads_within_samples(case: Case) -> bool:
    return tuple(case.node.attrs["padding"][0]) == (0, 0)


@operator("pad", batch=_pads_within_samples)
def pad(call: Evaluation) -> Array:
    padding = [tuple(pair) for pair in call.attr("padding")]
    return pad_border(
        call.args[0], padding, call.attr("border", "constant"), call.attr("value", 0.0)
    )


@operator("depth_to_space", batch=always)
def spread(call: Evaluation) -> Array:
    return depth_to_space(call.args[0], call.attr("factor"))


@operator("split_steps", "join_steps", "last_step", "reverse_steps", batch=always)
def over_steps(call: Evaluation) -> Array:
    function = getattr(rearrange, call.node.op)
    return np.asarray(function(call.args[0], call.attr("steps")))


@operator("begin_steps", batch=always)
def begin_steps(call: Evaluation) -> Array:
    return rearrange.begin_steps(*call.args)


def _gathered_samples(case: Case) -> bool:
    """Elements of each sample by constant indices, or of a constant by each sample's indices."""
    axis = case.node.attrs["axis"]
    return case.varies == ((True, False) if axis else (False, True))


@operator("gather", batch=_gathered_samples)
def gather(call: Evaluation) -> Array:
    x, axis = call.args[0], call.attr("axis", 0)
    return np.take(x, call.indices(call.args[1], x.shape[axis]), axis=axis)
