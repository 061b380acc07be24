"""Other schemes for a network that lost its signal, tried on its own samples."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from shlex import quote

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import NnefHwError
from nnef_hw.ir import Graph, Trait
from nnef_hw.quantize.calibrate import quantize
from nnef_hw.quantize.calibration.equalize import equalize
from nnef_hw.quantize.calibration.scheme import CALIBRATIONS, Scheme
from nnef_hw.quantize.judgement.measure import Inputs, measure, sample_values, spread
from nnef_hw.quantize.judgement.warnings import Attempt
from nnef_hw.quantize.one_format import format_owners

__all__ = ["Trials", "try_calibrations", "try_others"]

SECONDS = 30.0
"""After so long no further scheme is tried."""
MOST_SAMPLES = 64
LEAST_SAMPLES = 8
JUDGED_SHARE = 4
"""How many times as many samples judge as calibrate: accuracy needs more."""
MOST_VALUES = 1 << 24
"""Numbers of all samples together: large networks are tried on fewer samples."""
WIDE = 16
GAIN_DB = 1.0
"""By how much less noise a scheme has to have to be named."""


@dataclass(frozen=True, slots=True)
class Trials:
    """Schemes that were tried, and the best of them.

    Parameters
    ----------
    attempts
        The present scheme first.
    best
        The attempt to take; None if none helps.
    samples
        How many samples they were judged by.
    """

    attempts: tuple[Attempt, ...]
    best: Attempt | None
    samples: int


def try_others(
    graph: Graph,
    scheme: Scheme,
    layer: str,
    calibration: Inputs,
    judged: tuple[Inputs, Array | None],
    check: Callable[[Graph], None] = lambda fixed: None,
) -> Trials:
    """Quantize a network by other schemes, and say which one to take.

    That is the cheapest one with which nothing is to be warned of: other ranges and scales cost
    nothing, wider codes of some activations less than those of all. If there is none, the one with
    the least noise. For at most 30 seconds further ones are begun, on 64 samples at most, on 8 to
    63 of networks that compute more than 262,144 numbers for each; four times as many judge.

    Parameters
    ----------
    graph
        The network, canonical.
    layer
        The layer that the figures are of.
    calibration, judged
        Samples that calibrate, and those with their labels that the results are compared on.
    check
        Raises an error for a fixed graph that cannot be built.
    """
    trial = _Trial(graph, layer, calibration, judged, check)
    trial.run(_Other(0, "", scheme))
    for other in (*_calibrations(scheme), *_others(graph, scheme, layer)):
        trial.run(other)
    free = _least_noise([each for each in trial.tried[1:] if not each.other.cost])
    if free is not None and scheme.activation_bits < WIDE and all(x.is_poor for x in trial.tried):
        both = replace(free.other.scheme, activation_bits=WIDE)
        trial.run(_Other(3, f"{free.other.option} --activation-bits {WIDE}", both))
    return trial.result(GAIN_DB)


def try_calibrations(
    graph: Graph,
    scheme: Scheme,
    layer: str,
    calibration: Inputs,
    judged: tuple[Inputs, Array | None],
    gain: float,
) -> Trials:
    """Quantize a network that is not poor by the other calibrations, as :func:`try_others` does.

    One is named only if its results have so many dB less noise.
    """
    trial = _Trial(graph, layer, calibration, judged, lambda fixed: None)
    trial.run(_Other(0, "", scheme))
    for other in _calibrations(scheme):
        trial.run(other)
    return trial.result(gain)


@dataclass(frozen=True, slots=True)
class _Other:
    """A scheme, the rank of what it costs in hardware, and the words that ask for it."""

    cost: int
    option: str
    scheme: Scheme


@dataclass(frozen=True, slots=True)
class _Tried:
    """A scheme and what it gives."""

    other: _Other
    attempt: Attempt
    is_poor: bool

    @property
    def rank(self) -> tuple[float, float]:
        """Signal to noise of results, and of the layer; without noise infinite."""
        both = self.attempt.results_db, self.attempt.layer_db
        return _noise(both[0]), _noise(both[1])


class _Trial:
    """Schemes tried on some samples, the present one first."""

    def __init__(
        self,
        graph: Graph,
        layer: str,
        calibration: Inputs,
        judged: tuple[Inputs, Array | None],
        check: Callable[[Graph], None],
    ) -> None:
        most = MOST_VALUES // max(1, sample_values(graph, calibration))
        count = max(LEAST_SAMPLES, min(MOST_SAMPLES, most))
        inputs, labels = judged
        self._graph, self._layer, self._check = graph, layer, check
        self._calibration = spread(calibration, count)
        count *= JUDGED_SHARE
        self._inputs = spread(inputs, count)
        self._labels = None if labels is None else spread({"labels": labels}, count)["labels"]
        self._end = time.monotonic() + SECONDS
        self.tried: list[_Tried] = []

    def run(self, other: _Other) -> None:
        """Quantize by a scheme, unless there is no time left, or it cannot be built."""
        if self.tried and time.monotonic() > self._end:
            return
        graph, scheme = self._graph, other.scheme
        if scheme.equalize:
            graph, scheme = equalize(graph), replace(scheme, equalize=False)
        try:
            fixed = quantize(graph, self._calibration, scheme)
            if other.option:
                self._check(fixed)
        except NnefHwError:
            return
        found = measure(graph, fixed, self._inputs, self._labels)
        layer_db = found.noise.get(self._layer)
        attempt = Attempt(other.option, layer_db, found.results_db, found.fixed)
        self.tried.append(_Tried(other, attempt, found.is_poor))

    def result(self, gain: float) -> Trials:
        """Return all trials; a scheme is named if it gains so many dB, or nothing is poor."""
        attempts = tuple(each.attempt for each in self.tried)
        best = _best(self.tried, gain)
        samples = len(next(iter(self._inputs.values())))
        return Trials(attempts, None if best is None else best.attempt, samples)


def _calibrations(scheme: Scheme) -> Iterator[_Other]:
    for name in CALIBRATIONS:
        if name != scheme.calibration:
            yield _Other(0, f"--calibration {name}", replace(scheme, calibration=name))


def _others(graph: Graph, scheme: Scheme, layer: str) -> Iterator[_Other]:
    """Yield schemes that differ in one thing."""
    if equalize(graph) is not graph:
        yield _Other(0, "--equalize", replace(scheme, equalize=True))
    if not scheme.per_channel:
        yield _Other(0, "--set per_channel=true", replace(scheme, per_channel=True))
    if scheme.power_of_two:
        yield _Other(0, "--set power_of_two=false", replace(scheme, power_of_two=False))
    if scheme.symmetric:
        yield _Other(0, "--set symmetric=false", replace(scheme, symmetric=False))
    names = [name for name in _formats_of(graph, layer) if scheme.of(name).activation_bits < WIDE]
    if names:
        layers = {
            **scheme.layers,
            **{n: {**scheme.layers.get(n, {}), "activation_bits": WIDE} for n in names},
        }
        option = " ".join(f"--set {quote(n)}.activation_bits={WIDE}" for n in names)
        yield _Other(1, option, replace(scheme, layers=layers))
    if scheme.activation_bits < WIDE:
        yield _Other(2, f"--activation-bits {WIDE}", replace(scheme, activation_bits=WIDE))
    if scheme.weight_bits < 8:
        yield _Other(2, "--weight-bits 8", replace(scheme, weight_bits=8))


def _formats_of(graph: Graph, layer: str) -> list[str]:
    """Return the activations that decide the formats that a layer reads and gives."""
    owners = format_owners(graph)
    node = graph.producer(layer)
    names = []
    for name in (layer, *(() if node is None else node.inputs)):
        if graph.tensor(name).data is None:
            while (before := graph.producer(name)) and before.has(Trait.KEEPS_FORMAT):
                name = before.inputs[0]
            names.append(owners.get(name, name))
    return list(dict.fromkeys(names))


def _least_noise(tried: list[_Tried]) -> _Tried | None:
    return max(tried, key=lambda each: each.rank, default=None)


def _best(tried: list[_Tried], gain: float) -> _Tried | None:
    if len(tried) < 2:
        return None
    present, *others = tried
    good = [each for each in others if not each.is_poor]
    if present.is_poor and good:
        cheapest = min(each.other.cost for each in good)
        return _least_noise([each for each in good if each.other.cost == cheapest])
    best = _least_noise(others)
    return best if best is not None and best.rank[0] >= present.rank[0] + gain else None


def _noise(decibels: float | None) -> float:
    return math.inf if decibels is None else decibels
