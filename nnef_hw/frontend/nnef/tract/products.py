"""Products and attention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.tract.datum import datum_type
from nnef_hw.frontend.nnef.tract.values import cast, is_present, tensors
from nnef_hw.ir import Tensor

__all__ = ["PRODUCTS", "legacy_expression"]


def _einsum(call: Invoked) -> Tensor:
    operands = tensors(call, "inputs")
    dtype = "scalar" if any(item.dtype == "scalar" for item in operands) else "integer"
    operands = [cast(call, item, dtype) for item in operands]
    result: Tensor = call.call("einsum", operands, expr=call.values["expr"], names=call.names)
    if call.values["output"]:
        _, quant = datum_type(call, "output")
        result = call.evaluator.builder.add(replace(result, quant=quant))
    return result


def legacy_expression(call: Invoked, rank: int) -> str:
    """Return the einsum expression of ``axes``: where m, k (of A), k, n (of B), m, n (of C) are.

    The other dimensions are batches, in the same order everywhere.
    """
    axes = call.values["axes"]
    if len(axes) != 6 or not all(0 <= axis < rank for axis in axes):
        raise call.error(f"axes {axes} must be six numbers in 0..{rank - 1}", at="axes")
    terms: list[str] = []
    for index, letters in enumerate(("mk", "kn", "mn")):
        batches = iter("abcdefgh")
        named = dict(zip(axes[2 * index :], letters, strict=False))
        terms.append("".join(named.get(axis) or next(batches) for axis in range(rank)))
    return f"{terms[0]},{terms[1]}->{terms[2]}"


def _matmul(call: Invoked) -> object:
    left, right = call.tensor("A"), call.tensor("B")
    expression = legacy_expression(call, len(left.shape))
    return call.call("einsum", [left, right], expr=expression, names=call.names)


def _attention(call: Invoked) -> object:
    """Scaled dot-product attention; several heads of q may share one of k and v."""
    q, k, v = (call.tensor(key) for key in ("q", "k", "v"))
    rank = len(q.shape)
    if rank not in {3, 4} or any(len(item.shape) != rank for item in (k, v)):
        raise call.error(f"q, k and v must all have rank 3 or 4, not {rank}")
    shape, rows, columns = list(q.shape), q.shape[-2], k.shape[-2]
    scores_shape, result_shape = [*shape[:-1], columns], [*shape[:-1], v.shape[-1]]
    grouped, heads = rank == 4 and q.shape[1] != k.shape[1], k.shape[1]
    if grouped:
        if q.shape[1] % heads:
            raise call.error(f"{q.shape[1]} heads of q are not a multiple of {heads} of k")
        q = call.call("reshape", q, shape=[shape[0], heads, -1, shape[-1]])
    scores = call.call("matmul", q, k, transposeB=True)
    if grouped:
        scores = call.call("reshape", scores, shape=scores_shape)
    scale = call.values["scale"] or k.shape[-1] ** -0.5
    scores = call.call("mul", scores, scale)
    if call.values["is_causal"]:
        later = np.triu(np.ones((rows, columns), bool), columns - rows + 1)
        call.values["mask"] = call.evaluator.builder.constant(f"{call.name}_mask", ~later)
    if is_present(call, "mask"):
        scores = _masked(call, scores)
    weights = call.call("softmax", scores, axes=[rank - 1])
    if not grouped:
        return call.call("matmul", weights, v, names=call.names)
    weights = call.call("reshape", weights, shape=[shape[0], heads, -1, columns])
    result = call.call("matmul", weights, v)
    return call.call("reshape", result, shape=result_shape, names=call.names)


def _masked(call: Invoked, scores: Tensor) -> Tensor:
    """Add a mask of scalars, or let a logical one keep what is true; it is aligned at the end."""
    mask = _aligned(call, call.tensor("mask"), len(scores.shape))
    if mask.dtype != "logical":
        result: Tensor = call.call("add", scores, mask)
        return result
    kept: Tensor = call.call("select", mask, scores, -np.inf)
    return kept


def _aligned(call: Invoked, mask: Tensor, rank: int) -> Tensor:
    missing = rank - len(mask.shape)
    if missing < 1:
        return mask
    result: Tensor = call.call("unsqueeze", mask, axes=list(range(missing)))
    return result


def _masked_softmax(call: Invoked) -> object:
    scores = call.call("mul", call.tensor("input"), call.values["scale"])
    mask = call.values["mask"] = call.tensor("mask")
    last = [len(scores.shape) - 1]
    masked = _masked(call, scores)
    if not call.values["post_softmax_mask"]:
        return call.call("softmax", masked, axes=last, names=call.names)
    weights = call.call("softmax", masked, axes=last)
    mask = _aligned(call, mask, len(scores.shape))
    return call.call("select", mask, weights, 0.0, names=call.names)


PRODUCTS: Mapping[str, Callable[[Invoked], object]] = {
    "tract_core_einsum": _einsum,
    "tract_core_matmul": _matmul,
    "tract_transformers_sdpa": _attention,
    "tract_transformers_scaled_masked_softmax": _masked_softmax,
}
"""Lowerings by operator."""
