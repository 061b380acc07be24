"""Drop nodes that no output depends on."""

from __future__ import annotations

from dataclasses import dataclass

from nnef_hw.ir import Graph
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["RemoveDead"]


@dataclass(frozen=True, slots=True)
class RemoveDead(Pass):
    """Remove every node none of whose results leads to a graph output; inputs stay."""

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        needed, kept = set(graph.outputs), []
        for node in reversed(graph.nodes):
            if not needed.isdisjoint(node.outputs):
                needed.update(node.inputs)
                kept.append(node)
        if len(kept) == len(graph.nodes):
            return graph
        return graph.replaced(nodes=tuple(reversed(kept)))
