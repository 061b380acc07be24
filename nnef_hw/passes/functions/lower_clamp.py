"""Turn functions of one activation and scalar constants into table operators."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.forms.lower_normalization import LowerNormalization
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.function_body import scalar_value
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["LowerClamp"]

LARGEST = float(np.finfo(np.float32).max)
"""Stands for infinity, which NNEF has no literal for: no activation is larger."""


@dataclass(frozen=True, slots=True)
class LowerClamp(Pass):
    """Move scalar constants of element-wise functions into attributes.

    * ``clamp(x, lo, hi)``, ``min(x, hi)``, ``max(x, lo)`` -> ``clamp`` of x with attributes a, b,
      which are numbers where the model has infinity
    * ``max(x, 0)`` -> ``relu``; ``prelu`` with one alpha -> ``leaky_relu``

    Left alone: bounds or alphas that are computed or vary.
    """

    after: ClassVar[Reasons] = {
        LowerNormalization: (
            "A normalization limits its norm by a constant maximum, which is a clamp."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            new = _lower(editor, node)
            if new is None:
                editor.keep(node)
            else:
                editor.emit(new)
        return editor.finish()


def _scalar(editor: Editor, name: str) -> float | None:
    value = scalar_value(editor.tensors[editor.resolve(name)])
    return None if value is None else float(value)


def _lower(editor: Editor, node: Node) -> Node | None:
    if node.op not in {"clamp", "min", "max", "prelu"} or len(node.inputs) < 2:
        return None
    values = [_scalar(editor, name) for name in node.inputs]
    source, slope = node.inputs[:2]
    if node.op in {"min", "max"} and values[0] is not None:
        source, values = node.inputs[1], values[::-1]
    constants = [value for value in values[1:] if value is not None]
    shape = editor.shape(node.outputs[0])
    if len(constants) != len(node.inputs) - 1 or editor.shape(source) != shape:
        return None
    node = replace(node, inputs=(source,))
    if node.op == "prelu":
        return replace(node, op="leaky_relu", attrs=_slope(editor, slope, constants[0]))
    if node.op == "max" and constants[0] == 0.0:
        return replace(node, op="relu", attrs={})
    bounds = {"min": (-LARGEST, constants[0]), "max": (constants[0], LARGEST)}
    lo, hi = bounds.get(node.op) or constants
    lo, hi = (min(max(bound, -LARGEST), LARGEST) for bound in (lo, hi))
    return replace(node, op="clamp", attrs={"a": lo, "b": hi})


def _slope(editor: Editor, name: str, alpha: float) -> dict[str, float]:
    """Return a slope; of codes that TensorFlow Lite multiplies, also the step of its code."""
    quant = editor.tensors[editor.resolve(name)].quant
    if editor.graph.rounding != "tflite" or quant is None:
        return {"alpha": alpha}
    return {"alpha": alpha, "alpha_step": float(np.asarray(quant.args["scale"]).item())}
