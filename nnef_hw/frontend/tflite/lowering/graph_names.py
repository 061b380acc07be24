"""Names of tensors in the graph."""

from __future__ import annotations

from nnef_hw.frontend.building.builder import Builder
from nnef_hw.frontend.tflite.file.model import TfliteSubgraph
from nnef_hw.frontend.tflite.lowering.calls import identifier

__all__ = ["graph_names"]


def graph_names(graph: TfliteSubgraph, builder: Builder | None = None) -> dict[int, str]:
    """Return the names that inputs, outputs and results of operators have in the graph.

    Parameters
    ----------
    builder
        Where they are reserved.
    """
    builder = builder or Builder("names")
    computed = [index for operator in graph.operators for index in operator.outputs]
    return {
        index: builder.unique(graph.names.get(index) or identifier(graph.tensors[index].name))
        for index in dict.fromkeys((*graph.inputs, *graph.outputs, *computed))
    }
