"""A network on many boards: what each would make of it, before anything is built."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from nnef_hw.architecture.architecture import AcceleratorPlan, AnyArchitecture
from nnef_hw.architectures import (
    AUTO,
    able_architectures,
    find_architecture,
    unable_architectures,
)
from nnef_hw.boards import Board
from nnef_hw.boards.interfaces import (
    DEFAULT_LINK,
    HostLink,
    Interface,
    SinkWish,
    SourceWish,
)
from nnef_hw.codegen.links import with_link
from nnef_hw.errors import ErrorGroup, NnefHwError, TargetError
from nnef_hw.flow.choice import Candidates, Goal, soonest_plan
from nnef_hw.flow.clock import choice_of, slower_clocks
from nnef_hw.flow.fixed import DEFAULT_SCHEME, quantize_model, rough
from nnef_hw.flow.language_models import roles_of, with_loop
from nnef_hw.flow.remedy import Asked, Narrowed, Ways, remedied
from nnef_hw.flow.sinks import bind_sinks
from nnef_hw.flow.sources import wanted_rate, with_interfaces
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph, Stage
from nnef_hw.ir.batch import join_batch, join_steps, sample_extents
from nnef_hw.ir.input_readers import index_count
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import Scheme
from nnef_hw.quantize.calibration.observe import Progress
from nnef_hw.report.model.clock import ClockChoice
from nnef_hw.report.model.network import Outlook
from nnef_hw.samples.samples import Samples
from nnef_hw.system.workers import Here, Pool, as_done, processes_for

__all__ = ["narrowed", "noise", "outlooks", "plan_target", "roughly_fixed", "survey"]

FRAMES = 8
STEPS = 4
HERE = Here()


def outlooks(
    graph: Graph,
    targets: Sequence[Target],
    samples: Samples | None = None,
    scheme: Scheme = DEFAULT_SCHEME,
    stream: StreamTime | None = None,
    *,
    arch: str = AUTO,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    goal: Goal = "rate",
    sources: Sequence[SourceWish] = (),
    sinks: Sequence[SinkWish] = (),
    link: HostLink = DEFAULT_LINK,
    token_loop: bool = False,
    say: Callable[[str], None] = lambda what: None,
) -> list[Outlook]:
    """Plan a model for every board; return the outlooks in the order of the boards.

    Parameters
    ----------
    samples, scheme, stream
        See :func:`roughly_fixed`.
    arch, clock_mhz, target_fps, goal
        See :func:`survey`.
    sources
        Where inputs come from in place of the host: what decides the rate if nobody else does.
    sinks
        Where outputs go besides the host.
    link
        The link to that.
    token_loop
        The board itself writes texts of a language model, as soon as it can.
    say
        Called with the current work.

    Raises
    ------
    UsageError, UnsupportedError, ErrorGroup
        If it has layers that cannot be built, on whatever board, or cannot run step by step, or
        is no language model that writes texts.
    """
    say("quantizing")
    fixed = roughly_fixed(graph, samples, scheme, stream)
    least_fps = wanted_rate(None, sources, fixed) or 0.0
    takes_soonest = target_fps is None and (link.takes_turns or bool(sources))
    target_fps = wanted_rate(target_fps, sources, fixed)
    able, refused = _with_interfaces(fixed, targets, clock_mhz, link, sources, sinks)
    if token_loop:
        roles_of(fixed)
        able = [with_loop(target, fixed) for target in able]
    with processes_for(len(able)) as pool:
        found = survey(
            fixed,
            able,
            narrowed(graph, samples, scheme, stream),
            arch=arch,
            clock_mhz=clock_mhz,
            target_fps=target_fps,
            goal=goal,
            least_fps=least_fps,
            lone=bool(link.has_host and sources and sinks),
            link=link,
            kinds=[wish.kind for wish in (*sources, *sinks)],
            by_latency=token_loop,
            takes_soonest=takes_soonest,
            pool=pool,
            progress=lambda what, done, total: say(f"{what}, {done} of {total}"),
        )
        rows = {outlook.board: outlook for outlook in found} | refused
    return [rows[target.name] for target in targets]


def _with_interfaces(
    fixed: Graph,
    targets: Sequence[Target],
    clock_mhz: float | None,
    link: HostLink,
    sources: Sequence[SourceWish],
    sinks: Sequence[SinkWish],
) -> tuple[list[Target], dict[str, Outlook]]:
    """Return the boards that can have sources and sinks, and why others are refused, by name."""
    wishes = (*sources, *sinks)
    able: list[Target] = []
    refused: dict[str, Outlook] = {}
    for target in targets:
        try:
            if isinstance(target, Board) and (wishes or link != DEFAULT_LINK):
                bind_sinks(sinks, fixed, target)
                able.append(with_link(with_interfaces(target, link, wishes), fixed, link))
            else:
                able.append(target)
        except TargetError as error:
            refused[target.name] = _refused(target, clock_mhz or target.clock_mhz, error)
    return able, refused


def survey(
    fixed: Graph,
    targets: Iterable[Target],
    narrowed: Narrowed | None = None,
    *,
    arch: str = AUTO,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    goal: Goal = "rate",
    least_fps: float = 0.0,
    lone: bool = False,
    link: HostLink = DEFAULT_LINK,
    kinds: Sequence[type[Interface]] = (),
    by_latency: bool = False,
    takes_soonest: bool = False,
    pool: Pool = HERE,
    progress: Progress = lambda what, done, total: None,
) -> Iterator[Outlook]:
    """Plan a fixed graph for every board; yield the outlooks in the order of the boards.

    Boards that are alike to an architecture are planned once.

    Parameters
    ----------
    narrowed
        The graph with weights of so many bits, if it can be had: see :class:`.Ways`.
    least_fps
        Frames per second that a sensor gives.
    goal
        ``latency`` takes the rate, and without a clock that too, with which a result comes soonest.
    lone
        The host link may be left out.
    link
        The host link.
    kinds
        Kinds of sources and sinks.
    by_latency
        Of two architectures that with the shorter latency is taken.
    takes_soonest
        The rate is a sensor's, or frames take turns: of the architectures' plans that with the
        shortest latency is taken.
    pool
        What plans; this process by default.
    progress
        Called with the current work, its progress and its total.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If it has layers that cannot be built, on whatever board.
    """
    able = able_architectures(arch, fixed)
    asked = [_Asked(target, clock_mhz, target_fps, goal, link) for target in targets]
    alike: dict[tuple[Hashable, ...], list[_Asked]] = {}
    for architecture in able:
        for one in asked:
            alike.setdefault(one.key(architecture), []).append(one)
    jobs = {}
    # Large devices take longest.
    for key, members in sorted(alike.items(), key=lambda item: -item[1][0].target.device.lut):
        one, names = members[0], ", ".join(member.target.name for member in members)
        # A refusal names them all.
        named = replace(one.target, name=names)
        jobs[key] = pool.submit(
            plan_target, fixed, key[0], named, one.clock, target_fps, one.slower, by_latency
        )  # fmt: skip
    for count, _ in enumerate(as_done(list(jobs.values()))):
        progress("planning", count + 1, len(jobs))
    plans: dict[tuple[Hashable, ...], AcceleratorPlan | NnefHwError] = {
        key: job.result() for key, job in jobs.items()
    }
    ways = Ways(
        fixed, Asked(arch, clock_mhz, target_fps, least_fps=least_fps, lone=lone), narrowed,
        plans if goal == "rate" else {},
    )  # fmt: skip
    for one in asked:
        target, found = one.target, {way.name: plans[one.key(way)] for way in able}
        candidates = Candidates(able, partial(unable_architectures, arch, fixed))
        try:
            with remedied(lambda: ways, target):
                plan, _ = candidates.plan(
                    partial(_taken, found),
                    smallest=target_fps is not None and not takes_soonest,
                    by_latency=by_latency or takes_soonest or goal == "latency",
                )
        except NnefHwError as error:
            yield _refused(target, one.clock, error)
        else:
            clock = one.clock_of(plan)
            is_fixed = clock_mhz is not None or clock != one.clock
            choice = choice_of(target, plan, link, kinds, clock_mhz=clock, fixed=is_fixed)
            yield _planned(target, clock, plan, choice)


class _Asked:
    """A target, and what is asked of its plan.

    ``slower`` are clocks to try for the shortest latency; None where the rate is the goal.
    """

    def __init__(
        self, target: Target, clock_mhz: float | None, target_fps: float | None, goal: Goal,
        link: HostLink,
    ) -> None:  # fmt: skip
        self.target, self._target_fps = target, target_fps
        self.clock = clock_mhz or target.clock_mhz
        self.slower: tuple[float, ...] | None = None
        if goal == "latency":
            self.slower = () if clock_mhz else tuple(slower_clocks(target, link))

    def key(self, architecture: AnyArchitecture) -> tuple[Hashable, ...]:
        """Return the name of an architecture, and what decides its plan."""
        decisive = architecture.decisive(self.target, self.clock, self._target_fps)
        clocks = () if self.slower is None else (self.clock, self.slower)
        return architecture.name, *decisive, *clocks

    def clock_of(self, plan: AcceleratorPlan) -> float:
        """Return the clock of its plan, which may have been made for another board."""
        return self.clock if self.slower is None else plan.clock_mhz


def plan_target(
    fixed: Graph,
    arch: str,
    target: Target,
    clock_mhz: float,
    target_fps: float | None,
    slower: Sequence[float] | None = None,
    by_latency: bool = False,
) -> AcceleratorPlan | NnefHwError:
    """Plan a fixed graph with one architecture; return why not, if it does not fit.

    With slower clocks to try, the plan whose result comes soonest; with ``by_latency`` that of the
    clock, and of the rate if there is one.
    """
    architecture = find_architecture(arch)
    try:
        if slower is not None:
            return soonest_plan(
                architecture, fixed, target, slower, clock_mhz=clock_mhz, by_latency=by_latency
            )[1]
        plan: AcceleratorPlan = architecture.plan(
            fixed, target, clock_mhz=clock_mhz, target_fps=target_fps, by_latency=by_latency
        )
    except NnefHwError as error:
        return error
    return plan


def _taken(
    plans: Mapping[str, AcceleratorPlan | NnefHwError], architecture: AnyArchitecture
) -> AcceleratorPlan:
    plan = plans[architecture.name]
    if isinstance(plan, NnefHwError):
        raise plan
    return plan


def roughly_fixed(
    graph: Graph,
    samples: Samples | None,
    scheme: Scheme = DEFAULT_SCHEME,
    stream: StreamTime | None = None,
) -> Graph:
    """Return a fixed graph to plan with: formats are right, codes only if there are samples.

    Without samples ranges come from noise. Cycles, multipliers and block RAMs do not depend on
    them; LUTs do, by a few in a hundred. ``stream`` is how it runs step by step, if it is to.

    Raises
    ------
    UsageError, UnsupportedError, ErrorGroup
        If the model has layers that cannot be built, or cannot run step by step.
    """
    simple = simplify(graph) if graph.stage == Stage.FLOAT else graph
    if graph.stage != Stage.FIXED and samples is None:
        samples = noise(simple)
        scheme = rough(scheme)
    return quantize_model(simple, samples, scheme, stream).fixed


def narrowed(
    graph: Graph, samples: Samples | None, scheme: Scheme, stream: StreamTime | None
) -> Narrowed | None:
    """Return a maker of fixed graphs with narrower weights; None if the author fixed it.

    Ranges are rough. Parameters are those of :func:`roughly_fixed`.
    """
    if graph.stage == Stage.FIXED:
        return None
    few = None if samples is None else samples[:FRAMES]
    return lambda bits: roughly_fixed(graph, few, replace(rough(scheme), weight_bits=bits), stream)


def noise(graph: Graph) -> Samples:
    """Return a few samples of nothing for a graph: numbers of mean 0 and variance 1, seeded.

    Integers are those that the tables of the graph have.
    """
    rng = np.random.default_rng(0)
    inputs = {}
    join = join_steps if graph.is_sequential else join_batch
    leading = (FRAMES, STEPS) if graph.is_sequential else (FRAMES,)
    for name in graph.inputs:
        shape = graph.tensor(name).shape
        extents = (*leading, *sample_extents(shape))
        count = index_count(graph, name)
        x = rng.integers(0, count, extents) if count else rng.normal(size=extents)
        inputs[name] = join(x, shape)
    return Samples(inputs)


def _planned(
    target: Target, clock_mhz: float, plan: AcceleratorPlan, clock: ClockChoice
) -> Outlook:
    device, used = target.device, plan.resources
    slowest = max(plan.stations, key=lambda station: station.cycles, default=None)
    return Outlook(
        board=target.name,
        device=device.name,
        clock_mhz=clock_mhz,
        arch=plan.arch,
        cycles_per_inference=plan.interval,
        latency_cycles=plan.latency,
        inferences_per_second=clock_mhz * 1e6 / plan.interval,
        multipliers=plan.multipliers,
        mac_utilization=plan.mac_utilization,
        lut=used.lut / device.lut,
        dsp=used.dsp / device.dsp if device.dsp else 0.0,
        bram=used.bram / device.bram if device.bram else 0.0,
        bottleneck=None if slowest is None else slowest.name,
        clock=clock,
    )


def _refused(target: Target, clock_mhz: float, error: NnefHwError) -> Outlook:
    errors = error.errors if isinstance(error, ErrorGroup) else (error,)
    return Outlook(
        board=target.name,
        device=target.device.name,
        clock_mhz=clock_mhz,
        refusal="; ".join(each.reason for each in errors),
        remedy="; ".join(dict.fromkeys(each.remedy for each in errors if each.remedy)),
    )
