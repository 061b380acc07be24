"""Loss of quality in the outputs of a quantized network."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed, run_float

__all__ = ["Judge"]

FloatArray = NDArray[np.float64]


class Judge:
    """Compares fixed graphs with the real network that they come from, on samples.

    Parameters
    ----------
    graph
        The real network.
    inputs
        One array [N, ...] per graph input; sequences [N, T, ...] if it has states.
    labels
        Classes, [N], or of every step [N, T]; None if there are none, or numbers to come close to.

    Attributes
    ----------
    what : str
        Quantity that :meth:`drop` counts, for messages.
    """

    def __init__(self, graph: Graph, inputs: Mapping[str, Array], labels: Array | None) -> None:
        self._graph = graph
        self._inputs = inputs
        self._real = self._flat(run_float(graph, inputs))
        is_class = labels is not None and np.issubdtype(labels.dtype, np.integer)
        self._labels = labels if labels is not None and is_class else None
        self._classifies = self._labels is not None or (
            labels is None and all(y.shape[1] > 1 for y in self._real)
        )
        if self._labels is not None:
            self.what = "accuracy"
        else:
            self.what = "agreement" if self._classifies else "relative error"

    def outputs(self, fixed: Graph) -> list[FloatArray]:
        """Return the real numbers [N, values] of a fixed graph's outputs."""
        codes = run_fixed(fixed, quantize_inputs(fixed, self._inputs, warns=False))
        return self._flat(dequantize_outputs(fixed, codes))

    def noise(self, fixed: Graph) -> float:
        """Return the share of noise in the outputs' power: 0 if they are the same."""
        return sum(
            float(np.mean((found - real) ** 2)) / (float(np.var(real)) or 1.0)
            for found, real in zip(self.outputs(fixed), self._real, strict=True)
        )

    def drop(self, fixed: Graph) -> tuple[float, float]:
        """Return how many points of a hundred are lost, and the standard error of that number.

        Points are samples whose class is the label; without labels, those whose class is the real
        network's; if there are no classes, the root of the share of noise. Less than 0 are lost if
        some are gained.
        """
        if not self._classifies:
            return 100.0 * float(np.sqrt(self.noise(fixed))), 0.0
        drops = []
        for found, real in zip(self.outputs(fixed), self._real, strict=True):
            labels = self._labels
            if labels is not None:
                found, real = (self._labelled(y, labels) for y in (found, real))
                labels = labels.reshape(-1)
            decided, expected = _classes(found), _classes(real)
            if labels is None:
                labels = expected
            lost = 100.0 * ((expected == labels).astype(float) - (decided == labels))
            drops.append((float(lost.mean()), float(lost.std()) / len(lost) ** 0.5))
        return max(drops)

    def accuracies(self, fixed: Graph) -> tuple[float, float]:
        """Return the accuracies (0..1) of the first output: of the real network, of a fixed one."""
        assert self._labels is not None
        expected = self._labels.reshape(-1)
        real, found = (
            float((_rounded_classes(self._labelled(y, self._labels)) == expected).mean())
            for y in (self._real[0], self.outputs(fixed)[0])
        )
        return real, found

    def _labelled(self, y: FloatArray, labels: Array) -> FloatArray:
        """Return the outputs that labels are for: of all steps, or the last of every sequence."""
        return y[len(y) // labels.size - 1 :: len(y) // labels.size]

    def _flat(self, outputs: Mapping[str, Array]) -> list[FloatArray]:
        """Return outputs [N, values]; of sequences, those of all steps."""
        axes = 2 if self._graph.is_sequential else 1
        arrays = (np.asarray(outputs[name], np.float64) for name in self._graph.outputs)
        return [y.reshape(math.prod(y.shape[:axes]), -1) for y in arrays]


def _rounded_classes(y: FloatArray) -> NDArray[np.int64]:
    """Return classes as labels are scored with: a lone output is one, to the nearest integer."""
    return _classes(np.floor(y + 0.5) if y.shape[1] == 1 else y)


def _classes(y: FloatArray) -> NDArray[np.int64]:
    return np.asarray(y[:, 0].astype(np.int64) if y.shape[1] == 1 else y.argmax(axis=1))
