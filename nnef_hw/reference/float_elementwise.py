"""Float reference: element-wise operators, reductions and normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnef_hw.reference.functions import UNARY
from nnef_hw.reference.registry import Array, Call, operator

__all__: list[str] = []

_BINARY: dict[str, Callable[[Array, Array], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "lt": np.less,
    "gt": np.greater,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
}

_REDUCE: dict[str, Callable[..., Any]] = {
    "sum_reduce": np.sum,
    "mean_reduce": np.mean,
    "max_reduce": np.max,
    "min_reduce": np.min,
    "any_reduce": np.any,
    "all_reduce": np.all,
}


def align(*arrays: Array) -> list[Array]:
    """Append axes of extent 1 until all ranks agree: NNEF broadcasts from the left."""
    rank = max(x.ndim for x in arrays)
    return [x.reshape(x.shape + (1,) * (rank - x.ndim)) for x in arrays]


@operator(*sorted(UNARY.keys() - {"clamp"}))
def unary(call: Call) -> Array:
    return np.asarray(UNARY[call.node.op](call.args[0], call.node.attrs))


@operator(*_BINARY)
def binary(call: Call) -> Array:
    a, b = align(*call.args)
    return np.asarray(_BINARY[call.node.op](a, b))


@operator("clamp")
def clamp(call: Call) -> Array:
    if len(call.args) == 1:
        return np.asarray(UNARY["clamp"](call.args[0], call.node.attrs))
    x, lo, hi = align(*call.args)
    return np.asarray(np.maximum(np.minimum(x, hi), lo))


@operator("select")
def select(call: Call) -> Array:
    return np.where(*align(*call.args))


@operator("not")
def logical_not(call: Call) -> Array:
    return np.asarray(np.logical_not(call.args[0]))


@operator("copy", "dropout")
def copy(call: Call) -> Array:
    return call.args[0]


@operator("prelu")
def prelu(call: Call) -> Array:
    x, alpha = align(*call.args)
    return np.where(x < 0, alpha * x, x)


@operator(*_REDUCE)
def reduce(call: Call) -> Array:
    function = np.mean if call.attr("normalize", False) else _REDUCE[call.node.op]
    return np.asarray(function(call.args[0], axis=tuple(call.attr("axes")), keepdims=True))


@operator("argmax_reduce", "argmin_reduce")
def arg_reduce(call: Call) -> Array:
    """Index of the first hit; several axes count in row-major order."""
    x, axes = call.args[0], sorted(call.attr("axes"))
    function = np.argmax if call.node.op == "argmax_reduce" else np.argmin
    last = np.moveaxis(x, axes, range(-len(axes), 0))
    index = function(last.reshape(*last.shape[: x.ndim - len(axes)], -1), axis=-1)
    return np.expand_dims(index, tuple(axes)).astype(np.int64)


@operator("softmax")
def softmax(call: Call) -> Array:
    x, axes = call.args[0], tuple(call.attr("axes", [1]))
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return np.asarray(e / e.sum(axis=axes, keepdims=True))


@operator("batch_normalization")
def batch_normalization(call: Call) -> Array:
    x, mean, variance, offset, scale = align(*call.args)
    epsilon = call.attr("epsilon")
    return np.asarray(offset + scale * (x - mean) / np.sqrt(variance + epsilon))


@operator("moments")
def moments(call: Call) -> tuple[Array, Array]:
    axes = tuple(call.attr("axes"))
    return call.args[0].mean(axis=axes, keepdims=True), call.args[0].var(axis=axes, keepdims=True)


@operator("l1_normalization", "l2_normalization")
def lp_normalization(call: Call) -> Array:
    x, axes = call.args[0], tuple(call.attr("axes"))
    if call.node.op == "l1_normalization":
        norm = np.abs(x).sum(axis=axes, keepdims=True)
    else:
        norm = np.sqrt((x * x).sum(axis=axes, keepdims=True))
    return np.asarray(x / np.maximum(norm + call.attr("bias", 0.0), call.attr("epsilon", 0.0)))
