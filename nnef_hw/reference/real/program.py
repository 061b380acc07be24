"""A graph prepared for repeated computation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.reference.real.quantize import fake_quantize
from nnef_hw.reference.real.registry import NUMPY_DTYPES, Array, Evaluation, evaluate

__all__ = ["RealProgram", "Step", "as_array"]


@dataclass(frozen=True, slots=True)
class Step:
    """A node and the tensors it computes."""

    node: Node
    results: tuple[Tensor, ...]
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, graph: Graph, node: Node) -> Step:
        """Return the step of a graph's node."""
        results = tuple(graph.tensor(name) for name in node.outputs)
        return cls(node, results, tuple(x.shape for x in results), tuple(x.dtype for x in results))

    def run(self, values: Mapping[str, Array], batch: int = 1) -> dict[str, Array]:
        """Return the results by name, quantized as their tensors are."""
        args = tuple(values[name] for name in self.node.inputs)
        found = evaluate(Evaluation(self.node, args, self.shapes, batch, self.dtypes))
        return {
            tensor.name: fake_quantize(x, tensor.quant) if tensor.quant else x
            for tensor, x in zip(self.results, found, strict=True)
        }


class RealProgram:
    """A graph whose constants, and all tensors that follow from them alone, are computed.

    Parameters
    ----------
    stage_inputs
        Names of the other tensors that no node computes, by the stage that provides their values.
        A node runs in the last stage that provides a tensor it depends on.
    """

    def __init__(self, graph: Graph, *stage_inputs: Collection[str]) -> None:
        self.constants: dict[str, Array] = {
            name: as_array(tensor.data, tensor.dtype)
            for name, tensor in graph.tensors.items()
            if tensor.data is not None
        }
        self._stages: list[list[Step]] = [[] for _ in stage_inputs]
        stages = {name: stage for stage, names in enumerate(stage_inputs) for name in names}
        for node in graph.nodes:
            step = Step.of(graph, node)
            stage = max((stages.get(name, -1) for name in node.inputs), default=-1)
            stages.update(dict.fromkeys(node.outputs, stage))
            if stage < 0:
                self.constants.update(step.run(self.constants))
            else:
                self._stages[stage].append(step)

    def run(
        self, values: Mapping[str, Array], *, stage: int = 0, batch: int = 1
    ) -> dict[str, Array]:
        """Return ``values``, of this stage and those before it, and the results of its nodes."""
        computed = {**self.constants, **values}
        found = dict(values)
        for step in self._stages[stage]:
            results = step.run(computed, batch)
            computed.update(results)
            found.update(results)
        return found


def as_array(data: Array | None, dtype: str) -> Array:
    """Convert data to the NumPy type in which the reference computes an NNEF data-type."""
    return np.asarray(data).astype(NUMPY_DTYPES[dtype], copy=False)
