"""Warnings of a quantized network: what it loses, where it begins, and what helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir import Graph
from nnef_hw.quantize.calibrate import quantize
from nnef_hw.quantize.calibration.scheme import Scheme
from nnef_hw.quantize.judgement.attempts import (
    SECONDS,
    Trials,
    try_calibrations,
    try_others,
)
from nnef_hw.quantize.judgement.measure import LEAST_DB, Inputs, Measured, measure
from nnef_hw.quantize.judgement.warnings import QualityWarning

__all__ = ["LOSSES", "explain", "judge_network", "loss_warnings", "with_remedies"]

LOSSES = ("noise", "accuracy")
"""Kinds of warnings of what quantization loses."""
ENOUGH_DB = 40.0
"""Signal to noise of results above which no other calibration is tried."""
MANY_LABELS = 100
"""Labels from which on an accuracy that is kept is enough."""
CALIBRATION_GAIN_DB, FEW_GAIN_DB = 1.5, 0.5
"""What another calibration has to gain to be named; of fewer than 100 samples less, since values
that are still to come saturate more than those that are seen."""
QUICK_SECONDS = 5.0
"""A network that takes longer to quantize is not calibrated again if it is not poor."""
MANY_SAMPLES = 250
"""Samples from which on a fifth of them calibrates."""
SAMPLES_GAIN_DB = 2.0
"""What calibrating with all samples has to gain to be worth a warning."""
LEAST_LABELS = 50
"""Labels from which on it is told whether the real network knows the samples."""


def judge_network(
    canonical: Graph,
    fixed: Graph,
    scheme: Scheme,
    calibration: Inputs,
    judged: tuple[Inputs, Array | None],
    *,
    seconds: float = 0.0,
    check: Callable[[Graph], None] = lambda fixed: None,
) -> list[QualityWarning]:
    """Return warnings of a network that loses too much, with other schemes tried on it.

    Parameters
    ----------
    scheme
        What it was quantized by.
    calibration, judged
        Samples that calibrated, and those with their labels that it is compared on.
    seconds
        How long the quantization took; a network that took over 30 is not quantized again.
    check
        Raises an error for a fixed graph that cannot be built.
    """
    inputs, labels = judged
    found = measure(canonical, fixed, inputs, labels)
    warnings = loss_warnings(canonical, found, labels)
    layer = _layer(canonical, found)
    if layer is None or seconds > SECONDS:
        return warnings
    if found.is_poor:
        trials = try_others(canonical, scheme, layer, calibration, judged, check)
        return [explain(warning, trials) for warning in warnings]
    if _may_gain(found) and seconds <= QUICK_SECONDS:
        given = sum(len(next(iter(x.values()))) for x in (calibration, inputs))
        gain = CALIBRATION_GAIN_DB if given >= MANY_LABELS else FEW_GAIN_DB
        trials = try_calibrations(canonical, scheme, layer, calibration, judged, gain)
        better = _of_calibration(layer, scheme, found, trials, gain)
        warnings += better or _of_more_samples(canonical, scheme, found, calibration, judged)
    return warnings


def _of_more_samples(
    canonical: Graph,
    scheme: Scheme,
    found: Measured,
    calibration: Inputs,
    judged: tuple[Inputs, Array | None],
) -> list[QualityWarning]:
    """Return the warning that samples which do not calibrate show ranges that the others lack.

    Only of few samples: of many so many calibrate that they do not.
    """
    inputs, labels = judged
    used, kept = (len(next(iter(x.values()))) for x in (calibration, inputs))
    are_same = used == kept and all(np.array_equal(x, inputs[n]) for n, x in calibration.items())
    if are_same or used + kept >= MANY_SAMPLES or found.results_db is None:
        return []
    every = {name: np.concatenate([x, inputs[name]]) for name, x in calibration.items()}
    best = measure(canonical, quantize(canonical, every, scheme), inputs, labels).results_db
    if best is None or best < found.results_db + SAMPLES_GAIN_DB:
        return []
    return [
        QualityWarning(
            "samples",
            f"{used} samples calibrate and results have {found.results_db:.1f} dB of signal to "
            f"noise; with the other {kept} as well they would have {best:.1f} dB",
            f"give {MANY_SAMPLES} or more representative inputs",
            figures={"samples": used, "results_db": found.results_db, "best_db": best},
        )
    ]


def _may_gain(found: Measured) -> bool:
    """Whether a network that is not poor may be worth another calibration."""
    noise = found.results_db
    knows_accuracy = found.real is not None and found.labels >= MANY_LABELS
    return not knows_accuracy and noise is not None and noise < ENOUGH_DB


def _of_calibration(
    layer: str, scheme: Scheme, found: Measured, trials: Trials, gain: float
) -> list[QualityWarning]:
    """Return the warning that another calibration is better, also than with all samples."""
    best, now = trials.best, found.results_db
    if best is None or now is None or best.results_db is None:
        return []
    if best.results_db < now + gain:
        return []
    return [
        QualityWarning(
            "calibration",
            f"results have {now:.1f} dB of signal to noise by the calibration "
            f"{scheme.calibration}, and {best.results_db:.1f} dB by another one",
            f"give {best.option}", layer,
            {"results_db": now, "best_db": best.results_db},
            trials.attempts, trials.samples,
        )
    ]  # fmt: skip


def loss_warnings(canonical: Graph, found: Measured, labels: Array | None) -> list[QualityWarning]:
    """Return warnings of what was measured, without a remedy."""
    warnings = []
    if labels is not None and found.real is not None and found.labels >= LEAST_LABELS:
        common = float(np.bincount(labels.reshape(-1)).max()) / labels.size
        if found.real <= common:
            warnings.append(
                QualityWarning(
                    "range",
                    f"the real network itself has an accuracy of {found.real:.2%} on "
                    f"{found.labels} samples, of which {common:.2%} have the same label",
                    "look how samples have to be scaled and their axes ordered",
                    figures={"float": found.real, "commonest": common, "samples": found.labels},
                )
            )
    layer = _layer(canonical, found)
    if not found.is_poor or layer is None:
        return warnings
    figures: dict[str, float | None] = {
        "layer_db": found.noise[layer], "results_db": found.results_db,
        "float": found.real, "fixed": found.fixed, "samples": found.samples,
    }  # fmt: skip
    results = "" if found.results_db is None else f" and its results {found.results_db:.1f} dB"
    scores = ""
    if found.real is not None and found.fixed is not None:
        scores = (
            f"accuracy is {found.fixed:.2%} and in float {found.real:.2%} on {found.labels} samples"
        )
    if found.first_lost is not None:
        text = (
            f"layer {layer!r} is the first below {LEAST_DB:g} dB of signal to noise: it has "
            f"{found.noise[layer]:.1f} dB{results}"
        )
        kind = "noise"
        text += f"; {scores}" if scores else ""
    else:
        kind = "accuracy"
        text = (
            f"quantization costs {found.lost_points:.2f} points: {scores}; layer {layer!r} loses "
            f"most against what it reads: it has {found.noise[layer]:.1f} dB{results}"
        )
    return [*warnings, QualityWarning(kind, text, "", layer, figures)]


def explain(warning: QualityWarning, trials: Trials | None) -> QualityWarning:
    """Return a warning of a loss with what was tried against it."""
    if warning.kind not in LOSSES or trials is None or len(trials.attempts) < 2:
        return warning
    best = trials.best
    remedy = f"give {best.option}" if best is not None else "none of these other ways helps"
    return replace(
        warning, remedy=remedy, attempts=trials.attempts, samples=trials.samples
    )  # fmt: skip


def with_remedies(
    warnings: Sequence[QualityWarning], known: Sequence[QualityWarning]
) -> list[QualityWarning]:
    """Return warnings with the remedies of those that are known of the same network."""
    tried = next((each for each in known if each.attempts), None)
    if tried is None:
        return list(warnings)
    return [
        replace(each, remedy=tried.remedy, attempts=tried.attempts, samples=tried.samples)
        if each.kind in LOSSES and each.layer == tried.layer
        else each
        for each in warnings
    ]


def _layer(graph: Graph, found: Measured) -> str | None:
    """Return the layer that loses first; if none does, the one that loses most of what it reads."""
    if found.first_lost is not None:
        return found.first_lost
    losses = {}
    for name, value in found.noise.items():
        node = graph.producer(name)
        if value is not None and node is not None:
            read = [x for n in node.inputs if (x := found.noise.get(n)) is not None]
            losses[name] = min(read, default=0.0) - value
    return max(losses, key=lambda name: losses[name], default=None)
