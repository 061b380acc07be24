"""Turn one-dimensional windows into two-dimensional ones."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node
from nnef_hw.ir.verify import TABLE_OPS
from nnef_hw.passes.editor import Editor, reshape_node

__all__ = ["RaiseRank"]

_OPS = TABLE_OPS | {"avg_pool", "batch_normalization", "conv", "max_pool"}


@dataclass(frozen=True, slots=True)
class RaiseRank:
    """Compute windows and functions of [1, C, L] tensors on [1, C, L, 1] between reshapes.

    Left alone: computed filters, operators that are no windows and no functions of an activation.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            computed = node.op == "conv" and editor.data(node.inputs[1]) is None
            if node.op not in _OPS or len(editor.shape(node.inputs[0])) != 3 or computed:
                editor.keep(node)
                continue
            source, result = node.inputs[0], node.outputs[0]
            x, y = editor.tensors[editor.resolve(source)], editor.tensors[result]
            image_in = editor.activation(f"{result}_image", (*x.shape, 1), x)
            image_out = editor.activation(f"{result}_2d", (*y.shape, 1), y)
            new = replace(
                _raised(node),
                inputs=(image_in, *_constants(editor, node)),
                outputs=(image_out,),
            )
            editor.emit(
                reshape_node(source, image_in, (*x.shape, 1), node),
                new,
                reshape_node(image_out, result, y.shape, node),
            )
        return editor.finish()


def _constants(editor: Editor, node: Node) -> tuple[str, ...]:
    if node.op != "conv":
        return node.inputs[1:]
    data = editor.data(node.inputs[1])
    if data is None:
        return node.inputs[1:]
    like = editor.tensors[editor.resolve(node.inputs[1])]
    kernel = editor.rearranged(f"{like.name}_2d", like, lambda array: array[..., None])
    return kernel, node.inputs[2]


def _raised(node: Node) -> Node:
    if node.op not in {"conv", "avg_pool", "max_pool"}:
        return node
    extra = {"padding": (0, 0), "stride": 1, "dilation": 1, "size": 1}
    return node.with_attrs(**{
        key: [*node.attrs[key], value] for key, value in extra.items() if key in node.attrs
    })
