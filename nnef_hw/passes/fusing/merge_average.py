"""Turn averages that are multiplied by the number of their elements into sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isclose

from nnef_hw.ir import Graph, Node
from nnef_hw.ir.operators import PoolAttributes
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.function_body import scalar_value
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["MergeAverage"]

_SINGLE_PRECISION = 1e-6


@dataclass(frozen=True, slots=True)
class MergeAverage(Pass):
    """Rewrite products of an average pool and a number.

    * ``avg_pool(x) * taps`` -> ``box(x)``, which adds integers up, as quantized exporters mean it

    Left alone: other numbers; an average that is quantized, or that something else reads; borders
    that do not count.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            pool = _average(editor, node) if node.op == "mul" else None
            if pool is None:
                editor.keep(node)
                continue
            editor.drop(pool)
            attrs = {**pool.attrs, "normalize": False}
            editor.emit(replace(pool, op="box", outputs=node.outputs, attrs=attrs))
        return editor.finish()


def _average(editor: Editor, node: Node) -> Node | None:
    """Return the pool whose result is multiplied by the number of its elements."""
    for name, factor in (node.inputs, node.inputs[::-1]):
        pool = editor.emitted(editor.resolve(name))
        value = scalar_value(editor.tensors[editor.resolve(factor)])
        if pool is None or value is None or pool.op != "avg_pool":
            continue
        is_alone = editor.has_one_use(name) and editor.tensors[pool.name].quant is None
        taps = pool.attributes(PoolAttributes).taps
        if is_alone and pool.attrs["border"] == "constant" and (
            isclose(value, taps, rel_tol=_SINGLE_PRECISION)
        ):  # fmt: skip
            return pool
    return None
