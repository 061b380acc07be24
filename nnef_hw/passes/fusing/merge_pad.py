"""Let window operators pad their own input."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_reduce import LowerReduce
from nnef_hw.passes.rewriting.editor import Editor, is_trivial
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.raise_rank import RaiseRank

__all__ = ["MergePad"]


@dataclass(frozen=True, slots=True)
class MergePad(Pass):
    """Merge a spatial ``pad`` into each window behind it.

    * with zeros into ``conv``, pools and ``box`` whose own border is ``constant`` (or have no
      padding of their own)
    * with minus infinity into ``max_pool`` without padding: its border is then ``ignore``

    Left alone: other borders and values, cropping, padding of batch or channels.
    """

    after: ClassVar[Reasons] = {
        LowerReduce: "A pad goes into the window that a reduction over rows and columns becomes.",
    }
    before: ClassVar[Reasons] = {
        RaiseRank: "A pad that goes into a window needs no fourth axis of its own.",
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            pad = editor.producer(node.inputs[0]) if node.inputs else None
            border = None if pad is None else _merged_border(pad, node)
            if pad is None or border is None:
                editor.keep(node)
                continue
            outer = [(int(p), int(q)) for p, q in pad.attrs["padding"]]
            own = list(node.attrs["padding"])
            outer = outer[len(outer) - len(own) :]
            total = [(p + r, q + s) for (p, q), (r, s) in zip(outer, own, strict=True)]
            merged = node.with_attrs(padding=total, border=border)
            editor.emit(replace(merged, inputs=(pad.inputs[0], *node.inputs[1:])))
        return editor.finish()


def _merged_border(pad: Node, node: Node) -> str | None:
    """Return the border of a window that does the padding itself, None if it cannot."""
    if not (_extends_image(pad) and node.has(Trait.WINDOW)) or node.attrs["border"] != "constant":
        return None
    value = float(pad.attrs.get("value", 0.0))
    if value == 0.0:
        return "constant"
    is_ignored = node.op == "max_pool" and is_trivial(node.attrs["padding"], (0, 0))
    return "ignore" if is_ignored and value == -math.inf else None


def _extends_image(node: Node) -> bool:
    if node.op != "pad" or node.attrs.get("border", "constant") != "constant":
        return False
    padding = [tuple(pair) for pair in node.attrs["padding"]]
    return all(p >= 0 and q >= 0 for p, q in padding) and is_trivial(padding[:2], (0, 0))
