"""The first step of a build: quantize, schedule and emit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from nnef_hw.architectures import able_architectures, unable_architectures
from nnef_hw.boards import Board
from nnef_hw.codegen.links import with_link
from nnef_hw.flow.cache import discard_steps
from nnef_hw.flow.choice import Candidates, Pace, choose_plan, choose_soonest
from nnef_hw.flow.clock import slower_clocks
from nnef_hw.flow.emit import emit
from nnef_hw.flow.fixed import check_weights, device_budget, quantize_model
from nnef_hw.flow.language_models import check_context, with_loop
from nnef_hw.flow.options import BuildOptions, PlannedModel
from nnef_hw.flow.remedy import Asked, Ways, remedied
from nnef_hw.flow.reporting import library_versions
from nnef_hw.flow.sinks import bind_sinks
from nnef_hw.flow.sources import (
    bind_sources,
    check_rates,
    explained_rate,
    wanted_rate,
)
from nnef_hw.flow.steps import Compiled, Steps
from nnef_hw.flow.summary import describe_steps
from nnef_hw.flow.survey import narrowed
from nnef_hw.flow.weights import base_digest, compile_weights
from nnef_hw.frontend import graph_hash
from nnef_hw.frontend.named_states import FixedContext
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, Stage
from nnef_hw.passes import simplify
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.samples.samples import Samples, load_samples, samples_digest
from nnef_hw.system.files import digest
from nnef_hw.system.sources import package_digest

__all__ = ["compile_design", "inputs_digest", "plan_quickest", "read_inputs"]

# Not the simulation: it depends on the accelerator alone, which another clock leaves as it is.
LATER_STEPS = ("synthesize", "report")


def read_inputs(options: BuildOptions) -> tuple[Graph, Samples | None]:
    """Return the network that a build begins with, and its samples if there are any."""
    if isinstance(options.model, PlannedModel):
        return options.model.graph, options.model.samples
    graph = options.reading.load(options.model)
    samples = None if options.calibrate is None else load_samples(options.calibrate, graph)
    return graph, samples


def inputs_digest(
    options: BuildOptions, target: Target, graph: Graph, samples: Samples | None
) -> str:
    """Digest of everything that a design depends on."""
    given = graph_hash(options.model.fixed) if isinstance(options.model, PlannedModel) else ""
    return digest(
        package_digest(), graph_hash(graph), given, samples_digest(samples), repr(target),
        repr((options.arch, options.clock_mhz or target.clock_mhz)),
        repr((options.clock_mhz is None, options.asked_mhz)),
        repr((options.target_fps, options.batch)),
        repr((options.scheme, options.accuracy_drop, options.stream)),
        repr((options.link, options.sinks, options.sources, options.layer_counters)),
        repr(options.token_loop),
        repr((options.ip_name, options.streams)),
        *library_versions(),
    )  # fmt: skip


def compile_design(
    options: BuildOptions, target: Target, progress: Callable[[str], None], steps: Steps
) -> tuple[Compiled, PlannedModel | None]:
    """Quantize, schedule and emit; return what the report says of that, and the model.

    The model is None if an earlier build has left all files.
    """
    begin = time.perf_counter()
    graph, samples = read_inputs(options)
    if isinstance(options.reading.states, FixedContext):
        check_context(graph, options.reading.states, target)
    key = inputs_digest(options, target, graph, samples)

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
            made = _plan(options, _room(options, target, graph), graph, samples, progress)
        check_rates(bind_sources(options.sources, made.fixed, made.plan), made.plan)
        fixed, canonical, plan = made.fixed, made.canonical, made.plan
        emit(folder, fixed, canonical, plan, made.samples, target, options, base)
        # Before the new Verilog is in place: an interruption in between costs time, not trust.
        discard_steps(options.out, LATER_STEPS)
        described = None
        if fixed.rows:
            wanted = wanted_rate(options.target_fps, options.sources, fixed)
            described = describe_steps(fixed, made.window, target, plan, fastest=wanted is None)
        seconds = {"compile": round(time.perf_counter() - begin, 2)}
        return Compiled(described, tuple(made.others), made.warnings, seconds)

    return steps.run("compile", key, produce, Compiled), made


def plan_quickest(
    options: BuildOptions, target: Target, progress: Callable[[str], None], steps: Steps
) -> BuildOptions:
    """Return options with architecture, clock and rate of the plan with the shortest latency."""
    graph, samples = read_inputs(options)

    def search(_: Path) -> Pace:
        room = _room(options, target, graph)
        clocks = [] if options.clock_mhz else list(slower_clocks(target, options.link))
        fixed = _plan(options, room, graph, samples, progress).fixed
        progress("looking for the shortest latency")
        pace, _found, _others = choose_soonest(
            Candidates(able_architectures(options.arch, fixed)), fixed, room, clocks,
            clock_mhz=options.clock_mhz, layer_counters=options.layer_counters,
            batch=options.batch, by_latency=options.token_loop,
        )  # fmt: skip
        return pace

    key = digest(inputs_digest(options, target, graph, samples), options.goal)
    pace = steps.run("goal", key, search, Pace)
    clock = options.clock_mhz if pace.clock_mhz is None else pace.clock_mhz
    return replace(
        options, goal="rate", arch=pace.arch, clock_mhz=clock, target_fps=pace.target_fps
    )


def _room(options: BuildOptions, target: Target, graph: Graph) -> Target:
    """Return the target without what link and token loop take of it."""
    room: Target = target
    if isinstance(target, Board):
        room = with_link(target, graph, options.link)
    return with_loop(room, graph) if options.token_loop else room


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
    target_fps, least_fps = options.target_fps, 0.0

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
            options.arch, options.clock_mhz, target_fps, options.layer_counters, options.batch,
            least_fps, bool(options.link.has_host and options.sources and options.sinks),
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
        least_fps = wanted_rate(None, options.sources, made.fixed) or 0.0
        target_fps = wanted_rate(target_fps, options.sources, made.fixed)
        with explained_rate(options.target_fps, options.sources, made.fixed):
            plan, others = choose_plan(
                candidates,
                made.fixed,
                target,
                clock_mhz=options.clock_mhz,
                target_fps=target_fps,
                layer_counters=options.layer_counters,
                batch=options.batch,
                by_latency=options.token_loop,
                takes_soonest=options.takes_soonest,
            )
    return PlannedModel(
        graph, made.samples, made.fixed, made.canonical, plan, others, made.window, made.warnings
    )
