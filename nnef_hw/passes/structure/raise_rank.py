"""Turn operators on one-dimensional images into ones on two-dimensional images."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["RaiseRank"]

_RANK = 3


@dataclass(frozen=True, slots=True)
class RaiseRank(Pass):
    """Compute operators of [1, C, L] tensors on [1, C, L, 1] between reshapes.

    Windows, functions, arithmetic, ``concat``, ``slice``, ``pad``, ``nearest_upsample``
    and ``depth_to_space``. Left alone: other operators, computed filters,
    operands of different ranks.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if not _can_raise(editor, node):
                editor.keep(node)
                continue
            result = node.outputs[0]
            y = editor.tensors[result]
            image_out = editor.activation(f"{result}_2d", (*y.shape, 1), y)
            new = replace(
                _raised(node),
                inputs=tuple(
                    _operand(editor, node, position) for position in range(len(node.inputs))
                ),
                outputs=(image_out,),
            )
            editor.emit(new, reshape_node(image_out, result, y.shape, node))
        return editor.finish()


def _can_raise(editor: Editor, node: Node) -> bool:
    if not node.has(Trait.RAISES) or len(editor.shape(node.outputs[0])) != _RANK:
        return False
    if node.op == "conv" and editor.data(node.inputs[1]) is None:
        return False
    operands = node.inputs if node.has(Trait.ALIGNED) else node.inputs[:1]
    return all(len(editor.shape(name)) == _RANK for name in operands if editor.data(name) is None)


def _operand(editor: Editor, node: Node, position: int) -> str:
    """Return an argument with an axis more, if it has the image's axes."""
    name = node.inputs[position]
    tensor = editor.tensors[editor.resolve(name)]
    if tensor.data is not None:
        if len(tensor.shape) != _RANK:
            return name
        return editor.rearranged(f"{tensor.name}_2d", tensor, lambda array: array[..., None])
    if position > 0 and not node.has(Trait.ALIGNED):
        return name
    hint = f"{node.outputs[0]}_image"
    image = editor.activation(hint, (*tensor.shape, 1), tensor)
    editor.emit(reshape_node(name, image, (*tensor.shape, 1), node))
    return image


def _raised(node: Node) -> Node:
    if not node.has(Trait.PER_AXIS):
        return node
    extra = {"padding": (0, 0), "stride": 1, "dilation": 1, "size": 1, "factor": 1}
    return node.with_attrs(**{
        key: [*node.attrs[key], value] for key, value in extra.items() if key in node.attrs
    })
