"""Turn comparisons of two activations, and choices between two, into arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass
from nnef_hw.reference.real.elementwise import align

__all__ = ["LowerSelection"]

_COMPARISONS = frozenset({"eq", "ge", "gt", "le", "lt", "ne"})


@dataclass(frozen=True, slots=True)
class LowerSelection(Pass):
    """Rewrite what no function of one activation computes.

    * ``eq``, ``lt``... of two activations -> the same of their difference and 0, a function
    * ``select`` by an activation -> the sum of both, each times a function that is 0 or 1
    * ``select`` by a constant -> a product with 0 and 1, and a sum with a constant
    * ``select`` of minus infinity by an activation -> a sum with the logarithm of 0 or 1

    Left alone: codes of TensorFlow Lite, which it compares exactly; other numbers than real ones;
    choices by an activation of constants that are infinite here, but not there.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            done = graph.rounding != "tflite"
            if done and node.op in _COMPARISONS:
                done = _emit_difference(editor, node)
            elif done and node.op == "select":
                done = _emit_choice(editor, node)
            else:
                done = False
            if not done:
                editor.keep(node)
        return editor.finish()


def _emit_difference(editor: Editor, node: Node) -> bool:
    tensors = [editor.tensors[editor.resolve(name)] for name in node.inputs]
    if any(tensor.data is not None or tensor.dtype != "scalar" for tensor in tensors):
        return False
    like = replace(editor.tensors[node.name], dtype="scalar", quant=None)
    difference = editor.activation(f"{node.name}_difference", like.shape, like)
    zero = editor.constant(f"{node.name}_zero", np.asarray(0.0))
    editor.emit(
        Node("sub", node.inputs, (difference,), {}, node.location),
        replace(node, inputs=(difference, zero)),
    )
    return True


def _emit_choice(editor: Editor, node: Node) -> bool:
    condition, *choices = node.inputs
    like = editor.tensors[node.name]
    known = editor.data(condition)
    constants = [data for name in choices if (data := editor.data(name)) is not None]
    finite = [bool(np.isfinite(data).all()) for data in constants]
    if like.dtype != "scalar" or like.quant is not None:
        return False
    if known is None and (finite.count(False) > 1 or not all(map(_is_sum_with, constants, finite))):
        return False
    terms = []
    for name, is_first in zip(choices, (True, False), strict=True):
        data = editor.data(name)
        if known is not None:
            mask = known.astype(bool) == is_first
            if data is not None:
                chosen, values = align(mask, data)
                part = np.where(chosen, values, 0.0)
                terms.append(editor.constant(f"{node.name}_part", part))
                continue
            weight = editor.constant(f"{node.name}_weight", mask.astype(np.float64))
        elif data is not None and not data.any():
            continue
        elif data is not None and np.isinf(data).all():
            terms.append(_infinite(editor, node, condition, data, is_first=is_first))
            continue
        else:
            weight = _weight(editor, node, condition, is_first)
        shape = _broadcast(editor.shape(weight), editor.shape(name))
        term = editor.activation(f"{node.name}_part", shape, like)
        editor.emit(Node("mul", (name, weight), (term,), {}, node.location))
        terms.append(term)
    if len(terms) != len(choices):
        return _emit_only(editor, node, terms)
    editor.emit(Node("add", tuple(terms), node.outputs, {}, node.location))
    return True


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of arithmetic: operands of lower rank are repeated along the last axes."""
    return tuple(max(extents) for extents in zip_longest(*shapes, fillvalue=1))


def _is_sum_with(data: Array, is_finite: bool) -> bool:
    """Whether a constant is finite, or minus infinity, or infinity, all over."""
    return is_finite or bool(np.isinf(data).all() and (data == data.flat[0]).all())


def _infinite(editor: Editor, node: Node, condition: str, data: Array, *, is_first: bool) -> str:
    """Return an activation that is infinite where a choice is taken, else 0: a logarithm."""
    weight = _weight(editor, node, condition, not is_first)
    shape, like = editor.shape(weight), editor.tensors[node.name]
    term = editor.activation(f"{node.name}_part", shape, like)
    if data.flat[0] < 0:
        editor.emit(Node("log", (weight,), (term,), {}, node.location))
        return term
    negative = editor.activation(f"{node.name}_part", shape, like)
    editor.emit(
        Node("log", (weight,), (negative,), {}, node.location),
        Node("neg", (negative,), (term,), {}, node.location),
    )
    return term


def _weight(editor: Editor, node: Node, condition: str, is_first: bool) -> str:
    """Return an activation that is 1 where a choice is taken, else 0."""
    logical = editor.tensors[editor.resolve(condition)]
    if not is_first:
        opposite = editor.activation(f"{node.name}_otherwise", logical.shape, logical)
        editor.emit(Node("not", (condition,), (opposite,), {}, node.location))
        condition = opposite
    like = replace(logical, dtype="scalar", quant=None)
    weight = editor.activation(f"{node.name}_weight", logical.shape, like)
    editor.emit(Node("cast", (condition,), (weight,), {}, node.location))
    return weight


def _emit_only(editor: Editor, node: Node, terms: list[str]) -> bool:
    """Emit what is left of a choice if the other one is 0."""
    [term] = terms or [editor.constant(f"{node.name}_part", np.zeros(editor.shape(node.name)))]
    editor.emit(Node("copy", (term,), node.outputs, {}, node.location))
    return True
