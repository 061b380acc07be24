"""Let window operators pad their own input."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.editor import Editor, is_trivial

__all__ = ["MergePad"]


@dataclass(frozen=True, slots=True)
class MergePad:
    """Merge a spatial ``pad`` with zeros into each ``conv``, pool and ``box`` behind it.

    The window's own border must be ``constant`` (or it has no padding of its own).
    Left alone: other borders and values, cropping, padding of batch or channels.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            pad = editor.producer(node.inputs[0]) if node.inputs else None
            if pad is None or not _is_zero_pad(pad) or not _accepts(node):
                editor.keep(node)
                continue
            outer = [(int(p), int(q)) for p, q in pad.attrs["padding"]]
            own = list(node.attrs["padding"])
            outer = outer[len(outer) - len(own) :]
            total = [(p + r, q + s) for (p, q), (r, s) in zip(outer, own, strict=True)]
            merged = node.with_attrs(padding=total, border="constant")
            editor.emit(replace(merged, inputs=(pad.inputs[0], *node.inputs[1:])))
        return editor.finish()


def _is_zero_pad(node: Node) -> bool:
    if node.op != "pad" or node.attrs.get("border", "constant") != "constant":
        return False
    padding = [tuple(pair) for pair in node.attrs["padding"]]
    inner = all(p >= 0 and q >= 0 for p, q in padding)
    return inner and is_trivial(padding[:2], (0, 0)) and not node.attrs.get("value", 0.0)


def _accepts(node: Node) -> bool:
    return node.op in {"avg_pool", "box", "conv", "max_pool"} and node.attrs["border"] == "constant"
