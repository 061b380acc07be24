"""Divide by an activation: multiply by what a table says of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.functions.collapse_functions import CollapseFunctions
from nnef_hw.passes.functions.lower_elementwise import LowerElementwise
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerDivision"]


@dataclass(frozen=True, slots=True)
class LowerDivision(Pass):
    """Rewrite ``div(x, y)`` as ``mul(x, rcp(y))``.

    Left alone: division of integers, and by a constant.
    """

    after: ClassVar[Reasons] = {
        CollapseFunctions: (
            "A division inside of a function stays there; alone it would be a reciprocal and "
            "a product."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerElementwise: (
            "A constant above an activation belongs to the reciprocal's product; "
            "LowerElementwise would take it for a scale."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if (
                node.op != "div"
                or editor.data(node.inputs[1]) is not None
                or editor.tensors[node.name].dtype != "scalar"
            ):
                editor.keep(node)
                continue
            dividend, divisor = node.inputs
            like = replace(editor.tensors[editor.resolve(divisor)], quant=None)
            inverse = editor.activation(f"{node.name}_inverse", like.shape, like)
            editor.emit(
                Node("rcp", (divisor,), (inverse,), {}, node.location),
                replace(node, op="mul", inputs=(dividend, inverse)),
            )
        return editor.finish()
