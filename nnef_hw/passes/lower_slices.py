"""Turn every way to take a part of a tensor into slices along one axis."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor

__all__ = ["LowerSlices"]

_SPATIAL = 2


@dataclass(frozen=True, slots=True)
class LowerSlices:
    """Rewrite ``split`` and ``slice``.

    * ``split`` -> one ``slice`` for each result
    * ``slice`` of several axes -> one after the other
    * a stride over rows or columns -> a ``max_pool`` of one pixel behind the slice

    Left alone: negative strides, strides over batch or channels.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "split":
                _emit_parts(editor, node)
            elif node.op == "slice" and _can_lower(node):
                _emit_slices(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _slice(like: Node, source: str, result: str, axis: int, begin: int, end: int) -> Node:
    attrs = {"axes": [axis], "begin": [begin], "end": [end], "stride": [1]}
    return Node("slice", (source,), (result,), attrs, like.location)


def _emit_parts(editor: Editor, node: Node) -> None:
    axis, begin = node.attrs["axis"], 0
    for result in node.outputs:
        end = begin + editor.shape(result)[axis]
        editor.emit(_slice(node, node.inputs[0], result, axis, begin, end))
        begin = end


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
        editor.emit(_slice(node, source, result, axis, begin, end))
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
