"""Continue images beyond their borders by parts of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.images.windows import pad_border
from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.images.lower_multilinear import LowerMultilinear
from nnef_hw.passes.images.sink_pad import SinkPad
from nnef_hw.passes.rewriting.editor import Editor, emit_part, is_trivial
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.merge_equal import MergeEqual
from nnef_hw.passes.structure.raise_rank import RaiseRank

__all__ = ["LowerBorders"]

_BORDERS = {"reflect", "reflect-even", "replicate"}


@dataclass(frozen=True, slots=True)
class LowerBorders(Pass):
    """Rewrite borders ``replicate``, ``reflect`` and ``reflect-even``.

    * windows with such a border -> a ``pad``, and the window without padding
    * such a ``pad`` -> a ``concat`` of slices of the tensor along each axis

    Left alone: windows over batch or channels, cropping.
    """

    after: ClassVar[Reasons] = {
        MergeEqual: (
            "Slices of a constant at its border are computed before MergeEqual could merge them."
        ),
        SinkPad: (
            "A border behind which a move follows is padded behind that move, before it "
            "becomes slices."
        ),
        LowerMultilinear: "A border that LowerMultilinear pads becomes slices in the same round.",
    }
    before: ClassVar[Reasons] = {
        RaiseRank: (
            "Slices and joins of a border are given a fourth axis together, behind one reshape."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            padding = _padding(node)
            if padding is not None and node.op == "pad":
                _emit_parts(editor, node, padding)
            elif padding is not None and len(editor.shape(node.inputs[0])) in {3, 4}:
                _emit_padded(editor, node, padding)
            else:
                editor.keep(node)
        return editor.finish()


def _padding(node: Node) -> list[tuple[int, int]] | None:
    """Return a pad's padding, or that of a window's rows and columns, if it continues the image."""
    pads = node.has(Trait.WINDOW) or node.op == "pad"
    if not pads or node.attrs.get("border") not in _BORDERS:
        return None
    padding = [(int(p), int(q)) for p, q in node.attrs["padding"]]
    if node.op not in {"conv", "pad"}:
        padding, outer = padding[2:], padding[:2]
        if not is_trivial(outer, (0, 0)):
            return None
    is_plain = is_trivial(padding, (0, 0)) or min(min(pair) for pair in padding) < 0
    return None if is_plain else padding


def _emit_padded(editor: Editor, node: Node, padding: list[tuple[int, int]]) -> None:
    source = node.inputs[0]
    shape = editor.shape(source)
    extents = (n + p + q for n, (p, q) in zip(shape[2:], padding, strict=True))
    like = editor.tensors[editor.resolve(source)]
    image = editor.activation(f"{node.name}_padded", (*shape[:2], *extents), like)
    attrs = {"padding": [(0, 0), (0, 0), *padding], "border": node.attrs["border"], "value": 0.0}
    window = node.with_attrs(border="constant", padding=[(0, 0)] * len(node.attrs["padding"]))
    editor.emit(
        Node("pad", (source,), (image,), attrs, node.location),
        replace(window, inputs=(image, *node.inputs[1:])),
    )


def _emit_parts(editor: Editor, node: Node, padding: list[tuple[int, int]]) -> None:
    source, like = node.inputs[0], editor.tensors[node.name]
    axes = [axis for axis, pair in enumerate(padding) if any(pair)]
    for axis in axes:
        shape = list(editor.shape(source))
        index = pad_border(np.arange(shape[axis]), [padding[axis]], node.attrs["border"])
        runs = np.split(index, np.flatnonzero(np.diff(index) != 1) + 1)
        parts = [
            emit_part(editor, node, source, axis, int(run[0]), int(run[-1]) + 1) for run in runs
        ]
        result = node.name
        if axis != axes[-1]:
            shape[axis] = len(index)
            result = editor.activation(f"{node.name}_axis{axis}", tuple(shape), like)
        editor.emit(Node("concat", tuple(parts), (result,), {"axis": axis}, node.location))
        source = result
