"""Error of quantization that builds up in a network with states, step by step."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph

__all__ = ["Drift", "decibels"]


class Drift:
    """Signal to quantization noise of outputs and states, by the number of the step.

    Parameters
    ----------
    graph
        The network.
    steps
        Steps of a sequence.

    Attributes
    ----------
    names
        The outputs and states.
    """

    def __init__(self, graph: Graph, steps: int) -> None:
        self._graph, self._steps = graph, steps
        lasting = [name for name, state in graph.states.items() if state.goes_on]
        self.names = tuple(dict.fromkeys((*graph.outputs, *lasting)))
        self._power = {name: np.zeros((2, steps)) for name in self.names}

    def add(self, real: Mapping[str, Array], fixed: Mapping[str, Array]) -> None:
        """Take the values of some sequences, [n * T, ...] by name, of both networks.

        Those of the quantized network are the numbers that its codes stand for.
        """
        for name, power in self._power.items():
            shape = (-1, self._steps, self._graph.tensor(name).volume)
            found, wanted = (np.asarray(x[name], np.float64).reshape(shape) for x in (fixed, real))
            wanted = np.where(np.isfinite(wanted), wanted, found)
            power += np.square(np.stack([wanted, wanted - found])).sum(axis=(1, 3))

    def rows(self) -> list[dict[str, int | float | None]]:
        """Return a row for each step: its number from 1 on, and decibels by tensor.

        A tensor without an error, or without a signal, has None.
        """
        return [
            {
                "step": n + 1,
                **{f"{name} dB": decibels(*power[:, n]) for name, power in self._power.items()},
            }
            for n in range(self._steps)
        ]


def decibels(signal: float, noise: float) -> float | None:
    """Return the ratio of two powers in dB; None if one of them is 0."""
    return round(float(10 * np.log10(signal / noise)), 2) if signal > 0 and noise > 0 else None
