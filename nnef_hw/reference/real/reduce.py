"""Float reference: reductions and normalization along whole axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nnef_hw.arithmetic.arrays import IntArray
from nnef_hw.arithmetic.integer_functions import integer_normalized, integer_softmax_codes
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.reference.real.elementwise import align
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always, beside_axes

__all__ = ["arg_index"]

_REDUCE: dict[str, Callable[..., object]] = {
    "sum_reduce": np.sum,
    "mean_reduce": np.mean,
    "max_reduce": np.max,
    "min_reduce": np.min,
    "any_reduce": np.any,
    "all_reduce": np.all,
}


def arg_index(function: Callable[..., AttributeValue], x: Array, axes: Sequence[int]) -> Array:
    """Apply ``argmax`` or ``argmin`` over several axes, in row-major order; extents stay as 1."""
    if not axes:
        return np.zeros(x.shape, np.int64)
    last = np.moveaxis(x, axes, range(-len(axes), 0))
    index = function(last.reshape(*last.shape[: x.ndim - len(axes)], -1), axis=-1)
    return np.asarray(np.expand_dims(index, tuple(axes)))


@operator(*_REDUCE, batch=beside_axes)
def reduce(call: Evaluation) -> Array:
    function = np.mean if call.attr("normalize", False) else _REDUCE[call.node.op]
    return np.asarray(function(call.args[0], axis=tuple(call.attr("axes")), keepdims=True))


@operator("argmax_reduce", "argmin_reduce", batch=beside_axes)
def arg_reduce(call: Evaluation) -> Array:
    """Index of the first hit; several axes count in row-major order."""
    function = np.argmax if call.node.op == "argmax_reduce" else np.argmin
    return arg_index(function, call.args[0], sorted(call.attr("axes")))


@operator("softmax", batch=beside_axes)
def softmax(call: Evaluation) -> Array:
    x, axes = call.args[0], tuple(call.attr("axes", [1]))
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(e / e.sum(axis=axes, keepdims=True))


@operator("batch_normalization", batch=always)
def batch_normalization(call: Evaluation) -> Array:
    x, mean, variance, offset, scale = align(*call.args)
    epsilon = call.attr("epsilon")
    return np.asarray(offset + scale * (x - mean) / np.sqrt(variance + epsilon))


@operator("moments", batch=beside_axes)
def moments(call: Evaluation) -> tuple[Array, Array]:
    x, axes = call.args[0], tuple(call.attr("axes"))
    mean = np.asarray(x.mean(axis=axes, keepdims=True))
    return mean, np.asarray(np.square(x - mean).mean(axis=axes, keepdims=True))


@operator("l1_normalization", "l2_normalization", batch=beside_axes)
def lp_normalization(call: Evaluation) -> Array:
    x, axes = call.args[0], tuple(call.attr("axes"))
    if call.node.op == "l1_normalization":
        norm = np.abs(x).sum(axis=axes, keepdims=True)
    else:
        norm = np.sqrt((x * x).sum(axis=axes, keepdims=True))
    return np.asarray(x / np.maximum(norm + call.attr("bias", 0.0), call.attr("epsilon", 0.0)))


@operator("normalize", batch=beside_axes)
def normalize(call: Evaluation) -> Array:
    """Divide by the root of the mean square of what lies beside the mean, or beside 0."""
    x, scale, offset = align(*call.args)
    axes = tuple(call.attr("axes"))
    if call.attr("centered", True):
        x = x - x.mean(axis=axes, keepdims=True)
    root = np.sqrt(np.square(x).mean(axis=axes, keepdims=True) + call.attr("epsilon"))
    return np.asarray(x / root * scale + offset)


@operator("integer_normalize", batch=beside_axes)
def integer_normalize(call: Evaluation) -> Array:
    """Divide integers by the root of their mean square; their fractions are left out."""
    x, scale, offset = map(_codes, align(*call.args))
    axes, centered = tuple(call.attr("axes")), call.attr("centered", True)
    whole = integer_normalized(x, scale, offset, axes, centered=centered)
    return _beside_nan(call, whole >> call.attr("shift"))


@operator("integer_softmax", batch=beside_axes)
def integer_softmax(call: Evaluation) -> Array:
    x, exponentials = map(_codes, call.args)
    axes, levels = tuple(call.attr("axes")), call.attr("levels", 256)
    found = integer_softmax_codes(x, exponentials.reshape(-1), levels, axes)
    return _beside_nan(call, found)


def _codes(value: Array) -> IntArray:
    """Return the nearest integers of up to 32 bits, and 0 for what is not a number."""
    finite = np.nan_to_num(np.asarray(value, np.float64), nan=0.0)
    return np.asarray(np.rint(finite.clip(-(2.0**31), 2.0**31 - 1)), np.int64)


def _beside_nan(call: Evaluation, found: IntArray) -> Array:
    """Return a function of integers, which is not a number wherever one of its operands is not."""
    x = call.args[0]
    unknown = np.isnan(x).any(axis=tuple(call.attr("axes")), keepdims=True)
    return np.asarray(np.where(unknown, np.nan, found), x.dtype)
