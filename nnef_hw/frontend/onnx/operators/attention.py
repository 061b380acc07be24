"""Attention and rotation as onnxruntime's optimizer joins them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from nnef_hw.frontend.onnx.file.declarations import MICROSOFT
from nnef_hw.frontend.onnx.file.model import ElementType
from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers
from nnef_hw.frontend.onnx.operators.matrix import matmul

__all__: list[str] = []

_LOWEST = float(np.finfo(np.float32).min)
"""What is added to scores of places that come later."""


@lowers("Attention", 1, domain=MICROSOFT)
def attention(call: OnnxCall) -> Value:
    """Attention of a sequence to itself, whose three projections are one matrix."""
    x, weights, bias = call.required(0), call.required(1), call.input(2)
    _refuse_caches(call, 4)
    if call.attr("do_rotary"):
        raise call.unsupported("do_rotary is not supported", "rotate by RotaryEmbedding")
    if weights.data is None or (bias is not None and bias.data is None):
        raise call.unsupported("weights that are computed are not supported")
    heads, width = call.attr("num_heads"), weights.shape[-1]
    sizes = call.attr("qkv_hidden_sizes") or [width // 3] * 3
    if x.rank != 3 or len(sizes) != 3 or sum(sizes) != width:
        raise call.error(f"sizes {list(sizes)} do not make the {width} columns of the weights")
    parts = []
    for begin, end in pairwise([0, *accumulate(sizes)]):
        part = matmul(call, x, call.constant(weights.data[:, begin:end], weights.type))
        if bias is not None and bias.data is not None:
            part = call.spread("add", part, call.constant(bias.data[begin:end], bias.type))
        parts.append(_split(call, part, heads))
    return _attended(call, parts, mask=call.input(3), added=call.input(5))


@lowers("MultiHeadAttention", 1, domain=MICROSOFT)
def multi_head_attention(call: OnnxCall) -> Value:
    """Attention of a query to keys and values, each with its heads behind each other."""
    _refuse_caches(call, 6)
    query, key, value, bias = (call.input(index) for index in range(4))
    heads = call.attr("num_heads")
    if query is None or query.rank != 3 or key is None or value is None:
        raise call.unsupported(
            "queries, keys and values that are packed are not supported",
            "give each as a tensor [batch, sequence, features]",
        )
    begin, parts = 0, []
    for part in (query, key, value):
        if part.rank == 3 and bias is not None:
            if bias.data is None:
                raise call.unsupported("a bias that is computed is not supported")
            own = bias.data[begin : begin + part.shape[2]]
            parts.append(call.spread("add", part, call.constant(own, bias.type)))
            begin += part.shape[2]
        else:
            parts.append(part)
    split = [part if part.rank == 4 else _split(call, part, heads) for part in parts]
    return _attended(call, split, mask=call.input(4), added=call.input(5))


@lowers("RotaryEmbedding", 1, domain=MICROSOFT)
def rotary_embedding(call: OnnxCall) -> Value:
    """Rotate pairs of features by angles that grow with the position."""
    x, positions, cosines, sines = call.inputs
    size = call.attr("rotary_embedding_dim") or 2 * cosines.shape[1]
    heads = call.attr("num_heads")
    if call.attr("is_packed_batching") or x.rank not in {3, 4}:
        raise call.unsupported("sequences that are packed are not supported")
    whole = x if x.rank == 4 else _split(call, x, heads or x.shape[2] // (2 * cosines.shape[1]))
    length = whole.shape[2]
    tables = [_of_positions(call, table, positions, length) for table in (cosines, sines)]
    rotated, rest = whole, None
    if size < whole.shape[3]:
        rotated, rest = _part(call, whole, 0, size), _part(call, whole, size, whole.shape[3])
    result = _rotated(call, rotated, *tables)
    if rest is not None:
        result = call.emit("concat", result, rest, axis=3)
    if call.attr("scale") != 1:
        result = call.emit("mul", result, call.attr("scale"))
    return result if x.rank == 4 else _joined(call, result)


def _rotated(call: OnnxCall, x: Value, cosines: Value, sines: Value) -> Value:
    """Return [..., 2 h] with the features f and f + h as pairs, or those beside each other."""
    half, pairs = x.shape[3] // 2, call.attr("interleaved")
    if pairs:
        grid = call.reshaped(x, (*x.shape[:3], half, 2))
        x = call.reshaped(call.transposed(grid, (0, 1, 2, 4, 3)), x.shape)
    first, second = _part(call, x, 0, half), _part(call, x, half, 2 * half)
    real = call.emit("sub", call.spread("mul", first, cosines), call.spread("mul", second, sines))
    other = call.emit("add", call.spread("mul", first, sines), call.spread("mul", second, cosines))
    result = call.emit("concat", real, other, axis=3)
    if pairs:
        grid = call.reshaped(result, (*x.shape[:3], 2, half))
        result = call.reshaped(call.transposed(grid, (0, 1, 2, 4, 3)), x.shape)
    return result


def _of_positions(call: OnnxCall, table: Value, positions: Value, length: int) -> Value:
    """Return the rows [batch, 1, length, h] of a table of angles."""
    if positions.data is not None:
        places = np.asarray(positions.data, np.int64)
        if places.size == 1:
            places = places.reshape(1, 1) + np.arange(length)
        if table.data is not None:
            return call.constant(table.data[places][:, None], table.type)
        positions = call.constant(places, positions.type)
    elif positions.volume == 1 and length > 1:
        raise call.unsupported(
            "a first position that is computed is not supported", "give a position for each place"
        )
    rows = call.emit("gather", table, call.reshaped(positions, (-1, length)), axis=0)
    return call.emit("unsqueeze", rows, axes=[1])


def _refuse_caches(call: OnnxCall, *first: int) -> None:
    """Raise an error if keys and values of other calls are given."""
    for index in first:
        if call.input(index) is not None or call.wants(1):
            raise call.unsupported(
                "keys and values of former calls are not supported",
                "export the model without caches (use_cache=False)",
            )


def _split(call: OnnxCall, x: Value, heads: int) -> Value:
    """Return [B, S, heads * H] as [B, heads, S, H]."""
    if heads < 1 or x.shape[2] % heads:
        raise call.error(f"{x.shape[2]} features of {x.tensor.name!r} do not make {heads} heads")
    grid = call.reshaped(x, (*x.shape[:2], heads, x.shape[2] // heads))
    return call.transposed(grid, (0, 2, 1, 3))


def _joined(call: OnnxCall, x: Value) -> Value:
    """Return [B, heads, S, H] as [B, S, heads * H]."""
    batch, heads, length, size = x.shape
    return call.reshaped(call.transposed(x, (0, 2, 1, 3)), (batch, length, heads * size))


def _part(call: OnnxCall, x: Value, begin: int, end: int) -> Value:
    return call.emit("slice", x, axes=[x.rank - 1], begin=[begin], end=[end], stride=[1])


def _attended(
    call: OnnxCall, parts: Sequence[Value], *, mask: Value | None, added: Value | None
) -> Value:
    """Return the weighted values of queries, keys and values [B, heads, S, H], joined."""
    query, key, value = parts
    scale = call.attr("scale") or 1 / math.sqrt(query.shape[3])
    scores = matmul(call, query, call.transposed(key, (0, 1, 3, 2)))
    scores = call.emit("mul", scores, scale)
    if mask is not None:
        scores = call.spread("add", scores, _masked(call, mask, scores.shape))
    if call.attr("unidirectional"):
        later = np.triu(np.full(scores.shape[2:], _LOWEST), 1 + scores.shape[3] - scores.shape[2])
        scores = call.spread("add", scores, call.constant(later, scores.type))
    if added is not None:
        scores = call.spread("add", scores, added)
    return _joined(call, matmul(call, call.emit("softmax", scores, axes=[3]), value))


def _masked(call: OnnxCall, mask: Value, shape: Sequence[int]) -> Value:
    """Return the number added to scores: a mask has 1 for visible places, or their number."""
    batch, _, rows, columns = shape
    least = call.attr("mask_filter_value")
    if mask.rank == 1 and mask.data is not None and mask.volume == batch:
        seen = np.arange(columns) < np.asarray(mask.data).reshape(-1, 1)
        return call.constant(_levels(seen, least)[:, None, None], _real(call))
    if mask.shape not in {(batch, columns), (batch, rows, columns)}:
        raise call.unsupported(
            f"a mask of shape {list(mask.shape)} is not supported",
            f"give one of shape {[batch, columns]} or {[batch, rows, columns]}",
        )
    extents = (batch, *[1] * (4 - mask.rank), *mask.shape[1:])
    if mask.data is not None:
        seen = np.asarray(mask.data).reshape(extents) != 0
        return call.constant(_levels(seen, least), _real(call))
    kept = call.reshaped(call.convert(mask, _real(call)), extents)
    return call.emit("mul", call.emit("sub", call.constant(1.0, _real(call)), kept), least)


def _levels(seen: NDArray[np.bool_], least: float) -> NDArray[np.float64]:
    return np.where(seen, 0.0, least)


def _real(call: OnnxCall) -> ElementType:
    return call.required(0).type
