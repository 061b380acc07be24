"""Turn reductions over the image into pools over the whole image."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor

__all__ = ["LowerReduce"]


@dataclass(frozen=True, slots=True)
class LowerReduce:
    """Rewrite spatial reductions of [1, C, ...] tensors.

    * ``mean_reduce`` and ``sum_reduce(normalize = true)`` -> ``avg_pool``
    * ``max_reduce`` -> ``max_pool``

    Left alone: reductions over batch or channels, plain sums, minima.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            op = _pool(node)
            shape = editor.shape(node.inputs[0]) if node.inputs else ()
            if op is None or len(shape) < 3 or min(node.attrs["axes"], default=0) < 2:
                editor.keep(node)
                continue
            size = [n if axis in node.attrs["axes"] else 1 for axis, n in enumerate(shape)]
            attrs = {
                "size": size,
                "border": "constant",
                "padding": [(0, 0)] * len(size),
                "stride": list(size),
                "dilation": [1] * len(size),
            }
            editor.emit(Node(op, node.inputs, node.outputs, attrs, node.location))
        return editor.finish()


def _pool(node: Node) -> str | None:
    if node.op == "mean_reduce" or (node.op == "sum_reduce" and node.attrs.get("normalize")):
        return "avg_pool"
    return "max_pool" if node.op == "max_reduce" else None
