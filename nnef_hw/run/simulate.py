"""Checks of the hardware against the model, and of the model's quality: ``sim``, ``compare``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.architecture import AcceleratorPlan
from nnef_hw.architectures import find_architecture
from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import CheckError, UsageError
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import sample_extents
from nnef_hw.quantize.judgement.diagnosis import loss_warnings, with_remedies
from nnef_hw.quantize.judgement.measure import (
    NOISE_SAMPLES,
    Measured,
    computed_results,
    layer_noise,
    measure,
)
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import (
    Drift,
    dequantize_outputs,
    quantize_inputs,
    run_fixed,
    run_float,
    trace_fixed,
    trace_float,
)
from nnef_hw.report.model.checks import (
    Accuracy,
    BuildComparison,
    BuildScores,
    LayerNoise,
    Simulation,
    WorstSample,
)
from nnef_hw.report.model.conversion import from_json
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.rtl import RtlOutcome, Trace, run_rtl
from nnef_hw.run.trace import TRACED_FRAMES, announce_trace, layer_scopes, traced
from nnef_hw.samples.samples import Given, Samples, take_samples
from nnef_hw.samples.scoring import Score, confusion, labelled, score, worst

__all__ = [
    "accuracies",
    "compare",
    "found_losses",
    "layer_quality",
    "losses_of_build",
    "random_codes",
    "require_equal",
    "require_exact",
    "simulate",
    "simulation_row",
]

RANDOM_FRAMES = 16


def random_codes(graph: Graph, frames: int = RANDOM_FRAMES) -> dict[str, NDArray[np.int64]]:
    """Seeded codes over the whole input range, for builds without samples.

    Of a network with states they are two sequences, which together have so many steps.
    """
    rng = np.random.default_rng(0)
    codes = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        assert tensor.qtype is not None
        count = (2, max(1, frames // 2)) if graph.is_sequential else (frames,)
        shape = (*count, *sample_extents(tensor.shape))
        codes[name] = rng.integers(tensor.qtype.lo, tensor.qtype.hi + 1, shape)
    return codes


def simulation_row(
    plan: AcceleratorPlan,
    outcome: RtlOutcome,
    expected: Mapping[str, NDArray[np.int64]],
    *,
    stall: float = 0.0,
    available: int | None = None,
) -> Simulation:
    """Compare a simulation with the model's codes, and its cycles with those of the plan.

    ``available`` is how many samples there were, if not all were simulated. The predicted
    cycles are those of a run of so many frames without stalls, with which a simulation is compared;
    the steady ones are the plan's, which short runs do not reach. The frames of a network with
    states are steps; every sequence is a run of its own.
    """
    steps = outcome.steps or 1
    wrong = np.any(
        [
            (outcome.codes[name] != codes).reshape(outcome.frames, -1).any(axis=1)
            for name, codes in expected.items()
        ],
        axis=0,
    )
    predicted: int | None = plan.interval
    if not stall:
        frames = outcome.steps or len(wrong)
        predicted = find_architecture(plan.arch).predict_interval(plan, frames)
    return Simulation(
        frames=len(wrong),
        frames_given=len(wrong) if available is None else available * steps,
        bit_exact=not wrong.any(),
        mismatches=int(wrong.sum()),
        cycles_per_inference=outcome.interval,
        latency_cycles=outcome.latency,
        predicted_cycles_per_inference=predicted,
        predicted_latency_cycles=plan.latency,
        steady_cycles_per_inference=plan.interval,
        stall=stall,
        cycles=outcome.cycles,
        cycles_per_second=round(outcome.cycles_per_second),
    )


def require_exact(found: Simulation) -> None:
    """Fail a simulation whose results, or cycles in a run without stalls, differ from the model's.

    Raises
    ------
    CheckError
        If they differ; the message says what differs.
    """
    require_equal(found.mismatches, found.frames)
    if found.stall:
        return
    for name, cycles, predicted in (
        ("latency_cycles", found.latency_cycles, found.predicted_latency_cycles),
        (
            "cycles_per_inference",
            found.cycles_per_inference,
            found.predicted_cycles_per_inference,
        ),
    ):
        if cycles != predicted:
            raise CheckError(
                f"simulated {name} {cycles} differ from the predicted {predicted}",
                remedy="please report this with the model: the schedule's timing model is wrong",
            )


def require_equal(mismatches: int, frames: int) -> None:
    """Fail if the hardware's outputs are not those of the fixed-point model.

    Raises
    ------
    CheckError
        If frames differ; the message says how many.
    """
    if mismatches:
        raise CheckError(
            f"{mismatches} of {frames} frames differ from the fixed-point model",
            remedy="please report this with the model: it is a defect of the generated hardware",
        )


def simulate(
    build: BuildFolder,
    given: Given | None = None,
    *,
    limit: int | None = None,
    stall: float = 0.0,
    trace: Path | None = None,
    trace_frames: int | None = None,
    trace_layers: Sequence[str] = (),
) -> Simulation:
    """Run samples (or seeded random frames) through a build's Verilog, against the fixed model.

    Parameters
    ----------
    given
        Samples, see :func:`~nnef_hw.samples.samples.take_samples`.
    trace
        Waveform of the first ``trace_frames`` frames, and of some layers only if they are named.

    Raises
    ------
    UsageError
        If ``limit``, ``stall`` or the options of the waveform make no sense.
    OutputError
        If the waveform cannot be written, or its disk has too little space.
    """
    if limit is not None and limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    if not 0 <= stall < 1:
        raise UsageError(f"--stall must be in 0..1 (1 excluded), not {stall:g}")
    if trace is None and (trace_layers or trace_frames is not None):
        raise UsageError(
            "--trace-frames and --trace-layers need a waveform", remedy="give --trace FILE, too"
        )
    graph = build.fixed
    if given is None:
        codes = random_codes(graph, min(limit or RANDOM_FRAMES, RANDOM_FRAMES))
    else:
        samples = take_samples(given, graph)
        codes = quantize_inputs(graph, samples[: limit or len(samples)].inputs)
    verilog, top = build.simulated
    if trace is None:
        outcome = run_rtl(verilog, build.plan, graph, codes, top=top, stall=stall)
        return simulation_row(build.plan, outcome, run_fixed(graph, codes), stall=stall)
    frames = min(trace_frames or TRACED_FRAMES, len(codes[graph.inputs[0]]))
    scopes = layer_scopes(build, trace_layers)
    with traced(trace) as partial:
        wanted = Trace(partial, frames, scopes)
        if frames > TRACED_FRAMES:
            announce_trace(build, codes, wanted, trace)
        outcome = run_rtl(verilog, build.plan, graph, codes, top=top, stall=stall, trace=wanted)
    return replace(
        simulation_row(build.plan, outcome, run_fixed(graph, codes), stall=stall),
        trace=str(trace),
        trace_frames=frames,
        trace_bytes=trace.stat().st_size,
    )


def accuracies(
    canonical: Graph | None,
    fixed: Graph,
    samples: Samples,
    rtl_codes: Mapping[str, NDArray[np.int64]],
    calibration_samples: int,
    simulated: NDArray[np.intp] | None = None,
    *,
    positions: NDArray[np.intp] | None = None,
    calibrated: bool = False,
) -> Accuracy | None:
    """Score float, fixed and RTL against the labels, by the first output; None without labels.

    And say which classes the fixed network confuses, and which samples are worst.

    Parameters
    ----------
    simulated
        Positions of the samples that the RTL's codes are of, if not of all.
    positions
        Numbers of the samples in their file, if it has others.
    calibrated
        Whether these samples are those that calibrated, too.
    """
    if samples.labels is None:
        return None
    name = fixed.outputs[0]
    fixed_codes = run_fixed(fixed, quantize_inputs(fixed, samples.inputs))
    labels = samples.labels if simulated is None else samples.labels[simulated]

    def scored(outputs: Array, expected: Array) -> Score:
        return score(*labelled(fixed, outputs, expected))

    judged = labelled(fixed, dequantize_outputs(fixed, fixed_codes)[name], samples.labels)
    fixed_score = score(*judged)
    rtl, equal = None, None
    if len(labels):
        rtl = scored(dequantize_outputs(fixed, rtl_codes)[name], labels).value
        same = fixed_codes[name] if simulated is None else fixed_codes[name][simulated]
        equal = bool(np.array_equal(rtl_codes[name], same))
    real = None
    if canonical is not None:
        real = scored(run_float(canonical, samples.inputs)[name], samples.labels).value
    numbers = np.arange(len(samples)) if positions is None else positions
    return Accuracy(
        metric=fixed_score.kind,
        samples=len(samples),
        calibration_samples=calibration_samples,
        calibrated=calibrated,
        rtl_samples=len(labels),
        rtl_equal=equal,
        float=real,
        fixed=fixed_score.value,
        rtl=rtl,
        confusion=confusion(*judged),
        worst=from_json(worst(*judged, numbers), tuple[WorstSample, ...]),
    )


def compare(build: BuildFolder, given: Given) -> BuildComparison:
    """Compare float, fixed and RTL: bit-exactness on all samples, accuracy, SQNR per layer.

    Accuracy is of those samples that calibration does not take, or of all if there are so few that
    it takes all. SQNR is measured on the first of those.
    """
    fixed, canonical = build.fixed, build.canonical
    samples = take_samples(given, fixed)
    codes = quantize_inputs(fixed, samples.inputs)
    verilog, top = build.simulated
    outcome = run_rtl(verilog, build.plan, fixed, codes, top=top)
    found = simulation_row(build.plan, outcome, run_fixed(fixed, codes))
    is_float = canonical is not None
    mask = samples.evaluation_mask() if is_float else np.ones(len(samples), bool)
    calibration = int(samples.calibration_mask().sum()) if is_float else 0
    scored = accuracies(
        canonical, fixed, samples[mask], {name: x[mask] for name, x in outcome.codes.items()},
        calibration, positions=np.flatnonzero(mask), calibrated=is_float and samples.are_few,
    )  # fmt: skip
    judged = samples[mask][:NOISE_SAMPLES]
    layers = layer_quality(canonical, fixed, judged)
    noise = {layer.name: layer.sqnr_db for layer in layers}
    losses = found_losses(canonical, fixed, noise, scored, int(mask.sum()))
    marks = None if scored is None else BuildScores(scored.float, scored.fixed, scored.rtl)
    is_class = scored is not None and scored.metric == "accuracy"
    return BuildComparison(
        samples=len(samples),
        bit_exact=found.bit_exact,
        mismatches=found.mismatches,
        calibration_samples=calibration,
        evaluation_samples=int(mask.sum()),
        calibrated=is_float and samples.are_few,
        accuracy=marks if is_class else None,
        mae=None if is_class else marks,
        layers=layers,
        steps=_step_quality(canonical, fixed, judged),
        warnings=tuple(with_remedies(losses, known_warnings(build))),
    )


def layer_quality(
    canonical: Graph | None, fixed: Graph, samples: Samples
) -> tuple[LayerNoise, ...]:
    """Return the signal to quantization noise ratio of every layer's result."""
    if canonical is None:
        return ()
    noise = layer_noise(canonical, fixed, samples.inputs)
    return tuple(
        LayerNoise(node.name, node.op, noise[node.name])
        for node in fixed.nodes
        if node.name in noise
    )


def found_losses(
    canonical: Graph | None,
    fixed: Graph,
    noise: Mapping[str, float | None],
    accuracy: Accuracy | None,
    samples: int,
) -> list[QualityWarning]:
    """Return warnings of what was measured already.

    Parameters
    ----------
    noise
        Signal to noise in dB, by layer in their order.
    accuracy
        What :func:`accuracies` returns.
    samples
        How many samples these are of.
    """
    if canonical is None:
        return []
    real = found = None
    if accuracy is not None and accuracy.metric == "accuracy":
        real, found = accuracy.float, accuracy.fixed
    results = computed_results(fixed, noise)
    measured = Measured(noise, results, min(samples, NOISE_SAMPLES), real, found, samples)
    return loss_warnings(canonical, measured, None)


def losses_of_build(build: BuildFolder, samples: Samples) -> list[QualityWarning]:
    """Return warnings of what a build's network loses on samples, and what helped before.

    Remedies are those that were found when it was built. Empty without a real network.
    """
    if build.canonical is None:
        return []
    found = measure(build.canonical, build.fixed, samples.inputs, samples.labels)
    warnings = loss_warnings(build.canonical, found, None)
    return with_remedies(warnings, known_warnings(build)) if warnings else []


def known_warnings(build: BuildFolder) -> list[QualityWarning]:
    """Return the warnings in a build's report; none if it was interrupted before that."""
    if not (build.path / "report.json").is_file():
        return []
    return list(build.report.warnings)


def _step_quality(
    canonical: Graph | None, fixed: Graph, samples: Samples
) -> tuple[dict[str, int | float | None], ...]:
    """Signal to quantization noise of outputs and states at each step; none without states."""
    if canonical is None or not fixed.is_sequential:
        return ()
    drift = Drift(fixed, next(iter(samples.inputs.values())).shape[1])
    codes = trace_fixed(fixed, quantize_inputs(fixed, samples.inputs))
    drift.add(
        trace_float(canonical, samples.inputs),
        dequantize_outputs(fixed, {name: codes[name] for name in drift.names}),
    )
    return tuple(drift.rows())
