"""Compute element by element, and along axes, before the axes change places."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.views import is_image
from nnef_hw.passes.structure.sink_transposes import SinkTransposes

__all__ = ["HoistArithmetic"]

_SUMS = frozenset({"mean_reduce", "sum_reduce"})
_REDUCTIONS = _SUMS | {"max_reduce", "min_reduce"}


@dataclass(frozen=True, slots=True)
class HoistArithmetic(Pass):
    """Swap a ``transpose`` of an image and what is computed of its result.

    * reductions -> along the axes that those were before, if these are an image's rows and
      columns, or channels of which a layer computes the sum
    * arithmetic of several such results, or of one and constants -> of what was not moved yet
    * functions between these

    So a normalization of channels that an exporter has put last is one of channels. Alone, or
    behind graph inputs, nothing of this is done: at least one reduction must be among them.
    Left alone: operands that are moved in different ways.
    """

    after: ClassVar[Reasons] = {
        SinkTransposes: (
            "Equal transposes of all operands are swapped with the operator alone, without a "
            "reduction."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        if not any(node.op in _REDUCTIONS for node in graph.nodes):
            return graph
        editor = Editor(graph)
        reduced: set[str] = set()
        for node in graph.nodes:
            axes = _common_axes(editor, node)
            if (
                axes is None
                or not _belongs(node, graph, reduced)
                or not _is_reduced_at_once(editor, node, axes)
            ):
                editor.keep(node)
                continue
            reduced.add(node.name)
            _emit(editor, node, axes)
        return editor.finish()


def _belongs(node: Node, graph: Graph, reduced: set[str]) -> bool:
    """Whether a node reduces something, or reads what comes of that, or is reduced itself."""
    if node.op in _REDUCTIONS or any(name in reduced for name in node.inputs):
        return True
    return node.has(Trait.TABLE) and any(
        reader.op in _REDUCTIONS for reader in graph.consumers(node.name)
    )


def _common_axes(editor: Editor, node: Node) -> list[int] | None:
    """Return how all activations that a node reads were transposed; None if not all alike."""
    if node.op not in _REDUCTIONS and not node.has(Trait.ELEMENTWISE):
        return None
    found: list[list[int]] = []
    for name in node.inputs:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is not None:
            continue
        move = editor.emitted(tensor.name)
        if move is None or move.op != "transpose" or move.inputs[0] in editor.graph.inputs:
            return None
        if not is_image(editor.shape(move.inputs[0])) or tensor.quant is not None:
            return None
        found.append(list(move.attrs["axes"]))
    return found[0] if found and all(axes == found[0] for axes in found) else None


def _is_reduced_at_once(editor: Editor, node: Node, axes: list[int]) -> bool:
    """Whether a layer computes a reduction along the axes that these were before.

    Otherwise :class:`.LowerReduce` would move the axes again.
    """
    if node.op not in _REDUCTIONS:
        return True
    move = editor.emitted(editor.resolve(node.inputs[0]))
    assert move is not None, node.name
    before = editor.emitted(move.inputs[0])
    moved = [axes[axis] for axis in node.attrs["axes"]]
    if not moved or 0 in moved or (before is not None and before.has(Trait.MOVES)):
        return False
    return node.op in _SUMS or 1 not in moved


def _emit(editor: Editor, node: Node, axes: list[int]) -> None:
    like = editor.tensors[node.name]
    back = np.argsort(axes).tolist()
    inputs = []
    for name in node.inputs:
        tensor = editor.tensors[editor.resolve(name)]
        if tensor.data is None:
            move = editor.emitted(tensor.name)
            assert move is not None, name
            inputs.append(move.inputs[0])
        elif tensor.data.size == 1:
            inputs.append(name)
        else:
            function = partial(_moved, axes=back)
            inputs.append(editor.rearranged(f"{tensor.name}_moved", tensor, function))
    shape = tuple(like.shape[axis] for axis in back)
    result = editor.activation(f"{node.name}_before", shape, like)
    new = replace(node, inputs=tuple(inputs), outputs=(result,))
    if "axes" in node.attrs:
        new = new.with_attrs(axes=sorted(axes[axis] for axis in node.attrs["axes"]))
    editor.emit(new, Node("transpose", (result,), (node.name,), {"axes": axes}, node.location))


def _moved(array: Array, *, axes: list[int]) -> Array:
    """Transpose a constant that is broadcast to tensors of so many axes, from the left."""
    return array.reshape(array.shape + (1,) * (len(axes) - array.ndim)).transpose(axes)
