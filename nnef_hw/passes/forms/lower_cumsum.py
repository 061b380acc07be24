"""Turn running sums into products with a triangular matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["LowerCumsum"]


@dataclass(frozen=True, slots=True)
class LowerCumsum(Pass):
    """Rewrite ``cumsum`` as a ``matmul`` by a constant, between transposes.

    Left alone: sums of what are no real numbers, or of a tensor of rank 1.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "The transposes that LowerCumsum adds meet their readers a round later, when "
            "these are rewritten too."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            source = editor.tensors[editor.resolve(node.inputs[0])] if node.inputs else None
            if (
                node.op != "cumsum"
                or source is None
                or source.dtype != "scalar"
                or source.data is not None
                or len(source.shape) == 1
            ):
                editor.keep(node)
                continue
            _emit(editor, node, source.shape)
        return editor.finish()


def _emit(editor: Editor, node: Node, shape: tuple[int, ...]) -> None:
    axis, rank = int(node.attrs["axis"]) % len(shape), len(shape)
    count = shape[axis]
    matrix = np.triu(np.ones((count, count)), int(bool(node.attrs.get("exclusive"))))
    if node.attrs.get("reverse"):
        matrix = matrix.T
    swap = list(range(rank))
    swap[axis], swap[-1] = rank - 1, axis
    moved = tuple(shape[n] for n in swap)
    like = editor.tensors[node.name]
    last = editor.activation(f"{node.name}_last", moved, like)
    sums = editor.activation(f"{node.name}_sums", moved, like)
    weights = editor.constant(
        f"{node.name}_matrix", matrix.reshape(*[1] * (rank - 2), count, count)
    )
    attrs = {"transposeA": False, "transposeB": False}
    editor.emit(
        Node("transpose", (node.inputs[0],), (last,), {"axes": swap}, node.location),
        Node("matmul", (last, weights), (sums,), attrs, node.location),
        Node("transpose", (sums,), node.outputs, {"axes": swap}, node.location),
    )
