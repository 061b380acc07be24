"""``build``: from a model to a verified bitstream, each step cached by its inputs."""

from __future__ import annotations

import contextlib
import logging
import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from nnef_hw.architectures import able_architectures
from nnef_hw.boards import Board
from nnef_hw.codegen.board import fastest_clock, may_follow
from nnef_hw.errors import NnefHwError, TargetError, UnroutedError
from nnef_hw.flow.cache import discard_steps, remove_leftovers
from nnef_hw.flow.choice import Candidates, choose_plan
from nnef_hw.flow.clock import (
    GAIN,
    MOST_UNROUTED,
    PROBE_FACTOR,
    UNROUTED_SHARE,
    asked_clock,
    search_clock,
    tuning_of,
)
from nnef_hw.flow.compilation import (
    compile_design,
    inputs_digest,
    plan_quickest,
    read_inputs,
)
from nnef_hw.flow.options import BuildOptions, PlannedModel, check_options
from nnef_hw.flow.reporting import write_report
from nnef_hw.flow.sources import wanted_rate
from nnef_hw.flow.steps import Steps, Verified
from nnef_hw.flow.verification import verify_design
from nnef_hw.flow.weights import base_options, inherit_bitstream
from nnef_hw.hardware.devices import Target
from nnef_hw.place.result import SynthesisResult
from nnef_hw.place.synthesis import synthesize, tool_identities
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.quantize.judgement.warnings import announce
from nnef_hw.report.model.report import Report
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.simulate import require_exact
from nnef_hw.system.files import digest, locked, writing
from nnef_hw.system.process_group import run_parallel

__all__ = ["UP_TO_DATE", "build"]

UP_TO_DATE = "nothing to do: everything is up to date"
"""The last word of the progress of a build that has made nothing."""

_log = logging.getLogger(__name__)


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
            if options.goal == "latency":
                with _removed_on_failure(options.out, missing):
                    options = plan_quickest(options, target, progress, Steps(options.out))
                target = check_options(options)
            if options.fastest or _may_fall_back(options, target):
                return _build_at_best(options, target, missing, progress)
            return _build(options, target, missing, progress)
        finally:
            # leftovers of threads that an interruption did not wait for
            remove_leftovers(options.out)


def _may_fall_back(options: BuildOptions, target: Target) -> bool:
    """Whether the clock is the board's and not the user's, so that a lower one will do."""
    return (
        options.clock_mhz is None
        and options.bitstream
        and options.weights_of is None
        and isinstance(target, Board)
        and toolchain_of(target.device.family).places
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """The clock of a build, as place and route has settled it.

    Parameters
    ----------
    clock_mhz
        The clock of its plan.
    asked_mhz
        What place and route was asked for, where the PLL followed what was reached; None where the
        clock is a constant of the netlist.
    """

    clock_mhz: float
    asked_mhz: float | None = None


def _build_at_best(
    options: BuildOptions, target: Target, missing: list[Path], progress: Callable[[str], None]
) -> Report:
    """Build for the fastest clock, or for the board's and what is reached if that is missed."""
    assert isinstance(target, Board)
    board = target
    toolchain = toolchain_of(board.device.family)
    if not toolchain.places:
        raise toolchain.refusal("the fastest clock")
    built: dict[Settled, Report] = {}

    def at(settled: Settled) -> Report:
        asked, usual = options, board
        if settled.asked_mhz is None and settled.clock_mhz != board.clock_mhz:
            searched = replace(options, searched=True)
            asked = _at_clock(searched, board, settled.clock_mhz)
        elif settled.asked_mhz is not None:
            usual = replace(board, clock_mhz=settled.clock_mhz)
            own = settled.asked_mhz if settled.asked_mhz != asked_clock(usual) else None
            asked = _at_clock(replace(options, asked_mhz=own), usual, None)
        report = _build(asked, usual, missing, progress)
        built.clear()
        built[settled] = report
        return report

    def settle(_: Path) -> Settled:
        return _tuned(options, board, at) or _searched(options, board, at)

    with _removed_on_failure(options.out, missing):
        graph, samples = read_inputs(options)
        key = digest(
            inputs_digest(options, target, graph, samples),
            repr((options.seeds, options.fastest)), *tool_identities(target.device.family),
        )  # fmt: skip
    try:
        settled = Steps(options.out).run("clock", key, settle, Settled)
    except TargetError:
        if options.fastest or not built:
            raise
        # No design is as fast as it is wanted with a lower clock: the one that missed it stays.
        (settled,) = built
    return built[settled] if settled in built else at(settled)


def _tuned(
    options: BuildOptions, board: Board, at: Callable[[Settled], Report]
) -> Settled | None:  # fmt: skip
    """Place and route once, and set the PLL to what is reached.

    It is done anew with another plan where that is too little for the rate that is asked for, and
    for a lower clock where there is no route. None if the clock has to be known beforehand, or the
    PLL makes none that is low enough.
    """
    if not may_follow(board, options.link, [x.kind for x in (*options.sources, *options.sinks)]):
        return None
    clock, factor, unrouted = board.clock_mhz, PROBE_FACTOR if options.fastest else 1.0, 0
    while True:
        asked = asked_clock(replace(board, clock_mhz=clock), factor)
        settled = Settled(clock, asked)
        try:
            report = at(settled)
        except UnroutedError:
            unrouted += 1
            if unrouted >= MOST_UNROUTED:
                raise
            if factor > 1:
                factor = 1.0
            else:
                clock = fastest_clock(board, UNROUTED_SHARE * clock, (options.link,))
            continue
        if "oscillator_mhz" not in BuildFolder.open(options.out).manifest:
            return None
        if not report.timing_met:
            _log.warning(
                "%s reaches %.2f MHz, and the PLL of %s makes no clock below that",
                report.model, report.fmax_mhz, board.name,
            )  # fmt: skip
            return None
        wanted = options.target_fps or 0.0
        if report.inferences_per_second >= wanted or report.clock_mhz >= clock:
            return settled
        _log.warning(
            "%s reaches %.2f MHz and with it %.5g inferences/s of %.5g: planned and placed again",
            report.model, report.fmax_mhz, report.inferences_per_second, wanted,
        )  # fmt: skip
        clock, factor = fastest_clock(board, report.clock_mhz, (options.link,)), 1.0


def _searched(options: BuildOptions, board: Board, at: Callable[[Settled], Report]) -> Settled:
    """Place and route one netlist after another, each for another clock."""
    probe, gain = board.clock_mhz, math.inf
    if options.fastest:
        probe, gain = PROBE_FACTOR * probe, GAIN
    missed: list[Report] = []

    def available(limit: float) -> float:
        return fastest_clock(board, limit, (options.link,))

    def place(clock: float) -> tuple[float, bool]:
        if missed and not options.fastest:
            [last] = missed
            _log.warning(
                "%s reaches %.2f MHz of %g MHz, the clock of %s: placed again for %g MHz",
                last.model, last.fmax_mhz, last.clock_mhz, board.name, clock,
            )  # fmt: skip
        report = at(Settled(clock))
        missed[:] = [report]
        assert report.fmax_mhz is not None
        assert report.timing_met is not None
        return report.fmax_mhz, report.timing_met

    return Settled(search_clock(probe, available, place, gain=gain))


def _at_clock(options: BuildOptions, target: Target, clock_mhz: float | None) -> BuildOptions:
    """Return options for a clock; a model that has a plan for another one is planned anew.

    None is the target's clock, if the PLL may follow what is reached.
    """
    given = options.model
    if isinstance(given, PlannedModel) and given.plan.clock_mhz != (clock_mhz or target.clock_mhz):
        plan, others = choose_plan(
            Candidates(able_architectures(options.arch, given.fixed)), given.fixed, target,
            clock_mhz=clock_mhz,
            target_fps=wanted_rate(options.target_fps, options.sources, given.fixed),
            layer_counters=options.layer_counters, batch=options.batch,
            by_latency=options.token_loop, takes_soonest=options.takes_soonest,
        )  # fmt: skip
        given = replace(given, plan=plan, others=others)
    return replace(options, model=given, clock_mhz=clock_mhz)


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
        compiled, made = compile_design(options, target, progress, steps)
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
        verified.append(verify_design(options, folder, steps))
        say("simulate", None)

    def place() -> None:
        assert isinstance(target, Board)
        placed.append(_synthesize(options, folder, target, partial(say, "synthesize"), steps))
        say("synthesize", None)

    jobs = [simulate]
    if options.bitstream and isinstance(target, Board):
        jobs.append(place)
    run_parallel(jobs)
    if options.weights_of is not None:
        kept = inherit_bitstream(BuildFolder.open(options.weights_of), options.out)
        return verified[0], kept
    return verified[0], placed[0] if placed else None


def _synthesize(
    options: BuildOptions,
    folder: BuildFolder,
    target: Board,
    progress: Callable[[str], None],
    steps: Steps,
) -> SynthesisResult:
    """Place, route and pack the board's top; the logs stay if a tool fails."""
    logs = folder.path / "logs"
    plan, family, seeds = folder.plan, target.device.family, options.seeds
    asked_mhz, tuning = plan.clock_mhz, None
    if options.clock_mhz is None and "oscillator_mhz" in folder.manifest:
        asked_mhz = options.asked_mhz or asked_clock(target)
        tuning = tuning_of(target, options.link)
    verilog = folder.path / "board" / "board_top.v"
    constraints = verilog.with_suffix(f".{toolchain_of(family).constraints_suffix}")
    key = digest(
        verilog, constraints, repr((asked_mhz, tuning is not None, target, seeds)),
        repr(options.link), *tool_identities(family),
    )  # fmt: skip

    def produce(scratch: Path) -> SynthesisResult:
        with _kept_if_refused(logs):
            result = synthesize(
                verilog, top="board_top", family=family, device=target.part,
                package=target.package, speed=target.speed, out_dir=scratch / "board",
                frequency_mhz=asked_mhz, constraints=constraints.read_text(),
                seeds=range(1, seeds + 1), log_dir=logs, progress=progress, tuning=tuning,
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
