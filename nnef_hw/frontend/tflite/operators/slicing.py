"""Operators that take parts of tensors, or extend them."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import lowers
from nnef_hw.frontend.tflite.lowering.values import Value

__all__: list[str] = []


def _sliced(call: TfliteCall, x: Value, ranges: dict[int, range]) -> Value:
    """Take arithmetic sequences of indices along axes; all are within the extents."""
    ranges = {axis: r for axis, r in ranges.items() if r != range(x.shape[axis])}
    if not ranges:
        return x
    for axis, r in ranges.items():
        if not r:
            raise call.unsupported(f"nothing is left of dimension {axis}", "take at least one item")
    axes = sorted(ranges, key=x.stored_axis)
    # NNEF adds the extent to a negative end: -1 itself cannot be said
    ends = [
        ranges[axis].stop if ranges[axis].stop >= 0 else ranges[axis].stop - x.shape[axis]
        for axis in axes
    ]
    return call.emit(
        "slice",
        x,
        axes=[x.stored_axis(axis) for axis in axes],
        begin=[ranges[axis].start for axis in axes],
        end=ends,
        stride=[ranges[axis].step for axis in axes],
    )


@lowers("SLICE", newest=8)
def slice_of(call: TfliteCall) -> Value:
    x = call.required(0)
    begin, size = call.integers(1, "the begin"), call.integers(2, "the size")
    if not len(begin) == len(size) == x.rank:
        raise call.error(f"begin {begin} and size {size} do not fit {list(x.shape)}")
    ranges = {}
    for axis, (first, count) in enumerate(zip(begin, size, strict=True)):
        stop = x.shape[axis] if count == -1 else first + count
        if not 0 <= first <= stop <= x.shape[axis]:
            raise call.error(f"begin {begin} and size {size} do not fit {list(x.shape)}")
        ranges[axis] = range(first, stop)
    return _sliced(call, x, ranges)


@lowers("STRIDED_SLICE", newest=8)
def strided_slice(call: TfliteCall) -> Value:
    """Slice as NumPy does; masks say which bounds are left out, dropped or inserted."""
    x = call.required(0)
    begin, end, step = (
        call.integers(index, what)
        for index, what in ((1, "the begin"), (2, "the end"), (3, "the strides"))
    )
    if not len(begin) == len(end) == len(step):
        raise call.error(f"begin {begin}, end {end} and strides {step} differ in length")
    if 0 in step:
        raise call.error(f"the strides are {step}")
    index = _index(call, begin, end, step)
    if sum(item is not None and item is not ... for item in index) > x.rank:
        raise call.error(f"{len(begin)} bounds do not fit the shape {list(x.shape)}")
    ranges: dict[int, range] = {}
    shape: list[int] = []
    axis = 0
    for place, item in enumerate(index):
        if item is None:
            shape.append(1)
        elif item is ...:
            left = sum(other is not None for other in index[place + 1 :])
            while axis < x.rank - left:
                shape.append(x.shape[axis])
                axis += 1
        else:
            extent = x.shape[axis]
            if isinstance(item, int):
                if not -extent <= item < extent:
                    raise call.error(f"index {item} is not in dimension {axis} of {extent}")
                ranges[axis] = range(item % extent, item % extent + 1)
            else:
                ranges[axis] = range(*item.indices(extent))
                shape.append(len(ranges[axis]))
            axis += 1
    shape += x.shape[axis:]
    return call.reshaped(_sliced(call, x, ranges), shape)


def _index(
    call: TfliteCall, begin: Sequence[int], end: Sequence[int], step: Sequence[int]
) -> list[slice | int | EllipsisType | None]:
    """Return the index that one would write in brackets behind an array."""
    names = ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask")
    no_begin, no_end, ellipsis, new, shrink = (int(call.option(name)) for name in names)
    found: list[slice | int | EllipsisType | None] = []
    for place in range(len(begin)):
        bit = 1 << place
        if ellipsis & bit:
            found.append(...)
        elif new & bit:
            found.append(None)
        elif shrink & bit:
            found.append(begin[place])
        else:
            first = None if no_begin & bit else begin[place]
            last = None if no_end & bit else end[place]
            if call.option("Offset") and first is not None and last is not None:
                # Counted from the end, a sum of 0 or more is behind it.
                last = None if first < 0 <= last + first else last + first
            found.append(slice(first, last, step[place]))
    return found


def _split(call: TfliteCall, x: Value, axis: int, sizes: list[int]) -> list[Value]:
    if sum(sizes) != x.shape[axis] or min(sizes, default=0) < 1:
        raise call.error(f"the {x.shape[axis]} elements of dimension {axis} do not split: {sizes}")
    if len(sizes) == 1:
        return [x]
    ratios = [1] * len(sizes) if len(set(sizes)) == 1 else sizes
    return call.emit_many("split", x, count=len(sizes), axis=x.stored_axis(axis), ratios=ratios)


@lowers("SPLIT", newest=5)
def split(call: TfliteCall) -> list[Value]:
    [axis] = call.integers(0, "the axis")
    x, count = call.required(1), len(call.operator.outputs)
    axis = call.axis(axis, x.rank)
    if not count or x.shape[axis] % count:
        raise call.error(f"{x.shape[axis]} elements do not split into {count} equal parts")
    return _split(call, x, axis, [x.shape[axis] // count] * count)


@lowers("SPLIT_V", newest=3)
def split_v(call: TfliteCall) -> list[Value]:
    x, sizes = call.required(0), call.integers(1, "the sizes")
    [axis] = call.integers(2, "the axis")
    axis = call.axis(axis, x.rank)
    if -1 in sizes:
        rest = x.shape[axis] - sum(size for size in sizes if size != -1)
        sizes = [rest if size == -1 else size for size in sizes]
    return _split(call, x, axis, sizes)


@lowers("UNPACK", newest=6)
def unpack(call: TfliteCall) -> list[Value]:
    x, count = call.plain(call.required(0)), len(call.operator.outputs)
    axis = call.axis(call.option("Axis"), x.rank)
    if x.shape[axis] != count:
        raise call.error(f"dimension {axis} has {x.shape[axis]} items, not {count}")
    shape = [n for k, n in enumerate(x.shape) if k != axis]
    return [call.reshaped(part, shape) for part in _split(call, x, axis, [1] * count)]


@lowers("PACK", newest=5)
def pack(call: TfliteCall) -> Value:
    values = [call.plain(value) for value in call.inputs]
    axis = call.axis(call.option("Axis"), values[0].rank + 1)
    shape = values[0].shape
    if any(value.shape != shape for value in values):
        raise call.error("its arguments have different shapes")
    rows = [call.reshaped(value, (*shape[:axis], 1, *shape[axis:])) for value in values]
    return rows[0] if len(rows) == 1 else call.emit("concat", *rows, axis=axis)


@lowers("CONCATENATION", newest=7)
def concatenation(call: TfliteCall) -> Value:
    values = call.aligned(*call.inputs)
    axis = call.axis(call.option("Axis"), values[0].rank)
    if len(values) == 1:
        return call.activated(values[0])
    result = call.emit("concat", *values, axis=values[0].stored_axis(axis))
    return call.activated(result)


def _padding(call: TfliteCall, x: Value) -> list[tuple[int, int]]:
    """Return the padding of the tensor's axes."""
    pads = call.integers(1, "the padding")
    if len(pads) != 2 * x.rank or min(pads) < 0:
        raise call.error(f"the padding {pads} does not fit the shape {list(x.shape)}")
    pairs = list(zip(pads[::2], pads[1::2], strict=True))
    stored: list[tuple[int, int]] = [(0, 0)] * x.rank
    for axis, pair in enumerate(pairs):
        stored[x.stored_axis(axis)] = pair
    return stored


@lowers("PAD", "PADV2", newest=6)
def pad(call: TfliteCall) -> Value:
    """Pad with 0, or with a constant; quantized tensors with its code."""
    x = call.required(0)
    value = 0.0
    if call.input(2) is not None:
        value = float(call.constant_value(2, "the constant value").reshape(-1)[0])
    padding = _padding(call, x)
    if not any(map(any, padding)):
        return x
    return call.emit("pad", x, padding=padding, border="constant", value=value)


@lowers("MIRROR_PAD", newest=3)
def mirror_pad(call: TfliteCall) -> Value:
    x = call.required(0)
    border = "reflect-even" if call.option("Mode") else "reflect"
    return call.emit("pad", x, padding=_padding(call, x), border=border, value=0.0)


@lowers("GATHER", newest=8)
def gather(call: TfliteCall) -> Value:
    """Take items by constant indices; sequences are slices."""
    x = call.plain(call.required(0))
    if call.option("BatchDims"):
        raise call.unsupported("it gathers for each batch", "use one set of indices for all")
    axis = call.axis(call.option("Axis"), x.rank)
    indices = call.plain(call.required(1))
    if indices.data is not None:
        places = [int(place) for place in indices.data.reshape(-1)]
        if not all(0 <= place < x.shape[axis] for place in places):
            raise call.error(f"the indices {places} are not in dimension {axis} of {x.shape[axis]}")
        steps = set(np.diff(places).tolist()) or {1}
        if len(steps) == 1 and (step := steps.pop()):
            part = range(places[0], places[-1] + (1 if step > 0 else -1), step)
            y = _sliced(call, x, {axis: part})
            return call.reshaped(y, (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    return call.emit("gather", x, indices, axis=axis)


@lowers("GATHER_ND", newest=6)
def gather_nd(call: TfliteCall) -> Value:
    """Take elements by constant indices into the first axes."""
    return call.emit(
        "gather_nd", call.plain(call.required(0)), call.plain(call.required(1)), batch_dims=0
    )


@lowers("REVERSE_V2", newest=4)
def reverse_v2(call: TfliteCall) -> Value:
    x = call.required(0)
    axes = [call.axis(axis, x.rank) for axis in call.integers(1, "the axes")]
    return _sliced(call, x, {axis: range(x.shape[axis] - 1, -1, -1) for axis in axes})


def _block(call: TfliteCall, x: Value) -> int:
    size = int(call.option("BlockSize"))
    if size < 1 or x.rank != 4:
        raise call.error(f"blocks of {size} do not fit the shape {list(x.shape)}")
    return size


@lowers("DEPTH_TO_SPACE", newest=2)
def depth_to_space(call: TfliteCall) -> Value:
    x = call.image(call.required(0))
    size = _block(call, x)
    return call.emit("depth_to_space", x, factor=[size, size])


@lowers("SPACE_TO_DEPTH", newest=2)
def space_to_depth(call: TfliteCall) -> Value:
    x = call.plain(call.required(0))
    size = _block(call, x)
    n, rows, columns, channels = x.shape
    if rows % size or columns % size:
        raise call.error(f"blocks of {size} do not divide the shape {list(x.shape)}")
    split = call.reshaped(x, (n, rows // size, size, columns // size, size, channels))
    moved = call.emit("transpose", split, axes=[0, 1, 3, 2, 4, 5])
    return call.reshaped(moved, (n, rows // size, columns // size, size * size * channels))
