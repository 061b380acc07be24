"""Turn elements chosen by constant indices into slices that are joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_slices import LowerSlices
from nnef_hw.passes.rewriting.editor import Editor, Step, emit_part, emit_steps, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import is_image
from nnef_hw.passes.structure.lower_rank import LowerRank

__all__ = ["MOST_PARTS", "LowerGather", "count_parts", "exchanged_rows", "grid_axes"]

MOST_PARTS = 64
"""Of a result: each is a part of the hardware."""


@dataclass(frozen=True, slots=True)
class LowerGather(Pass):
    """Rewrite operators that take elements along axes, in an order that is known.

    * ``gather`` with constant indices -> a ``concat`` of slices, one for each run of neighbours;
      of many that are as far apart -> a ``slice`` with a stride; of every n-th element, from each
      of the first n on -> an exchange of two axes
    * ``gather`` with indices of several axes that are runs along some of these, such as windows
      that overlap -> a ``gather`` for each place on the others, joined
    * ``gather_nd`` with constant indices that are a grid of such along each axis -> a ``gather``
      along each
    * ``slice`` with a negative stride -> likewise
    * ``slice`` with a stride over channels, or of what is no image -> the first of every group of
      elements, where whole groups are there; likewise where they are not
    * ``tile`` of an axis of extent 1 -> ``nearest_upsample``; of other axes -> a ``concat``

    Left alone: results of more than 64 parts.
    """

    before: ClassVar[Reasons] = {
        LowerRank: (
            "Slices and joins that LowerGather makes get their view of channels in the same "
            "round, before RaiseRank reshapes them."
        ),
        LowerSlices: (
            "Slices of several axes that LowerGather makes are taken apart in the same round, as "
            "those of a model are."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            done = editor.data(node.inputs[0]) is None if node.inputs else False
            if done and node.op == "gather":
                done = _emit_gather(editor, node)
            elif done and node.op == "gather_nd":
                done = _emit_grid(editor, node)
            elif done and node.op == "slice":
                done = _emit_strided(editor, node)
            elif done and node.op == "tile":
                done = _emit_tile(editor, node)
            else:
                done = False
            if not done:
                editor.keep(node)
        return editor.finish()


def _emit_grid(editor: Editor, node: Node) -> bool:
    """Emit a gather along each axis; each index must vary along result axes of its own."""
    indices, shape = editor.data(node.inputs[1]), editor.shape(node.inputs[0])
    if indices is None or node.attrs.get("batch_dims", 0) or indices.ndim < 2:
        return False
    found = grid_axes(indices, shape)
    if found is None:
        return False
    source, like, extents = node.inputs[0], editor.tensors[node.name], list(shape)
    for axis, index in enumerate(found):
        extents[axis] = len(index)
        places = editor.constant(f"{node.name}_places", index)
        editor.tensors[places] = replace(editor.tensors[places], dtype="integer")
        result = editor.activation(f"{node.name}_axis{axis}", tuple(extents), like)
        editor.emit(Node("gather", (source, places), (result,), {"axis": axis}, node.location))
        source = result
    editor.emit(reshape_node(source, node.name, like.shape, node))
    return True


def grid_axes(
    indices: NDArray[np.generic], shape: tuple[int, ...]
) -> list[NDArray[np.int64]] | None:
    """Return the indices along each axis whose grid these places in a tensor are, from the front.

    None if they are no grid, in the order of the axes.
    """
    grid, count = indices.astype(np.int64), indices.shape[-1]
    outer, begin = grid.shape[:-1], 0
    found: list[NDArray[np.int64]] = []
    for axis in range(count):
        part = grid[..., axis]
        varying = [n for n in range(begin, len(outer)) if (np.diff(part, axis=n) != 0).any()]
        end = varying[-1] + 1 if varying else begin
        if axis == count - 1:
            end = len(outer)
        at = tuple(slice(None) if begin <= n < end else slice(1) for n in range(len(outer)))
        if not np.array_equal(np.broadcast_to(part[at], part.shape), part):
            return None
        found.append(part[at].reshape(-1) % shape[axis])
        begin = end
    return found


def _emit_gather(editor: Editor, node: Node) -> bool:
    indices, axis = editor.data(node.inputs[1]), int(node.attrs.get("axis", 0))
    shape = editor.shape(node.inputs[0])
    if indices is None or not indices.size:
        return False
    places = indices.astype(np.int64) % shape[axis]
    index = places.reshape(-1)
    if _emit_parts(editor, node, axis, index):
        return True
    if count_parts(index) == 1:
        _emit_progression(editor, node, axis, index)
        return True
    return _emit_by_axis(editor, node, axis, places)


def _emit_by_axis(editor: Editor, node: Node, axis: int, indices: NDArray[np.int64]) -> bool:
    """Emit a gather for each place on one of the axes of indices, and join the results."""
    if indices.ndim < 2:
        return False
    counts = [
        sum(count_parts(part.reshape(-1)) for part in np.moveaxis(indices, place, 0))
        for place in range(indices.ndim)
    ]
    if min(counts) > MOST_PARTS:
        return False
    place = counts.index(min(counts))
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = editor.shape(source)
    extents = list(like.shape)
    extents[axis + place] = 1
    parts = []
    for part in np.moveaxis(indices, place, 0):
        index = part.reshape(-1)
        name = editor.constant(f"{node.name}_places", index)
        editor.tensors[name] = replace(editor.tensors[name], dtype="integer")
        flat = (*shape[:axis], len(index), *shape[axis + 1 :])
        taken = editor.activation(f"{node.name}_taken", flat, like)
        editor.emit(Node("gather", (source, name), (taken,), {"axis": axis}, node.location))
        parts.append(editor.activation(f"{node.name}_part", tuple(extents), like))
        editor.emit(reshape_node(taken, parts[-1], extents, node))
    editor.emit(Node("concat", tuple(parts), (node.name,), {"axis": axis + place}, node.location))
    return True


def count_parts(index: NDArray[np.int64]) -> int:
    """Return how many slices the elements of an index are, in its order."""
    steps = np.diff(index)
    if len(steps) and steps[0] > 0 and (steps == steps[0]).all():
        return 1
    return 1 + int((steps != 1).sum())


def _emit_strided(editor: Editor, node: Node) -> bool:
    """Emit a slice of one axis whose stride the hardware has not."""
    axes = node.attrs["axes"]
    strides = node.attrs.get("stride") or [1] * len(axes)
    shape = editor.shape(node.inputs[0])
    odd = [
        n
        for n, (axis, stride) in enumerate(zip(axes, strides, strict=True))
        if stride < 0 or (stride > 1 and (axis < 2 or not is_image(shape)))
    ]
    if not odd:
        return False
    if len(axes) > 1:
        _emit_one_by_one(editor, node)
        return True
    [axis], [stride], [begin] = axes, strides, node.attrs["begin"]
    count = editor.shape(node.name)[axis]
    if stride > 1 and begin + count * stride <= shape[axis]:
        _emit_groups(editor, node, axis, begin, count, stride)
        return True
    if stride < 0 and begin < 0:
        begin += shape[axis]
    return _emit_parts(editor, node, axis, begin + stride * np.arange(count))


def _emit_one_by_one(editor: Editor, node: Node) -> None:
    """Emit a slice for each axis."""
    source, like = node.inputs[0], editor.tensors[node.name]
    attrs = {key: list(node.attrs[key]) for key in ("axes", "begin", "end", "stride")}
    shape = list(editor.shape(source))
    for n, axis in enumerate(attrs["axes"]):
        shape[axis] = like.shape[axis]
        last = n == len(attrs["axes"]) - 1
        name = node.name if last else editor.activation(f"{node.name}_axis{axis}", (*shape,), like)
        one = {key: [values[n]] for key, values in attrs.items()}
        editor.emit(Node("slice", (source,), (name,), one, node.location))
        source = name


def _emit_groups(
    editor: Editor, node: Node, axis: int, begin: int, count: int, stride: int
) -> None:
    """Emit the first of each of so many groups of neighbours."""
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = editor.shape(source)
    whole = (*shape[:axis], count * stride, *shape[axis + 1 :])
    if whole != shape:
        source = emit_part(editor, node, source, axis, begin, begin + count * stride)
    groups = (*shape[:axis], count, stride, *shape[axis + 1 :])
    grouped = editor.activation(f"{node.name}_groups", groups, like)
    editor.emit(reshape_node(source, grouped, groups, node))
    first = emit_part(editor, node, grouped, axis + 1, 0, 1)
    editor.emit(reshape_node(first, node.name, like.shape, node))


def _emit_parts(editor: Editor, node: Node, axis: int, index: NDArray[np.int64]) -> bool:
    """Emit the elements of an index; return whether they are few enough parts."""
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = editor.shape(source)
    if (rows := exchanged_rows(index)) is not None:
        whole = emit_part(editor, node, source, axis, int(index[0]), int(index[-1]) + 1)
        _emit_exchange(editor, node, whole, axis, rows)
        return True
    runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
    if len(runs) > MOST_PARTS:
        return False
    parts = [emit_part(editor, node, source, axis, int(run[0]), int(run[-1]) + 1) for run in runs]
    joined = parts[0]
    extents = (*shape[:axis], len(index), *shape[axis + 1 :])
    if len(parts) > 1:
        joined = editor.activation(f"{node.name}_joined", extents, like)
        editor.emit(Node("concat", tuple(parts), (joined,), {"axis": axis}, node.location))
    editor.emit(reshape_node(joined, node.name, like.shape, node))
    return True


def _emit_progression(editor: Editor, node: Node, axis: int, index: NDArray[np.int64]) -> None:
    """Emit a slice of elements that are as far apart."""
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = editor.shape(source)
    extents = (*shape[:axis], len(index), *shape[axis + 1 :])
    result = editor.activation(f"{node.name}_sliced", extents, like)
    attrs = {
        "axes": [axis], "begin": [int(index[0])], "end": [int(index[-1]) + 1],
        "stride": [int(index[1] - index[0])],
    }  # fmt: skip
    editor.emit(Node("slice", (source,), (result,), attrs, node.location))
    editor.emit(reshape_node(result, node.name, like.shape, node))


def exchanged_rows(index: NDArray[np.int64]) -> int | None:
    """Return how many rows a matrix of neighbours has that an index reads by columns.

    None if it reads them in another order.
    """
    columns = int(index[1] - index[0]) if len(index) > 1 else 0
    if columns <= 1 or len(index) % columns or columns == len(index):
        return None
    by_columns = index[0] + np.arange(len(index)).reshape(-1, columns).T.reshape(-1)
    return len(index) // columns if np.array_equal(index, by_columns) else None


def _emit_exchange(editor: Editor, node: Node, source: str, axis: int, rows: int) -> None:
    """Emit an axis as a matrix of so many rows, read by columns."""
    like = editor.tensors[node.name]
    before = editor.shape(source)
    outer, extent, inner = before[:axis], before[axis], before[axis + 1 :]
    order = [*range(axis), axis + 1, axis, *range(axis + 2, len(before) + 1)]
    steps: list[Step] = [
        ("reshape", (*outer, rows, extent // rows, *inner), {}),
        ("transpose", (*outer, extent // rows, rows, *inner), {"axes": order}),
    ]
    turned = emit_steps(editor, node, source, f"{node.name}_turned", steps)
    editor.emit(reshape_node(turned, node.name, like.shape, node))


def _emit_tile(editor: Editor, node: Node) -> bool:
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = list(editor.shape(source))
    repeats = [after // before for before, after in zip(shape, like.shape, strict=True)]
    if any(n > 1 and r > MOST_PARTS for n, r in zip(shape, repeats, strict=True)):
        return False
    for axis, repeat in enumerate(repeats):
        if repeat == 1:
            continue
        if shape[axis] > 1:
            shape[axis] *= repeat
            name = editor.activation(f"{node.name}_axis{axis}", tuple(shape), like)
            editor.emit(Node("concat", (source,) * repeat, (name,), {"axis": axis}, node.location))
        else:
            name = _emit_repeated(editor, node, source, axis, repeat)
            shape[axis] = repeat
        source = name
    editor.emit(reshape_node(source, node.name, like.shape, node))
    return True


def _emit_repeated(editor: Editor, node: Node, source: str, axis: int, repeat: int) -> str:
    """Emit an axis of extent 1 that gets longer: columns of pixels that are all axes before it."""
    like = editor.tensors[editor.resolve(source)]
    shape = like.shape
    pixels, inner = prod(shape[:axis]), prod(shape[axis:])
    steps: list[Step] = [
        ("reshape", (pixels, inner), {}),
        ("transpose", (inner, pixels), {"axes": [1, 0]}),
        ("reshape", (1, inner, pixels, 1), {}),
        ("nearest_upsample", (1, inner, pixels, repeat), {"factor": [1, repeat]}),
        ("transpose", (1, pixels, repeat, inner), {"axes": [0, 2, 3, 1]}),
        ("reshape", (*shape[:axis], repeat, *shape[axis + 1 :]), {}),
    ]
    return emit_steps(editor, node, source, f"{node.name}_repeated", steps)
