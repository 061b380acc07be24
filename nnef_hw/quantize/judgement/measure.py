"""Losses of a fixed network against the real one: signal to noise by layer, and accuracy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph, Node, Stage, Trait
from nnef_hw.ir.input_readers import moved_features
from nnef_hw.quantize.calibration.quality import Judge
from nnef_hw.reference import (
    decibels,
    dequantize_outputs,
    quantize_inputs,
    trace_fixed,
    trace_float,
)
from nnef_hw.reference.visible import EVERYTHING, comparable, visible_intervals

__all__ = [
    "LEAST_DB",
    "NOISE_SAMPLES",
    "Measured",
    "computed_results",
    "cut",
    "layer_noise",
    "measure",
    "sample_values",
    "spread",
]

LEAST_DB = 10.0
"""Signal to noise below which a layer is said to lose its signal."""
LEAST_POINTS = 1.0
"""Points of accuracy from which on a loss is said."""
LEAST_LOST = 2
"""Samples that have to be lost: one of few is many points."""
NOISE_SAMPLES = 64
CHUNK = 16
CHUNK_VALUES = 1 << 24
"""Numbers of all layers that are held at a time."""

Inputs = Mapping[str, Array]


@dataclass(frozen=True, slots=True)
class Measured:
    """Quality of a fixed network.

    Parameters
    ----------
    noise
        Signal to noise of layers in dB, in their order; None without signal or noise.
    results
        Layers that compute the outputs and have a signal to noise.
    samples
        How many samples the noise is of.
    real, fixed
        Accuracies (0..1); None without labels that are classes.
    labels
        How many labels these are of.
    """

    noise: Mapping[str, float | None]
    results: tuple[str, ...]
    samples: int
    real: float | None = None
    fixed: float | None = None
    labels: int = 0

    @property
    def results_db(self) -> float | None:
        """Least signal to noise of a result in dB."""
        known = (self.noise[name] for name in self.results)
        return min((value for value in known if value is not None), default=None)

    @property
    def first_lost(self) -> str | None:
        """The first layer that loses its signal."""
        return next((n for n, x in self.noise.items() if x is not None and x < LEAST_DB), None)

    @property
    def lost_points(self) -> float:
        """Points of accuracy that are lost; 0 if they are few, or of one sample."""
        if self.real is None or self.fixed is None:
            return 0.0
        lost = self.real - self.fixed
        is_more = round(lost * self.labels) >= LEAST_LOST and 100 * lost > LEAST_POINTS
        return 100 * lost if is_more else 0.0

    @property
    def is_poor(self) -> bool:
        """Whether there is anything to warn of."""
        return self.first_lost is not None or self.lost_points > 0


def measure(
    canonical: Graph, fixed: Graph, inputs: Inputs, labels: Array | None = None
) -> Measured:
    """Measure the losses of a fixed network against the real one.

    Noise is that of the first 64 samples.
    """
    noise = layer_noise(canonical, fixed, cut(inputs, NOISE_SAMPLES))
    results = computed_results(fixed, noise)
    count = len(next(iter(inputs.values())))
    real, found, scored = None, None, 0
    if labels is not None and np.issubdtype(labels.dtype, np.integer):
        real, found = Judge(canonical, inputs, labels).accuracies(fixed)
        scored = labels.size
    return Measured(noise, results, min(count, NOISE_SAMPLES), real, found, scored)


def computed_results(fixed: Graph, noise: Mapping[str, float | None]) -> tuple[str, ...]:
    """Return the layers with a noise that outputs come from, which may reshape them."""
    found = []
    for name in fixed.outputs:
        while (node := fixed.producer(name)) is not None and node.has(Trait.RESHAPES):
            name = node.inputs[0]
        if name in noise:
            found.append(name)
    return tuple(dict.fromkeys(found))


def layer_noise(canonical: Graph, fixed: Graph, inputs: Inputs) -> dict[str, float | None]:
    """Return the signal to noise ratio of every layer's result in dB."""
    assert canonical.stage != Stage.FIXED
    powers: dict[str, NDArray[np.float64]] = {}
    moved = moved_features(fixed)
    layers = [node.name for node in fixed.nodes if _has_noise(node) and node.name not in moved]
    chunk = max(1, min(CHUNK, CHUNK_VALUES // max(1, sample_values(canonical, inputs))))
    for start in range(0, len(next(iter(inputs.values()))), chunk):
        part = {name: x[start : start + chunk] for name, x in inputs.items()}
        real = trace_float(canonical, part)
        codes = trace_fixed(fixed, quantize_inputs(fixed, part, warns=False))
        visible = visible_intervals(canonical, real)
        for name in layers:
            if name in real:
                qtype = fixed.tensor(name).qtype
                assert qtype is not None, name
                limits = tuple(qtype.dequantize([qtype.lo, qtype.hi]).tolist())
                found = dequantize_outputs(fixed, {name: codes[name]})[name]
                found = found.reshape(real[name].shape)
                signal = comparable(real[name], found, visible.get(name, EVERYTHING), limits)
                power = [np.square(signal).sum(), np.square(signal - found).sum()]
                powers[name] = powers.get(name, np.zeros(2)) + power
    return {name: decibels(*power) for name, power in powers.items()}


def _has_noise(node: Node) -> bool:
    return not (node.has(Trait.RESHAPES) or node.has(Trait.INDEX))


def cut(inputs: Inputs, count: int) -> dict[str, Array]:
    """Return the first samples."""
    return {name: x[:count] for name, x in inputs.items()}


def spread(inputs: Inputs, count: int) -> dict[str, Array]:
    """Return some samples, spread evenly: many files are sorted."""
    total = len(next(iter(inputs.values())))
    chosen = np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(np.intp))
    return {name: x[chosen] for name, x in inputs.items()}


def sample_values(graph: Graph, inputs: Inputs) -> int:
    """Return how many numbers a real network computes for a sample."""
    steps = 1
    if graph.is_sequential:
        steps = next(iter(inputs.values())).shape[1]
    return steps * sum(
        graph.steps(name) * math.prod(tensor.shape)
        for name, tensor in graph.tensors.items()
        if tensor.data is None
    )
