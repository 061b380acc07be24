"""The second step of a build: simulate the Verilog, and compare and score its results."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from nnef_hw.flow.options import BuildOptions, PlannedModel
from nnef_hw.flow.reporting import library_versions
from nnef_hw.flow.steps import Steps, Verified
from nnef_hw.quantize.judgement.measure import NOISE_SAMPLES
from nnef_hw.quantize.judgement.warnings import QualityWarning
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.rtl import run_rtl
from nnef_hw.run.simulate import (
    accuracies,
    found_losses,
    layer_quality,
    random_codes,
    simulation_row,
)
from nnef_hw.samples.samples import load_samples, samples_digest, spread_order
from nnef_hw.system.files import digest
from nnef_hw.system.sources import package_digest
from nnef_hw.system.tools import find_tool

__all__ = ["verify_design"]

# Compiling the simulation counts, scoring the outputs does not.
SIMULATION_SECONDS = 30.0
LEAST_FRAMES = 3


def verify_design(options: BuildOptions, folder: BuildFolder, steps: Steps) -> Verified:
    """Run samples, or random frames, through the Verilog; score the outputs.

    How many frames the time allows is measured, not predicted: like the times it may be another
    number next time. Which ones they are follows from the number alone.
    """
    fixed = folder.fixed
    samples = None
    if isinstance(options.model, PlannedModel):
        samples = options.model.samples
    elif options.calibrate is not None:
        samples = load_samples(options.calibrate, fixed)
    tools = [find_tool(name).identity for name in ("verilator", "c++")]
    verilog, top = folder.simulated
    images = [stored.data for stored in folder.plan.images]
    key = digest(
        package_digest(), verilog, *images, samples_digest(samples), repr(options.frames), *tools,
        *library_versions(),
    )  # fmt: skip

    def produce(_: Path) -> Verified:
        begin = time.perf_counter()
        codes = random_codes(fixed) if samples is None else quantize_inputs(fixed, samples.inputs)
        available = len(codes[fixed.inputs[0]])
        order = spread_order(available)
        deadline = None
        if options.frames is None:
            deadline = begin + SIMULATION_SECONDS
        elif options.frames != "all":
            order = order[: options.frames]
        fed = {name: values[order] for name, values in codes.items()}
        outcome = run_rtl(
            verilog, folder.plan, fixed, fed, top=top, deadline=deadline, least_frames=LEAST_FRAMES
        )
        order = order[: len(outcome.codes[fixed.outputs[0]])]
        expected = run_fixed(fixed, {name: values[order] for name, values in codes.items()})
        accuracy, noise = None, {}
        losses: list[QualityWarning] = []
        if samples is not None:
            is_float = folder.canonical is not None
            mask = samples.evaluation_mask() if is_float else np.ones(len(samples), bool)
            scored = mask[order]
            accuracy = accuracies(
                folder.canonical, fixed, samples[mask],
                {name: x[scored] for name, x in outcome.codes.items()},
                int(samples.calibration_mask().sum()) if is_float else 0,
                (np.cumsum(mask) - 1)[order[scored]], positions=np.flatnonzero(mask),
                calibrated=is_float and samples.are_few,
            )  # fmt: skip
            layers = layer_quality(folder.canonical, fixed, samples[mask][:NOISE_SAMPLES])
            noise = {layer.name: layer.sqnr_db for layer in layers}
            losses = found_losses(folder.canonical, fixed, noise, accuracy, int(mask.sum()))
        return Verified(
            simulation_row(folder.plan, outcome, expected, available=available),
            accuracy,
            noise,
            tuple(losses),
            {"simulate": round(time.perf_counter() - begin, 2)},
        )

    return steps.run("simulate", key, produce, Verified)
