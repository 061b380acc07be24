"""Float reference: products, sums and reductions beyond the standard."""

from __future__ import annotations

import math

import numpy as np

from nnef_hw.ir.operators import ContractionAttributes
from nnef_hw.reference.real.reduce import arg_index
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import (
    Case,
    all_vary,
    always,
    beside_axes,
    beside_axis,
)

__all__: list[str] = []


def _einsum_samples(case: Case) -> bool:
    """Whether the first letter of all varying terms and of the result stands for nothing else."""
    left, _, right = case.node.attrs["expr"].partition("->")
    terms = left.split(",")
    batch = right[:1]
    return bool(batch) and all(
        (term[:1] == batch and batch not in term[1:]) if varies else batch not in term
        for term, varies in zip(terms, case.varies, strict=True)
    )


@operator("einsum", batch=_einsum_samples)
def einsum(call: Evaluation) -> Array:
    return np.asarray(np.einsum(call.attr("expr"), *call.args, optimize=True))


@operator("contraction", batch=all_vary)
def contraction(call: Evaluation) -> Array:
    x, w = call.args
    product = ContractionAttributes.parse(call.node.attrs)
    sums = product.sizes(x.shape, w.shape).multiply(x, w)
    return np.asarray(product.scale * sums + product.offset).reshape(call.shape)


@operator("broadcast", batch=always)
def broadcast(call: Evaluation) -> Array:
    return np.broadcast_to(call.args[0], call.shape)


@operator("product_reduce", batch=beside_axes)
def product_reduce(call: Evaluation) -> Array:
    return np.asarray(np.prod(call.args[0], axis=tuple(call.attr("axes")), keepdims=True))


@operator("argmax_reduce_last", "argmin_reduce_last", batch=beside_axes)
def arg_reduce_last(call: Evaluation) -> Array:
    """Index of the last hit; several axes count in row-major order."""
    x, axes = call.args[0], tuple(sorted(call.attr("axes")))
    function = np.argmax if call.node.op == "argmax_reduce_last" else np.argmin
    count = math.prod(x.shape[axis] for axis in axes)
    return np.asarray(count - 1 - arg_index(function, np.flip(x, axes), axes))


@operator("cumsum", batch=beside_axis)
def cumsum(call: Evaluation) -> Array:
    x, axis = call.args[0], call.attr("axis")
    x = np.flip(x, axis) if call.attr("reverse", False) else x
    y = np.cumsum(x, axis=axis)
    if call.attr("exclusive", False):
        y = np.roll(y, 1, axis=axis)
        y[(slice(None),) * axis + (0,)] = 0
    return np.flip(y, axis) if call.attr("reverse", False) else y
