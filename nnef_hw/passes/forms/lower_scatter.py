"""Turn elements put at constant indices into parts of tensors that are joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_gather import MOST_PARTS, LowerGather, exchanged_rows, grid_axes
from nnef_hw.passes.rewriting.editor import Editor, emit_part, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerScatter", "why_not_joined"]

Origin = tuple[str, int]
"""A tensor, and which of its elements along an axis."""


@dataclass(frozen=True, slots=True)
class LowerScatter(Pass):
    """Rewrite operators that put elements at places of a tensor that are known.

    * ``scatter_nd`` with constant indices that are a grid of such along each axis -> a ``concat``
      of slices of the tensor and of the new elements, along each axis that they do not fill
    * ``scatter_elements`` with constant indices that do not vary along other axes -> likewise
    * one of the result of another along the same axis -> a ``concat`` of what both were made of
    * of tensors that take turns along the axis -> an exchange of two axes behind their ``concat``
    * with a reduction -> what was there merged with the new elements, which are then put there

    Left alone: results of more than 64 parts, and reductions of places that are named twice.
    """

    before: ClassVar[Reasons] = {
        LowerGather: (
            "The gather that LowerScatter makes is rewritten in the same round, before it "
            "merges with the reshape behind it."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        joined: dict[str, tuple[int, list[Origin]]] = {}
        for node in graph.nodes:
            places = _places(editor, node) if node.op in _AXES else None
            if places is None or not _Scatter(editor, node, joined).emit(places):
                editor.keep(node)
        return editor.finish()


def why_not_joined(graph: Graph, node: Node) -> tuple[str, str] | None:
    """Return why a node that puts elements at indices was left alone, and what helps."""
    indices = graph.tensor(node.inputs[1])
    if indices.data is None:
        return f"its indices {indices.name!r} are computed", "use constant indices"
    if _axes(graph.tensor(node.inputs[0]).shape, indices.data, node) is None:
        return (
            f"its {indices.data.size:,} indices are no grid of indices along each axis",
            "assign to slices, or join parts by concat",
        )
    return (
        f"it joins more than {MOST_PARTS} parts along an axis, or names a place twice",
        "assign to slices of neighbours",
    )


def _nd_axes(
    shape: tuple[int, ...], indices: NDArray[np.generic], node: Node
) -> list[NDArray[np.int64]] | None:
    del node
    return grid_axes(indices, shape) if indices.ndim > 1 else None


def _element_axes(
    shape: tuple[int, ...], indices: NDArray[np.generic], node: Node
) -> list[NDArray[np.int64]] | None:
    axis = node.attrs["axis"]
    found = [np.arange(extent) for extent in indices.shape]
    line = tuple(slice(None) if n == axis else slice(1) for n in range(indices.ndim))
    found[axis] = indices[line].reshape(-1).astype(np.int64) % shape[axis]
    return found if (indices == indices[line]).all() else None


_AXES = {"scatter_nd": _nd_axes, "scatter_elements": _element_axes}


def _axes(
    shape: tuple[int, ...], indices: NDArray[np.generic], node: Node
) -> list[NDArray[np.int64]] | None:
    return _AXES[node.op](shape, indices, node) if indices.size else None


def _places(editor: Editor, node: Node) -> list[NDArray[np.int64]] | None:
    """Return the indices along each axis at whose grid a node puts elements; None if at no grid."""
    indices = editor.data(node.inputs[1])
    return None if indices is None else _axes(editor.shape(node.inputs[0]), indices, node)


class _Scatter:
    """A node whose elements go to a grid of places.

    Parameters
    ----------
    joined
        Of the tensors that were joined so far: along which axis, and of what.
    """

    def __init__(
        self, editor: Editor, node: Node, joined: dict[str, tuple[int, list[Origin]]]
    ) -> None:
        self._editor = editor
        self._node = node
        self._joined = joined

    def emit(self, places: list[NDArray[np.int64]]) -> bool:
        """Emit what takes the node's place; return whether its parts are few enough."""
        editor, node = self._editor, self._node
        source = editor.resolve(node.inputs[0])
        shape = editor.shape(source)
        if any(len(np.unique(index)) < len(index) for index in places):
            return False
        # Axes that are not filled, with the places on them.
        axes = {
            axis: index
            for axis, index in enumerate(places)
            if not np.array_equal(index, np.arange(shape[axis]))
        }
        if any(self._is_long(self._origins(source, *item, "")) for item in axes.items()):
            return False
        grid = (*map(len, places), *shape[len(places) :])
        elements = self._reshaped(editor.resolve(node.inputs[2]), grid)
        reduction = node.attrs.get("reduction", "none")
        if reduction != "none":
            there = source
            for axis, index in axes.items():
                there = self._picked(there, axis, index)
            merged = editor.activation(f"{node.name}_merged", grid, editor.tensors[node.name])
            editor.emit(Node(reduction, (there, elements), (merged,), {}, node.location))
            elements = merged
        result = self._put(source, axes, elements)
        editor.emit(reshape_node(result, node.name, shape, node))
        if result in self._joined:
            self._joined[node.name] = self._joined[result]
        return True

    def _put(self, source: str, axes: dict[int, NDArray[np.int64]], elements: str) -> str:
        """Emit a tensor with elements put at places along axes; return its name."""
        if not axes:
            return elements
        (axis, index), *inner = axes.items()
        if inner:
            elements = self._put(self._picked(source, axis, index), dict(inner), elements)
        return self._join(axis, self._origins(source, axis, index, elements))

    def _origins(
        self, source: str, axis: int, index: NDArray[np.int64], elements: str
    ) -> list[Origin]:
        """Return whence each place along an axis comes once the elements are put there."""
        along, origins = self._joined.get(source, (-1, []))
        if along != axis:
            origins = [(source, place) for place in range(self._editor.shape(source)[axis])]
        put = dict(zip(index.tolist(), range(len(index)), strict=True))
        return [
            (elements, put[place]) if place in put else origin
            for place, origin in enumerate(origins)
        ]

    def _is_long(self, origins: list[Origin]) -> bool:
        return len(_runs(origins)) > MOST_PARTS and _exchange(origins) is None

    def _join(self, axis: int, origins: list[Origin]) -> str:
        """Emit what comes from there along an axis; return its name."""
        editor, node = self._editor, self._node
        exchange = _exchange(origins)
        if exchange is None:
            parts = [self._part(name, axis, *span) for name, *span in _runs(origins)]
        else:
            parts = list(dict.fromkeys(name for name, _ in origins))
        shape = list(editor.shape(parts[0]))
        shape[axis] = sum(editor.shape(part)[axis] for part in parts)
        joined = parts[0]
        if len(parts) > 1:
            like = editor.tensors[node.name]
            joined = editor.activation(f"{node.name}_joined", tuple(shape), like)
            editor.emit(Node("concat", tuple(parts), (joined,), {"axis": axis}, node.location))
        if exchange is not None:
            joined = self._picked(joined, axis, exchange)
        self._joined[joined] = axis, origins
        return joined

    def _part(self, name: str, axis: int, begin: int, end: int) -> str:
        """Return a part of a tensor; of a constant, a constant."""
        if self._editor.data(name) is None:
            return emit_part(self._editor, self._node, name, axis, begin, end)
        return self._taken(name, axis, np.arange(begin, end))

    def _picked(self, name: str, axis: int, index: NDArray[np.int64]) -> str:
        """Return the elements at places along an axis."""
        editor, node = self._editor, self._node
        if editor.data(name) is not None:
            return self._taken(name, axis, index)
        like = editor.tensors[name]
        shape = (*like.shape[:axis], len(index), *like.shape[axis + 1 :])
        places = editor.constant(f"{node.name}_places", index)
        editor.tensors[places] = replace(editor.tensors[places], dtype="integer")
        result = editor.activation(f"{node.name}_picked", shape, like)
        editor.emit(Node("gather", (name, places), (result,), {"axis": axis}, node.location))
        return result

    def _taken(self, name: str, axis: int, index: NDArray[np.int64]) -> str:
        like = self._editor.tensors[name]
        return self._editor.rearranged(f"{name}_part", like, lambda data: data.take(index, axis))

    def _reshaped(self, name: str, shape: tuple[int, ...]) -> str:
        editor, node = self._editor, self._node
        like = editor.tensors[name]
        if like.shape == shape:
            return name
        if like.data is not None:
            return editor.rearranged(f"{name}_put", like, lambda data: data.reshape(shape))
        result = editor.activation(f"{node.name}_put", shape, like)
        editor.emit(reshape_node(name, result, shape, node))
        return result


def _runs(origins: list[Origin]) -> list[tuple[str, int, int]]:
    """Return the parts that neighbours are: a tensor, and from where up to where."""
    keys = [(name, place - n) for n, (name, place) in enumerate(origins)]
    found, begin = [], 0
    for (name, offset), group in groupby(keys):
        end = begin + len(list(group))
        found.append((name, begin + offset, end + offset))
        begin = end
    return found


def _exchange(origins: list[Origin]) -> NDArray[np.int64] | None:
    """Return the index into tensors one behind the other, if it is an exchange of two axes.

    All of them have as many elements, which are all there.
    """
    names = list(dict.fromkeys(name for name, _ in origins))
    extent = len(origins) // len(names)
    index = np.array([names.index(name) * extent + place for name, place in origins])
    return index if exchanged_rows(index) is not None else None
