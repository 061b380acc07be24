"""Rewrite operators along any axes so that they run along the channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import channels_first, is_image
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["LowerAxes"]


@dataclass(frozen=True, slots=True)
class LowerAxes(Pass):
    """Rewrite softmax, normalizations and indices of extrema along other axes than the channels.

    * axes of extent 1 beside the channels -> the channels alone
    * others -> the same operator between transposes, along the channels

    Left alone: indices into several axes.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "The transposes that LowerAxes adds meet their readers a round later, when these "
            "are rewritten too."
        ),
        HoistArithmetic: (
            "A reduction behind a transpose that LowerAxes adds would be computed in front of it, "
            "one behind the model's own would not."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if not node.has(Trait.ALONG_CHANNELS):
                editor.keep(node)
                continue
            shape, declared = editor.shape(node.inputs[0]), list(node.attrs.get("axes", [1]))
            axes = [axis for axis in declared if shape[axis] > 1] or declared[:1]
            if not shape or (len(axes) > 1 and node.has(Trait.INDEX)):
                editor.keep(node)
            elif axes == [1] and is_image(shape):
                new = replace(node.with_attrs(axes=[1]), inputs=_inputs(editor, node, [1]))
                is_kept = declared == [1] and new.inputs == node.inputs
                (editor.keep if is_kept else editor.emit)(new)
            else:
                _emit(editor, node, axes)
        return editor.finish()


def _emit(editor: Editor, node: Node, axes: list[int]) -> None:
    view = channels_first(editor.shape(node.inputs[0]), axes)
    source = view.enter(editor, node, node.inputs[0], f"{node.name}_image")
    extents = (1, 1, *view.shape[2:]) if node.has(Trait.INDEX) else view.shape
    image = editor.activation(f"{node.name}_result", extents, editor.tensors[node.name])
    inputs = (source, *_inputs(editor, node, axes)[1:])
    editor.emit(replace(node.with_attrs(axes=[1]), inputs=inputs, outputs=(image,)))
    replace(view, shape=extents).leave(editor, node, image, node.name)


def _inputs(editor: Editor, node: Node, axes: list[int]) -> tuple[str, ...]:
    """Return a node's operands, with constants along the axes as [1, C], single numbers as [1, 1].

    A table of values keeps its order.
    """
    shape = editor.shape(node.inputs[0])
    extents = tuple(n if axis in axes else 1 for axis, n in enumerate(shape))
    is_table = node.has(Trait.EXACT_TABLE)

    def of_channels(data: Array) -> Array:
        if is_table or data.size == 1:
            return data.reshape(1, -1)
        whole = data.reshape(data.shape + (1,) * (len(shape) - data.ndim))
        return np.broadcast_to(whole, extents).reshape(1, -1)

    inputs = [node.inputs[0]]
    for name in node.inputs[1:]:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is not None and tensor.shape != of_channels(tensor.data).shape:
            name = editor.rearranged(f"{tensor.name}_channels", tensor, of_channels)
        inputs.append(name)
    return tuple(inputs)
