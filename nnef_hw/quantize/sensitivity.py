"""Sensitivity of a network's results to the widths of each layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import NnefHwError
from nnef_hw.ir import Graph
from nnef_hw.quantize.calibrate import choose_params, choose_widths
from nnef_hw.quantize.calibration.feature_scales import scale_features
from nnef_hw.quantize.calibration.observe import Progress
from nnef_hw.quantize.calibration.quality import Judge
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.importer import build_fixed

__all__ = ["NARROW", "WIDE", "LayerSensitivity", "Sensitivities", "sensitivities"]

NARROW, WIDE = 4, 16
"""Bits of weights, and of a layer's codes, that are tried."""
MOST_SAMPLES = 64


@dataclass(frozen=True, slots=True)
class LayerSensitivity:
    """Signal to noise of a network's results with another width of one layer alone.

    Parameters
    ----------
    name
        The layer.
    narrow_db
        With weights of 4 bits; None if it has no more now, or the results have no noise.
    wide_db
        With codes of 16 bits; None if it has them now, or no hardware has them there.
    """

    name: str
    narrow_db: float | None
    wide_db: float | None


@dataclass(frozen=True, slots=True)
class Sensitivities:
    """Signal to noise of a network's results, as it is quantized and with other widths.

    Parameters
    ----------
    results_db
        As it is quantized; None without noise.
    samples
        How many samples that is of.
    layers
        Layers whose weights are quantized here, in their order.
    """

    results_db: float | None
    samples: int
    layers: tuple[LayerSensitivity, ...]

    @property
    def cheapest(self) -> LayerSensitivity | None:
        """The layer with which weights of 4 bits cost least."""
        known = [x for x in self.layers if x.narrow_db is not None]
        return max(known, key=lambda x: x.narrow_db or 0.0, default=None)

    @property
    def best(self) -> LayerSensitivity | None:
        """The layer with which codes of 16 bits gain most; None if none gains anything."""
        now = math.inf if self.results_db is None else self.results_db
        known = [x for x in self.layers if x.wide_db is not None and x.wide_db > now]
        return max(known, key=lambda x: x.wide_db or 0.0, default=None)


def sensitivities(
    graph: Graph,
    calibration: Mapping[str, Array],
    judged: Mapping[str, Array],
    scheme: Scheme,
    progress: Progress | None = None,
    check: Callable[[Graph], None] = lambda fixed: None,
) -> Sensitivities:
    """Quantize a network once for each layer with weights of 4 bits, and with codes of 16.

    Parameters
    ----------
    graph
        Graph of the canonical stage, whose scales are equalized if that is wanted.
    calibration, judged
        Inputs that calibrate, and those that the results are compared on: 64 at most.
    scheme
        The widths of all other layers.
    check
        Raises an error for a fixed graph that cannot be built.
    """
    scaled = scale_features(graph, calibration, scheme)
    graph, calibration = scaled.graph, scaled.samples
    samples = {name: x[:MOST_SAMPLES] for name, x in judged.items()}
    judge = Judge(graph, scaled.taken(samples), None)
    params, others = choose_widths(graph, calibration, scheme, [NARROW])

    def narrow(name: str) -> float | None:
        if scheme.of(name).weight_bits <= NARROW:
            return None
        layers = {**params.layers, name: others[name][NARROW]}
        return _decibels(judge.noise(build_fixed(graph, replace(params, layers=layers))))

    def wide(name: str) -> float | None:
        if scheme.of(name).activation_bits >= WIDE:
            return None
        own = {**scheme.layers.get(name, {}), "activation_bits": WIDE}
        wider = replace(scheme, layers={**scheme.layers, name: own})
        try:
            fixed = build_fixed(graph, choose_params(graph, calibration, wider))
            check(fixed)
        except NnefHwError:
            return None
        return _decibels(judge.noise(fixed))

    found = []
    for number, name in enumerate(others, start=1):
        found.append(LayerSensitivity(name, narrow(name), wide(name)))
        if progress is not None:
            progress("measuring sensitivities", number, len(others))
    now = _decibels(judge.noise(build_fixed(graph, params)))
    return Sensitivities(now, len(next(iter(samples.values()))), tuple(found))


def _decibels(noise: float) -> float | None:
    return -10 * math.log10(noise) if noise > 0 else None
