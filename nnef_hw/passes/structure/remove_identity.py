"""Drop nodes that hand their input on unchanged."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.rewriting.editor import Editor, is_trivial
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["RemoveIdentity"]


@dataclass(frozen=True, slots=True)
class RemoveIdentity(Pass):
    """Remove ``copy``, ``dropout``, and operators on shapes, windows and parts without an effect.

    So is a ``select`` by a constant that is the same everywhere.

    A removed node's result that is a graph output gives its name to the tensor before it.
    Left alone: an identity between a graph input (or another output) and a graph output, which
    becomes a ``reshape`` to the same shape; a result with a quantization of its own.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            handed_on = _handed_on(graph, node)
            if handed_on is None:
                editor.keep(node)
                continue
            source, result = editor.resolve(handed_on), node.outputs[0]
            if result not in graph.outputs:
                editor.alias(result, source)
                continue
            before = editor.emitted(source)
            if before is None or source in graph.outputs:
                attrs = {"shape": list(editor.shape(result)), "axis_start": 0, "axis_count": -1}
                if node.op == "reshape":
                    editor.keep(node)
                else:
                    editor.emit(replace(node, op="reshape", inputs=(handed_on,), attrs=attrs))
                continue
            editor.rename(source, result)
        return editor.finish()


def _handed_on(graph: Graph, node: Node) -> str | None:
    """Return the operand that is a node's result, None if there is none."""
    if node.op == "select":
        return _only_choice(graph, node)
    return node.inputs[0] if _is_identity(graph, node) else None


def _only_choice(graph: Graph, node: Node) -> str | None:
    """Return the choice that a constant makes everywhere."""
    condition = graph.tensor(node.inputs[0]).data
    if condition is None or not condition.size or (condition != condition.flat[0]).any():
        return None
    chosen, result = node.inputs[1 if condition.flat[0] else 2], graph.tensor(node.outputs[0])
    tensor = graph.tensor(chosen)
    is_same = tensor.data is None and tensor.shape == result.shape and result.quant is None
    return chosen if is_same else None


def _is_identity(graph: Graph, node: Node) -> bool:
    if graph.tensor(node.outputs[0]).quant is not None:
        return False
    if node.op in {"copy", "dropout"} or (node.op == "concat" and len(node.inputs) == 1):
        return True
    if not node.inputs or graph.tensor(node.inputs[0]).shape != graph.tensor(node.outputs[0]).shape:
        return False
    if node.has(Trait.RESHAPES):
        return True
    if node.op == "transpose":
        return list(node.attrs["axes"]) == sorted(node.attrs["axes"])
    if node.op == "slice":
        return is_trivial(node.attrs.get("stride") or (), 1)
    if node.op in {"depth_to_space", "nearest_upsample"}:
        return True
    if node.op == "pad":
        return is_trivial(node.attrs["padding"], (0, 0))
    if node.has(Trait.POOL):
        return is_trivial(node.attrs["size"], 1) and is_trivial(node.attrs["padding"], (0, 0))
    return False
