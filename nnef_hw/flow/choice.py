"""Which architecture a build takes: of those that run the model, the one with the best plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from nnef_hw.architecture.architecture import AcceleratorPlan, AnyArchitecture
from nnef_hw.architectures import AUTO
from nnef_hw.errors import NnefHwError, ShortageError, raise_all
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph
from nnef_hw.report.model.limits import OtherArchitecture

__all__ = [
    "Candidates", "Goal", "Pace", "best_plan", "choose_plan", "choose_soonest", "quickest",
    "soonest_plan",
]  # fmt: skip

Goal = Literal["rate", "latency"]
"""Aims of a design without a rate: many results per second, or a short latency."""

T = TypeVar("T")
RATE_SLACK = 1e-9
"""Share by which a rate is lowered, so that it asks for no cycle fewer than is meant."""
Unable = Callable[[], Mapping[str, Sequence[NnefHwError]]]


def best_plan(
    plans: Sequence[AcceleratorPlan], *, smallest: bool, by_latency: bool = False
) -> AcceleratorPlan:
    """Return the plan of the shortest time (interval or latency), or of the fewest LUTs."""
    return min(plans, key=lambda plan: plan.resources.lut if smallest else _time(plan, by_latency))


def _time(plan: AcceleratorPlan, by_latency: bool) -> float:
    return _cycles(plan, by_latency) / plan.clock_mhz


def _cycles(plan: AcceleratorPlan, by_latency: bool) -> int:
    return plan.latency if by_latency else plan.interval


class Candidates:
    """Architectures on the way to a plan; each is given up at its first refusal.

    Parameters
    ----------
    architectures
        Those that can run the model; of plans that are equally good, the first one's is taken.
    unable
        Says by name why others cannot run it; asked if none is left.
    """

    def __init__(self, architectures: Sequence[AnyArchitecture], unable: Unable = dict) -> None:
        self.left = list(architectures)
        self._unable = unable
        self._refusals: dict[str, NnefHwError] = {}

    def each(self, step: Callable[[AnyArchitecture], T]) -> list[T]:
        """Take a step with each one that is left, and return what it gives.

        Raises
        ------
        NnefHwError
            If none is left then: why each of them was refused.
        """
        results = []
        for architecture in tuple(self.left):
            try:
                results.append(step(architecture))
            except NnefHwError as error:
                self._refusals[architecture.name] = error
                self.left.remove(architecture)
        if not self.left:
            raise_all(_together(self._refusals, self._unable))
        return results

    def plan(
        self,
        make: Callable[[AnyArchitecture], AcceleratorPlan],
        *,
        smallest: bool,
        by_latency: bool = False,
    ) -> tuple[AcceleratorPlan, list[OtherArchitecture]]:
        """Return the plan with the least time or LUTs, and what a report says of the others.

        Raises
        ------
        NnefHwError
            If no plan is left: why each architecture was refused.
        """
        plans = self.each(make)
        best = best_plan(plans, smallest=smallest, by_latency=by_latency)
        others = [
            OtherArchitecture(plan.arch, _cycles(plan, by_latency), plan.resources.lut, None)
            for plan in plans
            if plan is not best
        ]
        refused = [
            OtherArchitecture(name, None, None, str(error))
            for name, error in self._refusals.items()
        ]
        return best, others + refused


def _together(refusals: Mapping[str, NnefHwError], unable: Unable) -> list[NnefHwError]:
    """Return the errors of a refusal: one, if one architecture lacks something of the target."""
    short = next((error for error in refusals.values() if isinstance(error, ShortageError)), None)
    if short is None:
        return list({str(error): error for error in refusals.values()}.values())
    others = _others(short, refusals, unable)
    return [ShortageError(short.claim, short.arch, "; ".join([short.lack, *others]))]


def _others(
    short: ShortageError, refusals: Mapping[str, NnefHwError], unable: Unable
) -> Iterator[str]:
    """Say why the other architectures are no way, without what was said of the first."""
    for arch, error in refusals.items():
        if error is short:
            continue
        if not isinstance(error, ShortageError):
            yield f"nor with --arch {arch}: {error.reason}"
        elif error.claim == short.claim:
            yield f"nor with --arch {arch}: {error.lack}"
        else:
            yield error.reason
    for arch, problems in unable().items():
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        yield f"--arch {arch} has no hardware for it: {problems[0].reason}{more}"


def choose_plan(
    candidates: Candidates,
    fixed: Graph,
    target: Target,
    *,
    clock_mhz: float | None = None,
    target_fps: float | None = None,
    layer_counters: bool = False,
    batch: int = 1,
    by_latency: bool = False,
    takes_soonest: bool = False,
) -> tuple[AcceleratorPlan, list[OtherArchitecture]]:
    """Return the fastest plan for a target, or the smallest one that reaches a frame rate.

    And what a report says of the others. Clock in MHz, frames per second, frames of a batch;
    whether latency counts, since each frame waits for the one before. With ``takes_soonest``
    that of the architecture is taken whose result comes soonest: a rate is one to keep up with.

    Raises
    ------
    NnefHwError
        If there is none: why each architecture was refused.
    """
    return candidates.plan(
        lambda architecture: architecture.plan(
            fixed,
            target,
            clock_mhz=clock_mhz,
            target_fps=target_fps,
            layer_counters=layer_counters,
            batch=batch,
            by_latency=by_latency,
        ),
        smallest=target_fps is not None and not takes_soonest,
        by_latency=by_latency or takes_soonest,
    )


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of a plan: what to ask for, to get it.

    Parameters
    ----------
    clock_mhz, target_fps
        Clock and rate; None for the board's clock, and for the fastest design.
    arch
        Name of the architecture.
    """

    clock_mhz: float | None = None
    target_fps: float | None = None
    arch: str = AUTO


def choose_soonest(
    candidates: Candidates,
    fixed: Graph,
    target: Target,
    clocks: Sequence[float],
    *,
    clock_mhz: float | None = None,
    layer_counters: bool = False,
    batch: int = 1,
    by_latency: bool = False,
) -> tuple[Pace, AcceleratorPlan, list[OtherArchitecture]]:
    """Return the plan of any architecture whose result comes soonest, and its pace.

    And what a report says of the others. ``clocks`` are slower ones to try; see
    :func:`choose_plan` for the rest.

    Raises
    ------
    NnefHwError
        If there is none: why each architecture was refused.
    """
    paces: dict[str, Pace] = {}

    def make(architecture: AnyArchitecture) -> AcceleratorPlan:
        paces[architecture.name], plan = soonest_plan(
            architecture, fixed, target, clocks, clock_mhz=clock_mhz,
            layer_counters=layer_counters, batch=batch, by_latency=by_latency,
        )  # fmt: skip
        return plan

    plan, others = candidates.plan(make, smallest=False, by_latency=True)
    return paces[plan.arch], plan, others


def soonest_plan(
    architecture: AnyArchitecture,
    fixed: Graph,
    target: Target,
    clocks: Sequence[float],
    *,
    clock_mhz: float | None = None,
    layer_counters: bool = False,
    batch: int = 1,
    by_latency: bool = False,
) -> tuple[Pace, AcceleratorPlan]:
    """Return one architecture's plan whose result comes soonest, as of :func:`quickest`."""

    def plan(pace: Pace) -> AcceleratorPlan:
        made: AcceleratorPlan = architecture.plan(
            fixed, target, clock_mhz=pace.clock_mhz or clock_mhz, target_fps=pace.target_fps,
            layer_counters=layer_counters, batch=batch, by_latency=by_latency,
        )  # fmt: skip
        return made

    pace, found = quickest(plan, clock_mhz or target.clock_mhz, clocks)
    return replace(pace, arch=architecture.name), found


def quickest(
    plan: Callable[[Pace], AcceleratorPlan], usual_mhz: float, clocks: Sequence[float]
) -> tuple[Pace, AcceleratorPlan]:
    """Return the plan whose result comes soonest after its frame, and its pace.

    The shortest interval that any design has is found first, if it is larger than the usual design
    as well. At a slower clock more is done between two registers, so that a result takes fewer
    cycles: with that interval it may come sooner.

    Parameters
    ----------
    plan
        Makes a plan, or raises an error.
    usual_mhz
        The clock without a wish.
    clocks
        Other clocks to try.

    Raises
    ------
    NnefHwError
        If there is no plan at the usual clock.
    """
    first = plan(Pace())
    found = {Pace(): first}

    def reaches(clock_mhz: float, interval: int) -> bool:
        pace = Pace(clock_mhz, clock_mhz * 1e6 / interval * (1 - RATE_SLACK))
        try:
            found[pace] = plan(pace)
        except NnefHwError:
            return False
        return True

    interval = 1 if reaches(usual_mhz, 1) else first.interval
    while interval > 1 and reaches(usual_mhz, interval // 2):
        interval //= 2
    for clock in clocks:
        reaches(clock, interval)
    best = min(found, key=lambda pace: found[pace].latency / (pace.clock_mhz or usual_mhz))
    return best, found[best]
