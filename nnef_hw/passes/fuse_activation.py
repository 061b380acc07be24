"""Fuse ReLU into the operator before it, where it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Trait
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes.editor import Editor

__all__ = ["FuseActivation"]


@dataclass(frozen=True, slots=True)
class FuseActivation:
    """Give an operator of sums that only a ``relu`` reads ``activation = "relu"``.

    These are ``conv``, ``linear``, ``add`` and ``sub``. The operator computes the ReLU's result
    under its name and keeps its own location.
    Left alone: sums that others read too, or that are a graph output, or are quantized in another
    way than the ReLU's result.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            before = editor.emitted(node.inputs[0]) if node.op == "relu" else None
            if (
                before is None
                or not before.has(Trait.FUSES_RELU)
                or before.attrs.get("activation") is not None
                or not editor.has_one_use(node.inputs[0])
                or not _fits(editor, before.name, node.name)
            ):
                editor.keep(node)
                continue
            editor.drop(before)
            editor.emit(replace(before.with_attrs(activation="relu"), outputs=node.outputs))
        return editor.finish()


def _fits(editor: Editor, total: str, result: str) -> bool:
    """Whether the layer can quantize its result at once; this then has the sum's quantization."""
    inner, outer = editor.tensors[total].quant, editor.tensors[result].quant
    if inner is not None and outer is None:
        editor.tensors[result] = replace(editor.tensors[result], quant=inner)
        return True
    return inner is None or same_quantization(inner, outer)
