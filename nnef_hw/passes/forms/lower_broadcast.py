"""Repeat operands that are broadcast."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, Step, emit_steps
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import is_image
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic
from nnef_hw.passes.structure.lower_rank import LowerRank

__all__ = ["LowerBroadcast"]

_RANK = 4


@dataclass(frozen=True, slots=True)
class LowerBroadcast(Pass):
    """Give operands of arithmetic the shape of the result.

    * an activation with fewer rows or columns -> ``nearest_upsample``
    * one with a single channel -> ``nearest_upsample`` along an axis that becomes the channels

    Left alone: results that are not images.
    """

    after: ClassVar[Reasons] = {
        HoistArithmetic: (
            "HoistArithmetic knows an operand by its transpose, which a repeated operand no "
            "longer has."
        ),
    }
    before: ClassVar[Reasons] = {
        LowerRank: (
            "An operand of an image that LowerRank makes is repeated in the next round, when "
            "RaiseRank has given the image rows and columns."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            shape = editor.shape(node.name)
            if node.has(Trait.ARITHMETIC) and is_image(shape):
                inputs = [
                    name
                    if editor.data(name) is not None or editor.shape(name) == shape
                    else _repeated(editor, node, name)
                    for name in node.inputs
                ]
                editor.keep(replace(node, inputs=tuple(inputs)))
            else:
                editor.keep(node)
        return editor.finish()


def _repeated(editor: Editor, node: Node, source: str) -> str:
    """Emit an operand with the shape of the result."""
    target = editor.shape(node.name)
    like = editor.tensors[editor.resolve(source)]
    steps: list[Step] = []
    _, channels, rows, columns = (*like.shape, 1, 1, 1, 1)[:_RANK]
    _, depth, height, width = (*target, 1, 1)[:_RANK]
    if len(like.shape) != _RANK:
        steps.append(("reshape", (1, channels, rows, columns), {}))
    if channels != depth:
        pixels = rows * columns
        steps += [
            ("reshape", (1, 1, pixels, 1), {}),
            ("nearest_upsample", (1, 1, pixels, depth), {"factor": [1, depth]}),
            ("transpose", (1, depth, pixels, 1), {"axes": [0, 3, 2, 1]}),
            ("reshape", (1, depth, rows, columns), {}),
        ]
    if (rows, columns) != (height, width):
        factor = [height // rows, width // columns]
        steps.append(("nearest_upsample", (1, depth, height, width), {"factor": factor}))
    if len(target) != _RANK:
        steps.append(("reshape", target, {}))
    return emit_steps(editor, node, source, f"{node.name}_repeated", steps)
