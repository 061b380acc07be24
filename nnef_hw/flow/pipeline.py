"""``build``: from a model to a verified bitstream, each step cached by its inputs."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from nnef_hw.architectures import able_architectures, unable_architectures
from nnef_hw.boards import Board
from nnef_hw.codegen.board import fastest_clock
from nnef_hw.errors import NnefHwError
from nnef_hw.flow.cache import discard_steps, remove_leftovers
from nnef_hw.flow.choice import Candidates, choose_plan
from nnef_hw.flow.clock import search_clock
from nnef_hw.flow.emit import emit
from nnef_hw.flow.fixed import check_weights, device_budget, quantize_model
from nnef_hw.flow.options import BuildOptions, PlannedModel, check_options
from nnef_hw.flow.remedy import Asked, Ways, remedied
from nnef_hw.flow.reporting import library_versions, write_report
from nnef_hw.flow.sinks import bind_sinks
from nnef_hw.flow.steps import Compiled, Steps, Verified
from nnef_hw.flow.summary import describe_steps
from nnef_hw.flow.survey import narrowed
from nnef_hw.flow.weights import (
    base_digest,
    base_options,
    compile_weights,
    inherit_bitstream,
)
from nnef_hw.frontend import graph_hash, load
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, Stage
from nnef_hw.passes import simplify
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.synthesis import synthesize, tool_identities
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.quantize.judgement.measure import NOISE_SAMPLES
from nnef_hw.quantize.judgement.warnings import QualityWarning, announce
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.report.model.report import Report
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.rtl import run_rtl
from nnef_hw.run.simulate import (
    accuracies,
    found_losses,
    layer_quality,
    random_codes,
    require_exact,
    simulation_row,
)
from nnef_hw.samples.samples import Samples, load_samples, samples_digest, spread_order
from nnef_hw.system.files import digest, locked, writing
from nnef_hw.system.process_group import run_parallel
from nnef_hw.system.sources import package_digest
from nnef_hw.system.tools import find_tool

__all__ = ["UP_TO_DATE", "build"]

UP_TO_DATE = "nothing to do: everything is up to date"
"""The last word of the progress of a build that has made nothing."""

_log = logging.getLogger(__name__)

# Not the simulation: it depends on the accelerator alone, which another clock leaves as it is.
LATER_STEPS = ("synthesize", "report")
# Compiling the simulation counts, scoring the outputs does not.
SIMULATION_SECONDS = 30.0
LEAST_FRAMES = 3
# What no design reaches, to see from nextpnr's answer what this one does.
PROBE_FACTOR = 2.0


def build(options: BuildOptions, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Build everything and return the report.

    Simulation and synthesis run side by side. What exists already for the same inputs and tools is
    not made again; if the model is refused, a folder that was not there before is not there after.

    Parameters
    ----------
    progress
        Is told what is being done.

    Raises
    ------
    NnefHwError
        For bad input (status 2), for hardware that differs from its model (status 1), for tools
        that fail (status 3). A missed clock is no exception: see ``timing_met`` in the report.
    KeyboardInterrupt
        All tools have ended; the steps that are done stay.
    """
    if options.weights_of is not None:
        options = base_options(options)
    target = check_options(options)
    if options.bitstream and isinstance(target, Board):
        tool_identities(target.device.family)  # better now than after minutes
        toolchain = toolchain_of(target.device.family)
        if options.seeds > 1 and not toolchain.places:
            raise toolchain.refusal("which of several placements is the fastest")
    missing = [path for path in (options.out, *options.out.parents) if not path.exists()]
    waiting = partial(progress, f"waiting for another build in {options.out}")
    with writing(options.out), locked(options.out / ".steps" / "lock", waiting):
        remove_leftovers(options.out)
        try:
            if options.fastest:
                options = replace(options, clock_mhz=_fastest(options, target, missing, progress))
            return _build(options, target, missing, progress)
        finally:
            # leftovers of threads that an interruption did not wait for
            remove_leftovers(options.out)


def _fastest(
    options: BuildOptions, target: Target, missing: list[Path], progress: Callable[[str], None]
) -> float:
    """Return the clock in MHz for ``--freq auto``, found by building for it."""
    assert isinstance(target, Board)
    toolchain = toolchain_of(target.device.family)
    if not toolchain.places:
        raise toolchain.refusal("the fastest clock")

    def available(limit: float) -> float:
        return fastest_clock(target, limit, (options.link,))

    def place(clock: float) -> tuple[float, bool]:
        report = _build(replace(options, clock_mhz=clock), target, missing, progress)
        assert report.fmax_mhz is not None
        assert report.timing_met is not None
        return report.fmax_mhz, report.timing_met

    def search(_: Path) -> float:
        return search_clock(PROBE_FACTOR * target.clock_mhz, available, place)

    with _removed_on_failure(options.out, missing):
        graph, samples = _read(options)
        key = digest(
            _inputs_digest(options, target, graph, samples), repr(options.seeds),
            *tool_identities(target.device.family),
        )  # fmt: skip
    return Steps(options.out).run("fastest", key, search, float)


@contextlib.contextmanager
def _removed_on_failure(out: Path, missing: list[Path]) -> Iterator[None]:
    """Remove folders that did not exist before if the block fails."""
    try:
        yield
    except BaseException:
        # Another process may have finished a build there meanwhile.
        if missing and not (out / "manifest.json").exists():
            shutil.rmtree(out, ignore_errors=True)
            with contextlib.suppress(OSError):
                for parent in missing[1:]:
                    parent.rmdir()
        raise


def _build(
    options: BuildOptions, target: Target, missing: list[Path], progress: Callable[[str], None]
) -> Report:
    begin = time.perf_counter()
    steps = Steps(options.out)
    progress("compiling")
    with _removed_on_failure(options.out, missing):
        compiled, made = _compile(options, target, progress, steps)
    folder = (
        BuildFolder.open(options.out)
        if made is None
        else BuildFolder.just_made(options.out, made.fixed, made.canonical, made.plan)
    )

    verified, placed = _simulate_and_synthesize(options, folder, target, progress, steps)
    if not verified.simulation.bit_exact:
        # A bitstream of wrong hardware is worth nothing.
        discard_steps(options.out, ("synthesize",))
        placed = None
    seconds = {**compiled.seconds, **verified.seconds}
    if placed is not None:
        seconds |= {name: round(value, 2) for name, value in placed.seconds.items()}
    seconds["total"] = round(time.perf_counter() - begin, 2)

    report = write_report(options, folder, target, compiled, verified, placed, seconds, steps)
    if not isinstance(options.model, PlannedModel):  # its samples and losses are told already
        announce(report.warnings)
    require_exact(verified.simulation)
    if not steps.done:
        progress(UP_TO_DATE)
    return report


def _read(options: BuildOptions) -> tuple[Graph, Samples | None]:
    if isinstance(options.model, PlannedModel):
        return options.model.graph, options.model.samples
    graph = load(
        options.model,
        dims=options.dims,
        lenient=options.lenient,
        inputs=options.inputs,
        outputs=options.outputs,
        bind=options.bind,
        states=options.states,
    )
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    return graph, samples


def _inputs_digest(
    options: BuildOptions, target: Target, graph: Graph, samples: Samples | None
) -> str:
    """Digest of everything that a design depends on."""
    given = graph_hash(options.model.fixed) if isinstance(options.model, PlannedModel) else ""
    return digest(
        package_digest(), graph_hash(graph), given, samples_digest(samples), repr(target),
        repr((options.arch, options.clock_mhz, options.target_fps, options.batch)),
        repr((options.scheme, options.accuracy_drop, options.stream)),
        repr((options.link, options.sinks, options.layer_counters, options.ip_name)),
        *library_versions(),
    )  # fmt: skip


def _compile(
    options: BuildOptions, target: Target, progress: Callable[[str], None], steps: Steps
) -> tuple[Compiled, PlannedModel | None]:
    """Quantize, schedule and emit; return what the report says of that, and the model.

    The model is None if an earlier build has left all files.
    """
    begin = time.perf_counter()
    graph, samples = _read(options)
    key = _inputs_digest(options, target, graph, samples)

    base = None if options.weights_of is None else BuildFolder.open(options.weights_of)
    if base is not None:
        key = digest(key, base_digest(base, target.device.family))

    made: PlannedModel | None = None

    def produce(folder: Path) -> Compiled:
        nonlocal made
        if options.sinks:
            bind_sinks(options.sinks, graph, target)  # better now than after quantizing
        if isinstance(options.model, PlannedModel):
            made = options.model
        elif base is not None:
            simple = simplify(graph) if graph.stage == Stage.FLOAT else graph
            found, plan = compile_weights(base, simple, samples, options)
            made = PlannedModel(
                graph, samples, found.fixed, found.canonical, plan, [], warnings=found.warnings
            )
        else:
            made = _plan(options, target, graph, samples, progress)
        fixed, canonical, plan = made.fixed, made.canonical, made.plan
        emit(folder, fixed, canonical, plan, made.samples, target, options, base)
        # Before the new Verilog is in place: an interruption in between costs time, not trust.
        discard_steps(options.out, LATER_STEPS)
        described = None
        if fixed.rows:
            fastest = options.target_fps is None
            described = describe_steps(fixed, made.window, target, plan, fastest=fastest)
        seconds = {"compile": round(time.perf_counter() - begin, 2)}
        return Compiled(described, tuple(made.others), made.warnings, seconds)

    return steps.run("compile", key, produce, Compiled), made


def _plan(
    options: BuildOptions,
    target: Target,
    graph: Graph,
    samples: Samples | None,
    progress: Callable[[str], None],
) -> PlannedModel:
    """Quantize and schedule."""
    drop = options.accuracy_drop
    candidates = Candidates(())

    def check(built: Graph) -> None:
        nonlocal candidates
        rounding = options.scheme.rounding
        asked = built if rounding == "author" else built.replaced(rounding=rounding)
        candidates = Candidates(
            able_architectures(options.arch, asked),
            partial(unable_architectures, options.arch, asked),
        )
        candidates.each(
            lambda architecture: check_weights(
                built, options.scheme, target, architecture, searched=drop is not None
            )
        )

    def check_fixed(fixed: Graph) -> None:
        able_architectures(options.arch, fixed)

    def ways() -> Ways:
        progress("looking for a way that works")
        asked = Asked(
            options.arch, options.clock_mhz, options.target_fps, options.layer_counters,
            options.batch,
        )  # fmt: skip
        narrower = narrowed(graph, samples, options.scheme, options.stream)
        fixed = graph if narrower is None else narrower(options.scheme.weight_bits)
        return Ways(fixed, asked, None if drop is not None else narrower)

    with remedied(ways, target):
        made = quantize_model(
            graph,
            samples,
            options.scheme,
            options.stream,
            budget=None if drop is None else device_budget(drop, target.device),
            progress=lambda what, done, total: progress(f"{what}, {done} of {total}"),
            check=check,
            judges=True,
            check_fixed=check_fixed,
        )
        plan, others = choose_plan(
            candidates,
            made.fixed,
            target,
            clock_mhz=options.clock_mhz,
            target_fps=options.target_fps,
            layer_counters=options.layer_counters,
            batch=options.batch,
        )
    return PlannedModel(
        graph, made.samples, made.fixed, made.canonical, plan, others, made.window, made.warnings
    )


def _simulate_and_synthesize(
    options: BuildOptions,
    folder: BuildFolder,
    target: Target,
    progress: Callable[[str], None],
    steps: Steps,
) -> tuple[Verified, SynthesisResult | None]:
    """Do both side by side; without a board there is nothing to synthesize."""
    verified: list[Verified] = []
    placed: list[SynthesisResult] = []
    doing: dict[str, str] = {}

    def say(job: str, what: str | None) -> None:
        if what is None:
            doing.pop(job, None)
        else:
            doing[job] = what
        if doing:
            progress(", ".join(doing.values()))

    def simulate() -> None:
        say("simulate", "simulating")
        verified.append(_simulate(options, folder, steps))
        say("simulate", None)

    def place() -> None:
        assert isinstance(target, Board)
        placed.append(_synthesize(folder, target, options.seeds, partial(say, "synthesize"), steps))
        say("synthesize", None)

    jobs = [simulate]
    if options.bitstream and isinstance(target, Board):
        jobs.append(place)
    run_parallel(jobs)
    if options.weights_of is not None:
        kept = inherit_bitstream(BuildFolder.open(options.weights_of), options.out)
        return verified[0], kept
    return verified[0], placed[0] if placed else None


def _simulate(options: BuildOptions, folder: BuildFolder, steps: Steps) -> Verified:
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


def _synthesize(
    folder: BuildFolder,
    target: Board,
    seeds: int,
    progress: Callable[[str], None],
    steps: Steps,
) -> SynthesisResult:
    """Place, route and pack the board's top; the logs stay if a tool fails."""
    logs = folder.path / "logs"
    plan, family = folder.plan, target.device.family
    verilog = folder.path / "board" / "board_top.v"
    constraints = verilog.with_suffix(f".{toolchain_of(family).constraints_suffix}")
    key = digest(
        verilog, constraints, repr((plan.clock_mhz, target, seeds)), *tool_identities(family)
    )

    def produce(scratch: Path) -> SynthesisResult:
        with _kept_if_refused(logs):
            result = synthesize(
                verilog, top="board_top", family=family, device=target.part,
                package=target.package, speed=target.speed, out_dir=scratch / "board",
                frequency_mhz=plan.clock_mhz, constraints=constraints.read_text(),
                seeds=range(1, seeds + 1), log_dir=logs, progress=progress,
            )  # fmt: skip
        # Made by the step before; a file belongs to one step only.
        (scratch / "board" / constraints.name).unlink(missing_ok=True)
        return result

    return steps.run("synthesize", key, produce, SynthesisResult)


@contextlib.contextmanager
def _kept_if_refused(logs: Path) -> Iterator[None]:
    """Remove a folder of logs, unless an error is raised that names them."""
    shutil.rmtree(logs, ignore_errors=True)
    try:
        yield
    except NnefHwError:
        raise
    except BaseException:
        shutil.rmtree(logs, ignore_errors=True)
        raise
    shutil.rmtree(logs, ignore_errors=True)
