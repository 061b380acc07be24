"""Join tensors along one axis, activations with constants, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_scatter import LowerScatter
from nnef_hw.passes.rewriting.editor import Editor, emit_steps, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.lower_rank import LowerRank
from nnef_hw.passes.structure.merge_equal import MergeEqual
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["LowerConcat"]


@dataclass(frozen=True, slots=True)
class LowerConcat(Pass):
    """Rewrite ``stack``, and a ``concat`` of activations and constants.

    * ``stack`` -> a ``concat`` along the axis that will follow, and a ``reshape``; along a new last
      axis the ``reshape`` comes first
    * ``concat`` of activations and constants -> each activation gets zeros where constants follow
      it, and the first one where they are before it; the constants are added to what they are
      joined to

    Left alone: one activation and constants that are the same value all over, which is a ``pad``;
    what the author has quantized, since a sum would be rounded.
    """

    after: ClassVar[Reasons] = {
        LowerScatter: (
            "The joins that LowerScatter makes are rewritten in the same round, before "
            "RaiseRank reshapes them."
        ),
        SinkTransposes: (
            "The concat that a stack becomes is rewritten as one of channels, before "
            "SinkTransposes could swap it with transposes of its operands."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerRank: (
            "A concat that LowerConcat makes gets its view of channels in the same round, "
            "before RaiseRank reshapes it."
        ),
        MergeEqual: (
            "Equal pads that LowerConcat makes are merged in the same round, under the name "
            "of the first."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "stack":
                _emit_stacked(editor, node)
            elif node.op == "concat" and _has_parts(editor, node):
                _emit(editor, node)
            else:
                editor.keep(node)
        return editor.finish()


def _emit_stacked(editor: Editor, node: Node) -> None:
    axis, like = node.attrs["axis"], editor.tensors[node.name]
    shape = like.shape[:axis] + like.shape[axis + 1 :]
    if axis == len(shape):
        parts = tuple(_with_last_axis(editor, node, name) for name in node.inputs)
        editor.emit(Node("concat", parts, node.outputs, {"axis": axis}, node.location))
        return
    extents = (*shape[:axis], len(node.inputs) * shape[axis], *shape[axis + 1 :])
    joined = editor.activation(f"{node.name}_joined", extents, like)
    editor.emit(
        Node("concat", node.inputs, (joined,), {"axis": axis}, node.location),
        reshape_node(joined, node.name, like.shape, node),
    )


def _with_last_axis(editor: Editor, node: Node, name: str) -> str:
    """Return a tensor with one more axis behind the others."""
    tensor = editor.tensors[editor.resolve(name)]
    if tensor.data is not None:
        return editor.rearranged(f"{tensor.name}_part", tensor, lambda data: data[..., np.newaxis])
    return emit_steps(
        editor, node, name, f"{node.name}_part", [("reshape", (*tensor.shape, 1), {})]
    )


def _has_parts(editor: Editor, node: Node) -> bool:
    """Whether activations are joined with constants, and it takes more than a pad."""
    constants = [data for name in node.inputs if (data := editor.data(name)) is not None]
    computed = len(node.inputs) - len(constants)
    values = {float(value) for data in constants for value in np.unique(data)}
    is_float = editor.tensors[node.name].quant is None
    return is_float and bool(computed and constants) and (computed > 1 or len(values) > 1)


def _emit(editor: Editor, node: Node) -> None:
    axis, like = int(node.attrs["axis"]), editor.tensors[node.name]
    parts: list[str] = []
    # Elements of constants in front of and behind each activation.
    around: list[list[int]] = []
    before, addend = 0, np.zeros(like.shape)
    place = 0
    for name in node.inputs:
        extent, data = editor.shape(name)[axis], editor.data(name)
        if data is None:
            parts.append(name)
            around.append([0 if around else before, 0])
        else:
            index = [slice(None)] * len(like.shape)
            index[axis] = slice(place, place + extent)
            addend[tuple(index)] = data
            if around:
                around[-1][1] += extent
            else:
                before += extent
        place += extent
    padded = [_padded(editor, node, *item) for item in zip(parts, around, strict=True)]
    joined, is_zero = padded[0], not addend.any()
    if len(padded) > 1:
        joined = node.name if is_zero else editor.activation(f"{node.name}_parts", like.shape, like)
        editor.emit(Node("concat", tuple(padded), (joined,), {"axis": axis}, node.location))
    if not is_zero:
        inputs = (joined, editor.constant(f"{node.name}_constants", addend))
        editor.emit(Node("add", inputs, node.outputs, {}, node.location))


def _padded(editor: Editor, node: Node, source: str, around: list[int]) -> str:
    """Emit an activation with zeros around it; return its name."""
    if not any(around):
        return source
    axis, like = int(node.attrs["axis"]), editor.tensors[editor.resolve(source)]
    shape = list(like.shape)
    shape[axis] += sum(around)
    name = editor.activation(f"{node.name}_padded", tuple(shape), like)
    padding = [(0, 0)] * len(shape)
    padding[axis] = (around[0], around[1])
    attrs = {"padding": padding, "border": "constant", "value": 0.0}
    editor.emit(Node("pad", (source,), (name,), attrs, node.location))
    return name
