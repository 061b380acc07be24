"""Float reference: operators beyond the standard that choose elements by index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import Case, all_beside_axis, beside_axis, never

__all__: list[str] = []

_UFUNCS = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def _element_index(call: Evaluation) -> tuple[Array, ...]:
    """Index arrays that read each element of ``indices`` along ``axis``, in place elsewhere."""
    x, indices = call.args[:2]
    axis = call.attr("axis")
    grid: list[Array] = list(np.indices(indices.shape, sparse=True))
    grid[axis] = call.indices(indices, x.shape[axis])
    return tuple(grid)


def _nd_index(call: Evaluation, extents: Sequence[int]) -> tuple[Array, ...]:
    """Index arrays of the last axis of ``indices``: one for each of these extents."""
    return tuple(
        call.indices(call.args[1][..., position], extent) for position, extent in enumerate(extents)
    )


def _scattered(call: Evaluation, index: tuple[Array, ...]) -> Array:
    """Put or merge the updates into a copy of the input; of several at a place the last wins."""
    y, updates = call.args[0].copy(), call.args[2]
    reduction = call.attr("reduction", "none")
    if reduction == "none":
        y[index] = updates
    else:
        _UFUNCS[reduction].at(y, index, updates)
    return y


@operator("gather_elements", batch=all_beside_axis)
def gather_elements(call: Evaluation) -> Array:
    return call.args[0][_element_index(call)]


def _indexed_samples(case: Case) -> bool:
    batch_dims = case.node.attrs["batch_dims"]
    return case.varies == ((True, True) if batch_dims else (False, True))


@operator("gather_nd", batch=_indexed_samples)
def gather_nd(call: Evaluation) -> Array:
    x, indices = call.args
    batch_dims, depth = call.attr("batch_dims", 0), indices.shape[-1]
    batch = [
        positions.reshape(*positions.shape, *[1] * (indices.ndim - 1 - batch_dims))
        for positions in np.indices(x.shape[:batch_dims])
    ]
    index = (*batch, *_nd_index(call, x.shape[batch_dims : batch_dims + depth]))
    return np.asarray(x[index])


@operator("scatter_elements", batch=all_beside_axis)
def scatter_elements(call: Evaluation) -> Array:
    return _scattered(call, _element_index(call))


@operator("scatter_nd", batch=never)
def scatter_nd(call: Evaluation) -> Array:
    x, indices = call.args[:2]
    return _scattered(call, _nd_index(call, x.shape[: indices.shape[-1]]))


@operator("topk", batch=beside_axis)
def topk(call: Evaluation) -> tuple[Array, Array]:
    x, axis = call.args[0], call.attr("axis")
    if call.attr("largest", True):
        flipped = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        order = x.shape[axis] - 1 - np.flip(flipped, axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    order = np.take(order, np.arange(call.attr("k")), axis=axis)
    return np.take_along_axis(x, order, axis), order


def _one_hot_samples(case: Case) -> bool:
    return case.input_varies_alone and beside_axis(case)


@operator("one_hot", batch=_one_hot_samples)
def one_hot(call: Evaluation) -> Array:
    """Put ``on`` where an index points; one outside of -depth..depth-1 points nowhere."""
    indices, off, on = call.args
    axis, depth = call.attr("axis"), call.attr("depth")
    positions = np.arange(depth).reshape(depth, *[1] * (indices.ndim - axis))
    wrapped = np.expand_dims(np.where(indices < 0, indices + depth, indices), axis)
    return np.where(wrapped == positions, on.reshape(()), off.reshape(()))


def _trilu_samples(case: Case) -> bool:
    return case.rank > 2


@operator("trilu", batch=_trilu_samples)
def trilu(call: Evaluation) -> Array:
    part = np.triu if call.attr("upper", True) else np.tril
    return np.asarray(part(call.args[0], call.attr("k", 0)))
