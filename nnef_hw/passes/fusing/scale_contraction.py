"""Fold numbers that all products of two matrices are scaled by, or are added to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_contraction import LowerContraction
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons

__all__ = ["ScaleContraction", "product_before"]


@dataclass(frozen=True, slots=True)
class ScaleContraction(Pass):
    """Remove ``mul``, ``div``, ``add`` and ``sub`` of a ``contraction`` and one number.

    * behind a ``contraction`` that nobody else reads, and behind moves of it: into its ``scale``
      and ``offset``, so that sums are rounded once
    * a ``mul`` or ``div`` in front of it, and in front of moves of an operand: into its ``scale``

    Left alone: other constants, scales that are not positive, a ``contraction`` whose result is
    quantized, an operand that is, or that others read, and arithmetic that TensorFlow Lite rounds
    in a way of its own.
    """

    after: ClassVar[Reasons] = {
        LowerContraction: (
            "A scale is folded in the round in which LowerContraction makes the product, before "
            "FoldAffine makes a layer of it."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.has(Trait.CONTRACTS) and graph.rounding != "tflite":
                _take_factors(editor, node)
                continue
            found = _numbers(editor, node) if graph.rounding != "tflite" else None
            nodes = product_before(editor, found[0]) if found else []
            if found is None or not nodes:
                editor.keep(node)
            else:
                _emit(editor, node, nodes, *found[1:])
        return editor.finish()


def _numbers(editor: Editor, node: Node) -> tuple[str, float, float] | None:
    """Return the operand, scale and offset of ``y = scale * x + offset``."""
    if node.op not in {"add", "sub", "mul", "div"} or node.attrs.get("activation") is not None:
        return None
    values = [editor.data(name) for name in node.inputs]
    place = next((n for n, value in enumerate(values) if value is None), 0)
    value = values[1 - place]
    if values[place] is not None or value is None or (value != value.flat[0]).any():
        return None
    if editor.shape(node.inputs[place]) != editor.shape(node.name):
        return None
    number = float(value.flat[0])
    scale, offset = {
        "add": (1.0, number),
        "sub": (1.0, -number) if place == 0 else (-1.0, number),
        "mul": (number, 0.0),
        "div": (1.0 / number if number and place == 0 else 0.0, 0.0),
    }[node.op]
    return (node.inputs[place], scale, offset) if scale > 0 else None


def product_before(editor: Editor, source: str) -> list[Node]:
    """Return the contraction that a tensor comes from, and the moves behind it."""
    return _before(editor, source, lambda node: node.has(Trait.CONTRACTS))


def _before(editor: Editor, source: str, is_wanted: Callable[[Node], bool]) -> list[Node]:
    """Return the wanted node that a tensor comes from, and the moves behind it; nothing if none.

    Each of them is read once, and has no result that the author quantized.
    """
    nodes: list[Node] = []
    while True:
        name = editor.resolve(source)
        before = editor.emitted(name)
        if before is None or editor.tensors[name].quant is not None:
            return []
        if not editor.is_read_once(source):
            return []
        nodes.insert(0, before)
        if is_wanted(before):
            return nodes
        if not before.has(Trait.MOVES):
            return []
        source = before.inputs[0]


def _is_factor(editor: Editor, node: Node) -> bool:
    """Whether a node multiplies a tensor by one positive number."""
    return node.op in {"mul", "div"} and _numbers(editor, node) is not None


def _take_factors(editor: Editor, node: Node) -> None:
    """Emit a contraction with the factors of its operands in its scale."""
    inputs, scale = [], node.attrs["scale"]
    for name in node.inputs:
        chain = _before(editor, name, lambda before: _is_factor(editor, before))
        source = name
        if chain:
            factor, *moves = chain
            found = _numbers(editor, factor)
            assert found is not None, "it is a factor"
            source = found[0]
            scale *= found[1]
            for each in chain:
                editor.drop(each)
            for move in moves:
                editor.emit(replace(move, inputs=(source, *move.inputs[1:])))
                source = move.name
        inputs.append(source)
    if tuple(inputs) == node.inputs and scale == node.attrs["scale"]:
        editor.keep(node)
    else:
        editor.emit(replace(node, inputs=tuple(inputs)).with_attrs(scale=scale))


def _emit(editor: Editor, node: Node, nodes: list[Node], scale: float, offset: float) -> None:
    """Emit the contraction and the moves anew, the last one as the node's result."""
    for each in nodes:
        editor.drop(each)
    attrs = nodes[0].attrs
    factors = {"scale": attrs["scale"] * scale, "offset": attrs["offset"] * scale + offset}
    nodes[0] = nodes[0].with_attrs(**factors)
    like, source = editor.tensors[node.name], ""
    for n, each in enumerate(nodes):
        inputs = each.inputs if n == 0 else (source,)
        source = node.name
        if n < len(nodes) - 1:
            what = "moved" if n else "product"
            source = editor.activation(f"{node.name}_{what}", editor.shape(each.name), like)
        editor.emit(replace(each, inputs=inputs, outputs=(source,)))
