"""A graph made ready to be computed many times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.reference.float_quantize import fake_quantize
from nnef_hw.reference.registry import NUMPY_DTYPES, Array, Call, evaluate

__all__ = ["Program", "Step", "as_array"]


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
        found = evaluate(Call(self.node, args, self.shapes, batch, self.dtypes))
        return {
            tensor.name: fake_quantize(x, tensor.quant) if tensor.quant else x
            for tensor, x in zip(self.results, found, strict=True)
        }


class Program:
    """A graph whose constants, and what follows from them alone, are computed.

    Parameters
    ----------
    given
        Names of the other tensors that no node computes, by the stage that brings their values. A
        node runs in the last stage that brings something it depends on.
    """

    def __init__(self, graph: Graph, *given: Collection[str]) -> None:
        self.constants: dict[str, Array] = {
            name: as_array(tensor.data, tensor.dtype)
            for name, tensor in graph.tensors.items()
            if tensor.data is not None
        }
        self._stages: list[list[Step]] = [[] for _ in given]
        stages = {name: stage for stage, names in enumerate(given) for name in names}
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
        known = {**self.constants, **values}
        found = dict(values)
        for step in self._stages[stage]:
            results = step.run(known, batch)
            known.update(results)
            found.update(results)
        return found


def as_array(data: Array | None, dtype: str) -> Array:
    """Convert data to what the reference computes an NNEF data-type in."""
    return np.asarray(data).astype(NUMPY_DTYPES[dtype], copy=False)
