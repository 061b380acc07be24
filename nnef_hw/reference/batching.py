"""Which graphs compute many samples at once, as one batch along axis 0."""

from __future__ import annotations

import numpy as np

from nnef_hw.ir import Graph
from nnef_hw.reference.real.registry import batch_rule
from nnef_hw.reference.running.batch_rules import Case

__all__ = ["is_batchable"]


def is_batchable(graph: Graph) -> bool:
    """Tell whether axis 0 of every activation may hold samples instead of its extent of 1.

    Every operator has a rule in :mod:`nnef_hw.reference.real.registry`.
    """
    varying = graph.dependents(graph.inputs)
    if graph.states or any(graph.tensor(name).shape[:1] != (1,) for name in varying):
        return False
    for name in varying:
        quant = graph.tensor(name).quant
        if quant and any(np.shape(value)[:1] not in {(), (1,)} for value in quant.args.values()):
            return False
    return all(
        batch_rule(node.op)(
            Case(
                node,
                tuple(name in varying for name in node.inputs),
                len(graph.tensor(node.inputs[0]).shape),
            )
        )
        for node in graph.nodes
        if not varying.isdisjoint(node.inputs)
    )
