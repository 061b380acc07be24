"""Mixed precision: the cheapest widths of weights that lose no more than allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import UsageError
from nnef_hw.ir import Graph, Trait
from nnef_hw.quantize.calibrate import choose_widths, quantize
from nnef_hw.quantize.calibration.equalize import equalize
from nnef_hw.quantize.calibration.feature_scales import scale_features
from nnef_hw.quantize.calibration.observe import Progress
from nnef_hw.quantize.calibration.quality import Judge
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.importer import build_fixed

__all__ = ["Budget", "search_widths"]

WIDTHS = (6, 5, 4, 3, 2)
SENSITIVITY_SAMPLES = 64


@dataclass(frozen=True, slots=True)
class Budget:
    """The accuracy that a search may lose, and the costs of bits.

    Parameters
    ----------
    accuracy_drop
        Points of a hundred, see :meth:`~nnef_hw.quantize.calibration.quality.Judge.drop`.
    memory_bits
        Bits of weight memory that cost as much as the whole device; None: all weights do.
    multiplier_share
        Share of the multipliers whose size grows with the width of weights: those in logic.
    """

    accuracy_drop: float = 1.0
    memory_bits: int | None = None
    multiplier_share: float = 0.0


@dataclass(frozen=True, slots=True)
class _Step:
    """A reduction of a layer's weight width to ``bits``, and what it is worth."""

    layer: str
    bits: int
    worth: float


def search_widths(
    graph: Graph,
    calibration: Mapping[str, Array],
    validation: tuple[Mapping[str, Array], Array | None],
    scheme: Scheme,
    budget: Budget,
    progress: Progress | None = None,
) -> Scheme:
    """Return a scheme with a width of weights for every layer.

    Every layer alone is quantized with fewer bits, which gives the noise that each width costs in
    the outputs. Steps to fewer bits, sorted by noise per cost that they save, make a list of
    assignments, each cheaper than the one before. Bisection finds the last one of them whose drop
    on the validation samples, and a standard error more, is within the budget.

    Parameters
    ----------
    graph
        Graph of the canonical stage.
    calibration
        Inputs, one array [N, ...] per graph input.
    validation
        Other inputs, and their labels or None.
    scheme
        ``weight_bits`` are the most that a layer gets; layers of its own are left alone.

    Raises
    ------
    UsageError
        If even these widths lose more than the budget allows.
    SampleError
        If there are no samples to compare accuracies on.
    """
    if scheme.equalize:
        graph, scheme = equalize(graph), replace(scheme, equalize=False)
    scaled = scale_features(graph, calibration, scheme)
    graph, calibration = scaled.graph, scaled.samples
    judge = Judge(graph, scaled.taken(validation[0]), validation[1])
    drop, _ = judge.drop(quantize(graph, calibration, scheme, progress))
    if drop > budget.accuracy_drop:
        raise UsageError(
            f"{scheme.weight_bits}-bit weights alone lose {drop:.2f} points of {judge.what}, "
            f"but {budget.accuracy_drop:g} are allowed",
            remedy="allow a greater --accuracy-drop, or give wider --activation-bits",
        )
    steps = _steps(graph, calibration, scheme, budget, progress)
    kept, tried = 0, len(steps) + 1
    while tried - kept > 1:
        middle = (kept + tried) // 2
        if progress is not None:
            progress("searching widths", middle, len(steps))
        fixed = quantize(graph, calibration, _applied(scheme, steps[:middle]))
        if sum(judge.drop(fixed)) <= budget.accuracy_drop:
            kept = middle
        else:
            tried = middle
    return _applied(scheme, steps[:kept])


def _applied(scheme: Scheme, steps: list[_Step]) -> Scheme:
    layers = dict(scheme.layers)
    for step in steps:
        layers[step.layer] = {"weight_bits": step.bits}
    return replace(scheme, layers=layers)


def _steps(
    graph: Graph,
    calibration: Mapping[str, Array],
    scheme: Scheme,
    budget: Budget,
    progress: Progress | None,
) -> list[_Step]:
    """Return all steps; of each layer, only those on the lower hull of noise over bits."""
    widths = [bits for bits in WIDTHS if bits < scheme.weight_bits]
    params, others = choose_widths(graph, calibration, scheme, widths)
    judge = Judge(graph, {key: x[:SENSITIVITY_SAMPLES] for key, x in calibration.items()}, None)
    floor = judge.noise(build_fixed(graph, params))
    costs = _costs(graph, budget)
    free = [name for name in others if name not in scheme.layers]
    steps = []
    for number, name in enumerate(free, start=1):
        noise = {scheme.weight_bits: 0.0}
        for bits in widths:
            layers = {**params.layers, name: others[name][bits]}
            found = judge.noise(build_fixed(graph, replace(params, layers=layers)))
            noise[bits] = max(found - floor, 0.0)
        steps += _hull(name, noise, costs[name])
        if progress is not None:
            progress("measuring sensitivities", number, len(free))
    return sorted(steps, key=lambda step: step.worth)


def _hull(name: str, noise: Mapping[int, float], cost: float) -> list[_Step]:
    """Return steps from the widest to the narrowest, each with more noise per bit than before."""
    steps, bits = [], max(noise)
    while narrower := [b for b in noise if b < bits]:
        slopes = {b: (noise[b] - noise[bits]) / (bits - b) for b in narrower}
        best = min(narrower, key=lambda b: (slopes[b], b))
        steps.append(_Step(name, best, slopes[best] / cost))
        bits = best
    return steps


def _costs(graph: Graph, budget: Budget) -> dict[str, float]:
    """Return the cost of one bit of a layer's weights: memory, and multipliers by its share."""
    volumes: dict[str, int] = {}
    macs: dict[str, int] = {}
    for node in graph.nodes:
        if node.has(Trait.WEIGHTS):
            volumes[node.name] = graph.tensor(node.inputs[1]).volume
            pixels = int(np.prod(graph.tensor(node.name).shape[2:], dtype=np.int64))
            macs[node.name] = volumes[node.name] * pixels
    memory = budget.memory_bits or 8 * sum(volumes.values())
    multipliers = budget.multiplier_share / (8 * max(sum(macs.values()), 1))
    return {name: volumes[name] / memory + macs[name] * multipliers for name in volumes}
