"""A network on samples as it is and as quantized so far, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.images.windows import gather_taps, pad_border
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.records import AttributeValue
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.operators import ConvAttributes
from nnef_hw.reference.batching import is_batchable
from nnef_hw.reference.real.program import Step
from nnef_hw.reference.visible import EVERYTHING, Interval

__all__ = ["Covariance", "Moments", "Simulation"]

FloatArray = NDArray[np.float64]

_MAX_WINDOWS = 1 << 13
"""Window positions that moments are taken of."""

_MAX_INPUTS = 9 << 9
"""Values of a window whose covariance is one matrix: those of a 3x3 filter of 512 channels."""

_MAX_VALUES = 1 << 25
"""Activations of all samples together."""


@dataclass(frozen=True, slots=True, eq=False)
class Covariance:
    """Covariances of some values of a layer's input windows, real ones x and quantized ones q.

    Parameters
    ----------
    span
        Which of the K values of a window.
    cross, square
        [groups, k, k] for these k values: covariance of x with q, and of q.
    """

    span: slice
    cross: FloatArray
    square: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Moments of a layer's input windows.

    Parameters
    ----------
    real_mean, mean
        [groups, K], of x and q; K values of a window, in the order of a filter's.
    parts
        Covariances of runs of these values; those of different runs count as independent, since
        the matrix of all of a large layer has no room.
    """

    real_mean: FloatArray
    mean: FloatArray
    parts: tuple[Covariance, ...]

    @classmethod
    def of(cls, real: FloatArray, fixed: FloatArray, *, centered: bool) -> Moments:
        """Return moments of x and q [groups, K, n], about the means or 0; these arrays change."""
        means = real.mean(axis=2), fixed.mean(axis=2)
        if centered:
            real -= means[0][..., None]
            fixed -= means[1][..., None]
        transposed = fixed.swapaxes(1, 2) / fixed.shape[2]
        inputs = fixed.shape[1]
        size = -(-inputs // -(-inputs // _MAX_INPUTS))
        parts = []
        for first in range(0, inputs, size):
            span = slice(first, first + size)
            columns = transposed[..., span]
            parts.append(Covariance(span, real[:, span] @ columns, fixed[:, span] @ columns))
        return cls(*means, tuple(parts))


class Simulation:
    """Values of all activations computed so far, over as many samples as fit into memory.

    Parameters
    ----------
    graph
        Graph of the canonical stage, without states.
    samples
        One array [N, ...] per graph input.
    """

    def __init__(self, graph: Graph, samples: Mapping[str, Array]) -> None:
        volume = sum(
            graph.steps(name) * tensor.volume
            for name, tensor in graph.tensors.items()
            if tensor.data is None
        )
        first = graph.inputs[0]
        count = len(samples[first]) // graph.steps(first)
        kept = np.arange(0, count, max(1, -(-count * volume // _MAX_VALUES)))
        self._graph = graph
        self._count = len(kept)
        self._constants: dict[str, FloatArray] = {
            name: np.asarray(tensor.data, np.float64)
            for name, tensor in graph.tensors.items()
            if tensor.data is not None
        }
        self._real = {
            name: np.asarray(
                samples[name].reshape(count, graph.steps(name), -1)[kept], np.float64
            ).reshape(-1, *graph.tensor(name).shape[1:])
            for name in graph.inputs
        }
        self._fixed: dict[str, FloatArray] = {}
        self._pending_reads = {name: len(graph.consumers(name)) for name in graph.tensors}

    @staticmethod
    def is_possible(graph: Graph) -> bool:
        """Whether many samples of a graph can be computed at once."""
        return is_batchable(graph)

    def quantize_input(self, name: str, qtype: QType, seen: Interval = EVERYTHING) -> None:
        """Take the format of a graph input, and what readers see of it."""
        self._real[name] = _clipped(self._real[name], seen)
        self._fixed[name] = qtype.dequantize(qtype.quantize(self._real[name]))

    def advance(
        self,
        node: Node,
        qtype: QType,
        constants: Mapping[str, FloatArray],
        seen: Interval = EVERYTHING,
    ) -> None:
        """Compute a node; ``constants`` are the real numbers that its codes stand for.

        Real results beyond what readers see count as the nearest that they do: fitted weights
        cannot, and need not, come close to them.
        """
        step, count = Step.of(self._graph, node), self._count * self._graph.steps(node.name)
        real = step.run({**self._constants, **self._real}, count)
        fixed = step.run({**self._constants, **constants, **self._fixed}, count)
        for name, value in fixed.items():
            ordered = np.where(np.isnan(value), -np.inf, value)
            self._fixed[name] = qtype.dequantize(qtype.quantize(ordered))
            # infinite values have a code, too
            x = _clipped(real[name], seen)
            self._real[name] = np.where(np.isfinite(x), x, self._fixed[name])
        for name in set(node.inputs):
            self._pending_reads[name] -= 1
            if not self._pending_reads[name]:
                self._real.pop(name, None)
                self._fixed.pop(name, None)

    def moments(self, node: Node, *, centered: bool) -> Moments:
        """Return the moments of the input of a ``conv`` or ``linear``, about the means or 0."""
        name, shape = node.inputs[0], self._graph.tensor(node.inputs[1]).shape
        real, fixed = (_windows(node, x[name], shape) for x in (self._real, self._fixed))
        return Moments.of(real, fixed, centered=centered)


def _clipped(x: FloatArray, seen: Interval) -> FloatArray:
    return x if seen == EVERYTHING else x.clip(seen.lo, seen.hi)


def _windows(node: Node, x: FloatArray, filter_shape: tuple[int, ...]) -> FloatArray:
    """Return [groups, K, n] of the windows of all samples, or of _MAX_WINDOWS at random."""
    if node.op == "linear":
        return x.T[np.newaxis].copy()
    conv = node.attributes(ConvAttributes)
    padded = pad_border(x, conv.padding, conv.border)
    taps = gather_taps(padded, filter_shape[2:], conv.stride, conv.dilation)
    extents = (len(x), *taps[0].shape[2:])
    positions = np.arange(np.prod(extents))
    if len(positions) > _MAX_WINDOWS:
        positions = np.random.default_rng(0).choice(positions, _MAX_WINDOWS, replace=False)
    sample, *place = np.unravel_index(positions, extents)
    chosen: tuple[AttributeValue, ...] = (sample, slice(None), *place)
    columns = np.stack([tap[chosen].T for tap in taps], axis=1)
    return columns.reshape(conv.groups, -1, len(positions))
