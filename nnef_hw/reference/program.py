"""A graph made ready to be computed many times."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from nnef_hw.ir import Graph, Node
from nnef_hw.reference.registry import NUMPY_DTYPES, Array, Call, evaluate

__all__ = ["Program", "as_array"]


@dataclass(frozen=True, slots=True)
class _Step:
    """A node and what its results must be."""

    node: Node
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    def run(self, values: Mapping[str, Array], batch: int) -> tuple[Array, ...]:
        args = tuple(values[name] for name in self.node.inputs)
        return evaluate(Call(self.node, args, self.shapes, batch, self.dtypes))


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
        self._stages: list[list[_Step]] = [[] for _ in given]
        stages = {name: stage for stage, names in enumerate(given) for name in names}
        for node in graph.nodes:
            tensors = [graph.tensor(name) for name in node.outputs]
            step = _Step(node, tuple(x.shape for x in tensors), tuple(x.dtype for x in tensors))
            stage = max((stages.get(name, -1) for name in node.inputs), default=-1)
            stages.update(dict.fromkeys(node.outputs, stage))
            if stage < 0:
                results = step.run(self.constants, 1)
                self.constants.update(zip(node.outputs, results, strict=True))
            else:
                self._stages[stage].append(step)

    def run(
        self, values: Mapping[str, Array], *, stage: int = 0, batch: int = 1
    ) -> dict[str, Array]:
        """Return ``values``, of this stage and those before it, and the results of its nodes."""
        known = {**self.constants, **values}
        found = dict(values)
        for step in self._stages[stage]:
            results = dict(zip(step.node.outputs, step.run(known, batch), strict=True))
            known.update(results)
            found.update(results)
        return found


def as_array(data: Array | None, dtype: str) -> Array:
    """Convert data to what the reference computes an NNEF data-type in."""
    return np.asarray(data).astype(NUMPY_DTYPES[dtype], copy=False)
