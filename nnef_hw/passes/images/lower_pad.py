"""Pad channels as columns are padded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_concat import LowerConcat
from nnef_hw.passes.functions.lower_elementwise import LowerElementwise
from nnef_hw.passes.images.sink_pad import SinkPad
from nnef_hw.passes.rewriting.editor import Editor, is_trivial, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.stream_axes import axes_before
from nnef_hw.passes.structure.raise_rank import RaiseRank

__all__ = ["LowerPad"]


@dataclass(frozen=True, slots=True)
class LowerPad(Pass):
    """Rewrite operators that add channels of one value.

    * a ``pad`` of channels -> a ``pad`` of columns, of an image whose columns are the channels:
      both stream in the same order; behind a move that puts pixels where channels were, of rows, of
      an image with those channels
    * ``concat`` along any axis with a constant that is the same value all over -> a ``pad``

    Left alone: other borders, cropping, padding of the batch, and constants that vary.
    """

    after: ClassVar[Reasons] = {
        LowerConcat: (
            "Zeros that LowerConcat puts beside an activation are padded in the same round, "
            "before RaiseRank reshapes them."
        ),
        LowerElementwise: (
            "A constant is added to padded channels where these are columns; behind "
            "LowerPad's moves it would be added to a vector."
        ),
        SinkPad: (
            "A pad of channels that are rows behind a move is a pad of rows there, and needs "
            "no move of its own."
        ),
    }
    before: ClassVar[Reasons] = {
        RaiseRank: (
            "A pad of channels becomes one of columns, whatever its rank; RaiseRank would "
            "reshape it first."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            found = _joined(editor, node) if node.op == "concat" else None
            if found is not None:
                editor.emit(found)
            elif node.op == "pad" and _pads_channels(editor, node):
                _emit(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _pads_channels(editor: Editor, node: Node) -> bool:
    shape = editor.shape(node.inputs[0])
    padding = [tuple(pair) for pair in node.attrs["padding"]]
    return (
        len(shape) in {2, 3, 4}
        and shape[0] == 1
        and node.attrs.get("border", "constant") == "constant"
        and padding[0] == (0, 0)
        and padding[1] != (0, 0)
        and min(min(pair) for pair in padding) >= 0
    )


def _joined(editor: Editor, node: Node) -> Node | None:
    """Return the ``pad`` that joins one activation with constants; None if there is none."""
    places = [n for n, name in enumerate(node.inputs) if editor.data(name) is None]
    values = {
        float(value)
        for name in node.inputs
        if (data := editor.data(name)) is not None
        for value in np.unique(data)
    }
    axis: int = node.attrs["axis"]
    shape = editor.shape(node.name)
    if len(places) != 1 or len(values) != 1 or axis == 0 or len(shape) not in {2, 3, 4}:
        return None
    extents = [editor.shape(name)[axis] for name in node.inputs]
    padding = [(0, 0)] * len(shape)
    padding[axis] = (sum(extents[: places[0]]), sum(extents[places[0] + 1 :]))
    attrs: dict[str, object] = {"padding": padding, "border": "constant", "value": values.pop()}
    return Node("pad", (node.inputs[places[0]],), node.outputs, attrs, node.location)


def _comes_last(editor: Editor, name: str, rank: int) -> bool:
    """Whether all elements of a channel come before those of the next one, behind moves."""
    places = axes_before(editor, name, rank + 2)
    spatial = [n for n, extent in enumerate(editor.shape(name)) if n > 1 and extent > 1]
    return places is not None and bool(spatial) and all(places[1] < places[n] for n in spatial)


def _emit(editor: Editor, node: Node) -> None:
    source, like = node.inputs[0], editor.tensors[node.name]
    _, channels, *extents = editor.shape(source)
    _, before_behind, *spatial = (tuple(pair) for pair in node.attrs["padding"])
    value = {"border": "constant", "value": node.attrs.get("value", 0.0)}

    def emit(op: str, shape: tuple[int, ...], attrs: dict[str, object], name: str = "") -> None:
        nonlocal source
        name = name or editor.activation(f"{node.name}_padded", shape, like)
        if op == "reshape":
            editor.emit(reshape_node(source, name, shape, node))
        else:
            editor.emit(Node(op, (source,), (name,), attrs, node.location))
        source = name

    if not is_trivial(spatial, (0, 0)):
        extents = [n + p + q for n, (p, q) in zip(extents, spatial, strict=True)]
        emit("pad", (1, channels, *extents), {"padding": [(0, 0), (0, 0), *spatial], **value})
    rank, depth = len(extents), channels + sum(before_behind)
    pixels = int(np.prod(extents))
    last = [0, *range(2, rank + 2), 1]
    is_outer = _comes_last(editor, source, rank)
    emit("transpose", (1, *extents, channels), {"axes": last})
    if is_outer:
        emit("reshape", (1, pixels, channels, 1), {})
        rows = [(0, 0), (0, 0), before_behind, (0, 0)]
        emit("pad", (1, pixels, depth, 1), {"padding": rows, **value})
    else:
        emit("reshape", (1, 1, pixels, channels), {})
        columns = [(0, 0), (0, 0), (0, 0), before_behind]
        emit("pad", (1, 1, pixels, depth), {"padding": columns, **value})
    emit("reshape", (1, *extents, depth), {})
    emit("transpose", like.shape, {"axes": np.argsort(last).tolist()}, node.name)
