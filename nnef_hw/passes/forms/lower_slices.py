"""Turn every way to take a part of a tensor into slices along one axis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor, emit_steps, reshape_node, slice_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.lower_rank import LowerRank

__all__ = ["LowerSlices"]

_SPATIAL = 2


@dataclass(frozen=True, slots=True)
class LowerSlices(Pass):
    """Rewrite ``split``, ``unstack``, ``slice``, and what a ``pad`` crops.

    * ``split`` -> one ``slice`` for each result
    * ``unstack`` -> one ``slice`` for each result, of the axis joined to the one behind it; of the
      last axis a ``slice`` and a ``reshape``
    * ``slice`` of several axes -> one after the other
    * ``slice`` of a ``concat`` within one of its parts -> a ``slice`` of that part
    * a stride over rows or columns -> a ``max_pool`` of one pixel behind the slice
    * a ``pad`` by less than nothing -> a ``slice`` in front of it

    Left alone: negative strides, strides over batch or channels, parts of a ``concat`` that the
    author has quantized.
    """

    before: ClassVar[Reasons] = {
        LowerRank: (
            "Slices that LowerSlices makes get their view of channels in the same round, "
            "before RaiseRank reshapes them."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "split":
                _emit_parts(editor, node)
            elif node.op == "unstack":
                _emit_unstacked(editor, node)
            elif node.op == "slice" and _can_lower(node):
                _emit_slices(editor, node)
            elif (part := _part(editor, node)) is not None:
                editor.emit(part)
            elif node.op == "pad" and _crops(node):
                _emit_cropped(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _emit_parts(editor: Editor, node: Node) -> None:
    axis, begin = node.attrs["axis"], 0
    for result in node.outputs:
        end = begin + editor.shape(result)[axis]
        editor.emit(slice_node(node.inputs[0], result, axis, begin, end, node))
        begin = end


def _emit_unstacked(editor: Editor, node: Node) -> None:
    axis, shape, source = node.attrs["axis"], editor.shape(node.inputs[0]), node.inputs[0]
    if axis == len(shape) - 1:
        for index, result in enumerate(node.outputs):
            like = editor.tensors[result]
            part = editor.activation(f"{result}_part", (*shape[:axis], 1), like)
            editor.emit(
                slice_node(source, part, axis, index, index + 1, node),
                reshape_node(part, result, like.shape, node),
            )
        return
    extent = shape[axis + 1]
    joined = (*shape[:axis], shape[axis] * extent, *shape[axis + 2 :])
    source = emit_steps(editor, node, source, f"{node.name}_joined", [("reshape", joined, {})])
    for index, result in enumerate(node.outputs):
        editor.emit(slice_node(source, result, axis, index * extent, (index + 1) * extent, node))


def _part(editor: Editor, node: Node) -> Node | None:
    """Return a slice of the only part of a concat that a slice of it takes from."""
    joined = editor.emitted(editor.resolve(node.inputs[0])) if node.op == "slice" else None
    if (
        joined is None
        or joined.op != "concat"
        or list(node.attrs["axes"]) != [joined.attrs["axis"]]
    ):
        return None
    axis, place = int(joined.attrs["axis"]), 0
    [begin], [end] = node.attrs["begin"], node.attrs["end"]
    for name in joined.inputs:
        extent = editor.shape(name)[axis]
        if place <= begin < end <= place + extent and set(_strides(node).values()) == {1}:
            return slice_node(name, node.name, axis, begin - place, end - place, node)
        place += extent
    return None


def _crops(node: Node) -> bool:
    is_constant = node.attrs.get("border", "constant") == "constant"
    return is_constant and any(p < 0 for pair in node.attrs["padding"] for p in pair)


def _emit_cropped(editor: Editor, node: Node) -> None:
    like = editor.tensors[editor.resolve(node.inputs[0])]
    padding = [(int(p), int(q)) for p, q in node.attrs["padding"]]
    cut = [(max(-p, 0), n - max(-q, 0)) for n, (p, q) in zip(like.shape, padding, strict=True)]
    axes = [axis for axis, pair in enumerate(padding) if min(pair) < 0]
    part = editor.activation(f"{node.name}_part", tuple(end - begin for begin, end in cut), like)
    attrs = {"axes": axes, "begin": [cut[axis][0] for axis in axes],
             "end": [cut[axis][1] for axis in axes], "stride": [1] * len(axes)}  # fmt: skip
    pad = node.with_attrs(padding=[(max(p, 0), max(q, 0)) for p, q in padding])
    editor.emit(
        Node("slice", node.inputs, (part,), attrs, node.location), replace(pad, inputs=(part,))
    )


def _strides(node: Node) -> dict[int, int]:
    axes = node.attrs["axes"]
    return dict(zip(axes, node.attrs.get("stride") or [1] * len(axes), strict=True))


def _can_lower(node: Node) -> bool:
    strides = _strides(node)
    is_plain = len(strides) == 1 and set(strides.values()) == {1}
    return not is_plain and all(
        stride == 1 or (stride > 1 and axis >= _SPATIAL) for axis, stride in strides.items()
    )


def _emit_slices(editor: Editor, node: Node) -> None:
    source, like = node.inputs[0], editor.tensors[node.name]
    shape = list(editor.shape(source))
    strides = {axis: stride for axis, stride in _strides(node).items() if stride > 1}
    ranges = list(zip(*(node.attrs[key] for key in ("axes", "begin", "end")), strict=True))
    for n, (axis, begin, end) in enumerate(ranges, 1):
        shape[axis] = end - begin
        result = node.name
        if strides or n < len(ranges):
            result = editor.activation(f"{node.name}_axis{axis}", tuple(shape), like)
        editor.emit(slice_node(source, result, axis, begin, end, node))
        source = result
    if strides:
        attrs = {
            "size": [1] * len(shape),
            "stride": [strides.get(axis, 1) for axis in range(len(shape))],
            "dilation": [1] * len(shape),
            "padding": [(0, 0)] * len(shape),
            "border": "constant",
        }
        editor.emit(Node("max_pool", (source,), node.outputs, attrs, node.location))
