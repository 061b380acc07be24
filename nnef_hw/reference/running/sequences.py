"""Sequences of a network with states: the loop over steps that the references share."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents

__all__ = ["Sequences"]

Values: TypeAlias = dict[str, Array]
Step: TypeAlias = Callable[[Values], Values]
"""Takes inputs and states [n, ...] by name; returns all activations, these included, as well."""


@dataclass(frozen=True, slots=True, eq=False)
class Sequences:
    """Checked samples of the inputs of a graph with states.

    Parameters
    ----------
    graph
        The graph.
    inputs
        One array [N, T, ...] per graph input.
    is_lone
        Whether one sequence was given without an axis for it: then results lack it, too.
    """

    graph: Graph
    inputs: Mapping[str, Array]
    is_lone: bool

    @classmethod
    def of(cls, graph: Graph, arrays: Mapping[str, Array]) -> Sequences:
        """Return the sequences of inputs that are checked already."""
        ranks = {x.ndim - len(sample_extents(graph.tensor(n).shape)) for n, x in arrays.items()}
        if ranks > {1}:
            raise AssertionError("inputs of different forms")
        is_lone = ranks <= {1}
        return cls(graph, {n: x[np.newaxis] if is_lone else x for n, x in arrays.items()}, is_lone)

    @property
    def extents(self) -> tuple[int, int]:
        """Numbers of sequences and of steps; a graph without inputs makes one step."""
        return next(((len(x), x.shape[1]) for x in self.inputs.values()), (1, 1))

    def run(
        self,
        step: Step,
        initial: Mapping[str, Array],
        first: int,
        end: int,
        names: Collection[str] | None = None,
    ) -> Values:
        """Return activations [(end - first) * T, ...] of some sequences, one after the other.

        Parameters
        ----------
        initial
            The states [1, ...] with which every sequence begins.
        names
            Which activations; None for all of them, which takes memory for those of every step.
        """
        count, steps = end - first, self.extents[1]
        states = {name: np.repeat(x, count, axis=0) for name, x in initial.items()}
        kept: list[Values] = []
        for n in range(steps):
            inputs = {name: x[first:end, n] for name, x in self.inputs.items()}
            values = step({**inputs, **states})
            states = {name: values[self.graph.states[name].result] for name in initial}
            kept.append(values if names is None else {name: values[name] for name in names})
        return {name: _joined([values[name] for values in kept], count) for name in kept[0]}

    def arrange(self, chunks: Iterator[Values]) -> Values:
        """Join what :meth:`run` gave of all sequences: [N, T, ...], in the form of the inputs."""
        parts = list(chunks)
        leading = self.extents[1:] if self.is_lone else self.extents
        joined = {}
        for name in parts[0]:
            x = np.concatenate([part[name] for part in parts])
            per_step = len(x) // math.prod(self.extents)
            loops = () if per_step == 1 else (per_step,)
            joined[name] = x.reshape(*leading, *loops, *x.shape[1:])
        return joined


def _joined(steps: list[Array], count: int) -> Array:
    """Return values [count, ...] of every step as [count * T, ...]; more of those in loops."""
    stacked = np.stack([x.reshape(count, -1, *x.shape[1:]) for x in steps], axis=1)
    return stacked.reshape(-1, *stacked.shape[3:])
