"""Rewrite operators along any axes so that they run along the channels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import channels_first, is_image
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["LowerAxes"]


@dataclass(frozen=True, slots=True)
class LowerAxes(Pass):
    """Rewrite softmax and indices of extrema along other axes than the channels.

    * axes of extent 1 beside the channels -> the channels alone
    * others -> the same operator between transposes, along the channels

    Left alone: indices into several axes.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "The transposes that LowerAxes adds meet their readers a round later, when these "
            "are rewritten too."
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
                new = node.with_attrs(axes=[1])
                (editor.keep if declared == [1] else editor.emit)(new)
            else:
                _emit(editor, node, axes)
        return editor.finish()


def _emit(editor: Editor, node: Node, axes: list[int]) -> None:
    view = channels_first(editor.shape(node.inputs[0]), axes)
    source = view.enter(editor, node, node.inputs[0], f"{node.name}_image")
    extents = (1, 1, *view.shape[2:]) if node.has(Trait.INDEX) else view.shape
    image = editor.activation(f"{node.name}_result", extents, editor.tensors[node.name])
    editor.emit(replace(node.with_attrs(axes=[1]), inputs=(source,), outputs=(image,)))
    replace(view, shape=extents).leave(editor, node, image, node.name)
