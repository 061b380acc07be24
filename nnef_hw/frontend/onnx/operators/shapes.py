"""Operators that give the same elements another shape or order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nnef_hw.frontend.onnx.lowering.calls import OnnxCall, Value
from nnef_hw.frontend.onnx.lowering.registry import lowers

__all__ = ["expanded"]


@lowers("Reshape", 5, 13, 14, 19, 21, 23, 24, 25)
def reshape(call: OnnxCall) -> Value:
    x = call.required(0)
    wanted = call.integers(1, "the shape") or []
    shape: list[int] = []
    for axis, extent in enumerate(wanted):
        copies = extent == 0 and not call.attr("allowzero")
        if copies and axis >= x.rank:
            raise call.error(f"the shape {wanted} copies dimension {axis} of {list(x.shape)}")
        shape.append(x.shape[axis] if copies else extent)
    volume = math.prod(extent for extent in shape if extent != -1)
    if shape.count(-1) == 1 and volume and x.volume % volume == 0:
        shape[shape.index(-1)] = x.volume // volume
    if any(extent < 0 for extent in shape) or math.prod(shape) != x.volume:
        raise call.error(
            f"the shape {wanted} does not fit the input {x.tensor.name!r} of shape {list(x.shape)}"
        )
    return call.reshaped(x, shape)


@lowers("Flatten", 1, 9, 11, 13, 21, 23, 24, 25)
def flatten(call: OnnxCall) -> Value:
    x, axis = call.required(0), call.attr("axis")
    if not -x.rank <= axis <= x.rank:
        raise call.error(f"axis {axis} is not in {-x.rank}..{x.rank}")
    axis += x.rank if axis < 0 else 0
    return call.reshaped(x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def _axes(call: OnnxCall) -> list[int] | None:
    """Axes: an attribute before opset 13, an input since then."""
    axes: list[int] | None = call.attr("axes")
    return call.integers(1, "the axes") if axes is None else axes


@lowers("Squeeze", 1, 11, 13, 21, 23, 24, 25)
def squeeze(call: OnnxCall) -> Value:
    x, listed = call.required(0), _axes(call)
    ones = [axis for axis, extent in enumerate(x.shape) if extent == 1]
    axes = ones if listed is None else sorted(call.axes(listed, x.rank))
    if not set(axes) <= set(ones):
        raise call.error(f"the axes {axes} of shape {list(x.shape)} are not all 1")
    if x.data is not None:
        shape = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
        return call.reshaped(x, shape)
    return call.emit("squeeze", x, axes=axes) if axes else x


@lowers("Unsqueeze", 1, 11, 13, 21, 23, 24, 25)
def unsqueeze(call: OnnxCall) -> Value:
    x, listed = call.required(0), _axes(call) or []
    axes = sorted(call.axes(listed, x.rank + len(listed)))
    if x.data is not None:
        extents = iter(x.shape)
        rank = x.rank + len(axes)
        return call.reshaped(x, [1 if axis in axes else next(extents) for axis in range(rank)])
    return call.emit("unsqueeze", x, axes=axes) if axes else x


@lowers("Transpose", 1, 13, 21, 23, 24, 25)
def transpose(call: OnnxCall) -> Value:
    x = call.required(0)
    axes = call.attr("perm", list(range(x.rank))[::-1])
    if sorted(axes) != list(range(x.rank)):
        raise call.error(f"perm {axes} is not a permutation of {x.rank} dimensions")
    return call.transposed(x, axes)


@lowers("Concat", 4, 11, 13)
def concat(call: OnnxCall) -> Value:
    values = call.inputs
    axis = call.axis(call.attr("axis"), values[0].rank)
    filled = [value for value in values if value.volume]
    if len(filled) < 2:
        return filled[0] if filled else values[0]
    return call.emit("concat", *filled, axis=axis)


@lowers("Tile", 6, 13)
def tile(call: OnnxCall) -> Value:
    x, repeats = call.required(0), call.integers(1, "the repeats") or []
    return call.emit("tile", x, repeats=repeats)


@lowers("Expand", 8, 13)
def expand(call: OnnxCall) -> Value:
    return expanded(call, call.required(0), call.integers(1, "the shape") or [])


def expanded(call: OnnxCall, x: Value, shape: Sequence[int]) -> Value:
    """Broadcast ``x`` against a shape, both aligned at the last dimension."""
    rank = max(x.rank, len(shape))
    source = (*[1] * (rank - x.rank), *x.shape)
    target = [*[1] * (rank - len(shape)), *shape]
    if any(a != b and 1 not in {a, b} for a, b in zip(source, target, strict=True)):
        raise call.error(f"the shape {list(x.shape)} does not expand to {list(shape)}")
    repeats = [b if a == 1 else 1 for a, b in zip(source, target, strict=True)]
    x = call.reshaped(x, source)
    return x if set(repeats) <= {1} else call.emit("tile", x, repeats=repeats)


@lowers("DepthToSpace", 1, 11, 13, 28)
def depth_to_space(call: OnnxCall) -> Value:
    x, block = call.required(0), call.attr("blocksize")
    if x.rank != 4 or block < 1 or x.shape[1] % block**2:
        raise call.error(f"blocks of {block} x {block} do not divide the shape {list(x.shape)}")
    n, c, h, w = x.shape
    if call.attr("mode", "DCR") == "DCR":
        split, axes = (n, block, block, c // block**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        split, axes = (n, c // block**2, block, block, h, w), (0, 1, 4, 2, 5, 3)
    moved = call.transposed(call.reshaped(x, split), axes)
    return call.reshaped(moved, (n, c // block**2, h * block, w * block))


@lowers("SpaceToDepth", 1, 13, 28)
def space_to_depth(call: OnnxCall) -> Value:
    x, block = call.required(0), call.attr("blocksize")
    if x.rank != 4 or block < 1 or x.shape[2] % block or x.shape[3] % block:
        raise call.error(f"blocks of {block} x {block} do not divide the shape {list(x.shape)}")
    n, c, h, w = x.shape
    split = call.reshaped(x, (n, c, h // block, block, w // block, block))
    axes = (0, 3, 5, 1, 2, 4) if call.attr("mode", "DCR") == "DCR" else (0, 1, 3, 5, 2, 4)
    moved = call.transposed(split, axes)
    return call.reshaped(moved, (n, c * block**2, h // block, w // block))
