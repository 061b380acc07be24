"""Remedies of refusals: one way that was planned and works, with its cost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import floor

from nnef_hw.architecture.architecture import AcceleratorPlan, AnyArchitecture
from nnef_hw.architectures import ARCHITECTURES, AUTO, able_architectures
from nnef_hw.boards import BOARDS, Board
from nnef_hw.boards.interfaces import NO_LINK
from nnef_hw.codegen.board import check_clock
from nnef_hw.errors import NnefHwError, ShortageError, TargetError
from nnef_hw.flow.choice import best_plan
from nnef_hw.flow.options import NO_BOARD, find_target
from nnef_hw.hardware.devices import DEVICES, Target
from nnef_hw.ir import Graph, Tensor
from nnef_hw.quantize.search import WIDTHS
from nnef_hw.report.wording import units

__all__ = ["Asked", "Ways", "remedied"]

Narrowed = Callable[[int], Graph]
"""Gives the fixed graph of a model with weights of so many bits."""
WIDEST, NARROWEST = 7, min(WIDTHS)


@dataclass(frozen=True, slots=True)
class Asked:
    """Wishes of a plan: arguments of :meth:`.Architecture.plan`, and the rate of sensors.

    Parameters
    ----------
    least_fps
        Frames per second that a sensor gives: a plan of a lower rate is no remedy.
    lone
        The host link may be left out: sensors give all inputs, and sinks take results.
    """

    arch: str = AUTO
    clock_mhz: float | None = None
    target_fps: float | None = None
    layer_counters: bool = False
    batch: int = 1
    least_fps: float = 0.0
    lone: bool = False


class Ways:
    """Other ways to build a network than the one that was asked for.

    Parameters
    ----------
    fixed
        The network; ranges may be rough.
    asked
        What was asked for.
    narrowed
        The same with narrower weights; None where their width is not to be chosen.
    planned
        Plans that are known already: by the name of the architecture and what decides over them.
    """

    def __init__(
        self,
        fixed: Graph,
        asked: Asked,
        narrowed: Narrowed | None = None,
        planned: Mapping[tuple[Hashable, ...], AcceleratorPlan | NnefHwError] | None = None,
    ) -> None:
        self._graphs: dict[int | None, Graph] = {None: fixed}
        self._asked = asked
        self._narrowed = narrowed
        self._plans: dict[tuple[Hashable, ...], AcceleratorPlan | None] = {
            (None, asked.target_fps, *key): None if isinstance(plan, NnefHwError) else plan
            for key, plan in (planned or {}).items()
        }

    def best(self, target: Target) -> str:
        """Return the first remedy of these that works, with its cost.

        Another architecture on the same target, the same without a host link, a lower rate, another
        board (or, for plain IP,
        another device; the smallest that is no smaller, if there is one), narrower weights.
        """
        ways = (
            self._other_architecture, self._without_link, self._lower_rate, self._other_target,
            self._narrower_weights,
        )  # fmt: skip
        found = next(filter(None, (way(target) for way in ways)), None)
        if found is not None:
            return found
        kind = "device" if target.name == NO_BOARD else "board"
        text = f"no {kind} known here was found to have room for it"
        if self._exceeds(target) or self._narrows:
            text += f", nor has this one with weights of {NARROWEST} bits"
        return f"{text}; use fewer or smaller layers"

    def _other_architecture(self, target: Target) -> str | None:
        for architecture in ARCHITECTURES if self._asked.arch != AUTO else ():
            asked = replace(self._asked, arch=architecture.name)
            if asked != self._asked and (plan := self._plan(target, asked)):
                return f"use --arch {asked.arch}: {self._cost(plan, target)}"
        return None

    def _without_link(self, target: Target) -> str | None:
        board = next((board for board in BOARDS if board.name == target.name), None)
        if not self._asked.lone or board is None:
            return None
        lut, bram = NO_LINK.budget(board.link_lut, board.link_bram)
        lone = replace(
            target, link_lut=target.link_lut - board.link_lut + lut,
            link_bram=target.link_bram - board.link_bram + bram,
        )  # fmt: skip
        plan = self._plan(lone, self._asked)
        return f"use --link {NO_LINK.name}: {self._cost(plan, lone)}" if plan else None

    def _lower_rate(self, target: Target) -> str | None:
        if self._asked.target_fps is None:
            return None
        fastest = self._plan(target, replace(self._asked, target_fps=None))
        if fastest is None:
            return None
        rate = self._per_second(fastest, target)
        # No more than that, in digits that can be typed.
        lower = floor(rate) if rate >= 1 else floor(1000 * rate) / 1000
        if lower < self._asked.least_fps:
            return None
        plan = lower and self._plan(target, replace(self._asked, target_fps=lower))
        return f"use --target-fps {lower}: {self._cost(plan, target)}" if plan else None

    def _other_target(self, target: Target) -> str | None:
        others: list[tuple[str, Target]] = [(f"--board {board.name}", board) for board in BOARDS]
        if target.name == NO_BOARD:
            others = [(f"--device {x.name}", find_target(NO_BOARD, x.name)) for x in DEVICES]
        least = target.device.lut
        # The next larger ones first: smaller ones have room elsewhere, and are slow.
        for option, other in sorted(
            others, key=lambda pair: (pair[1].device.lut < least, pair[1].device.lut)
        ):
            if other.device != target.device and self._has_clock(other):
                plan = self._plan(other, self._asked)
                if plan is not None:
                    return f"use {option}: {self._cost(plan, other)}"
        return None

    def _narrower_weights(self, target: Target) -> str | None:
        # The narrowest first, which says soon that none would do.
        if self._exceeds(target) or not self._narrows:
            return None
        if self._plan(target, self._asked, NARROWEST) is None:
            return None
        now = _weight_bytes(self._graph(None))
        for bits in range(WIDEST, NARROWEST - 1, -1):
            plan = self._plan(target, self._asked, bits)
            if plan is not None and (then := _weight_bytes(self._graph(bits))) < now:
                cost = f"weights of {then:,} bytes instead of {now:,}"
                return f"use --weight-bits {bits}: {self._cost(plan, target)}, {cost}"
        return None

    def _exceeds(self, target: Target) -> bool:
        """Whether even the narrowest weights are too many: known before these are quantized."""
        if self._narrowed is None:
            return False
        least = NARROWEST * sum(x.volume for x in _weights(self._graph(None)))
        rooms = [
            architecture.weight_room(target)
            for architecture in able_architectures(self._asked.arch, self._graph(None))
        ]
        return all(room is not None and least > room.bits for room in rooms)

    @property
    def _narrows(self) -> bool:
        """Whether narrower weights are a way: those that the author quantized stay as they are."""
        if self._narrowed is None:
            return False
        return _weight_bytes(self._graph(NARROWEST)) < _weight_bytes(self._graph(None))

    def _has_clock(self, target: Target) -> bool:
        if self._asked.clock_mhz is not None and isinstance(target, Board):
            try:
                check_clock(target, self._asked.clock_mhz)
            except TargetError:
                return False
        return True

    def _graph(self, bits: int | None) -> Graph:
        if bits not in self._graphs:
            assert self._narrowed is not None
            assert bits is not None
            self._graphs[bits] = self._narrowed(bits)
        return self._graphs[bits]

    def _plan(
        self, target: Target, asked: Asked, bits: int | None = None
    ) -> AcceleratorPlan | None:
        """Return the plan that a build would take; None if there is none."""
        graph = self._graph(bits)
        try:
            able = able_architectures(asked.arch, graph)
        except NnefHwError:
            return None
        each = (self._plan_one(architecture, graph, target, asked, bits) for architecture in able)
        plans = [plan for plan in each if plan is not None]
        return best_plan(plans, smallest=asked.target_fps is not None) if plans else None

    def _plan_one(
        self,
        architecture: AnyArchitecture,
        graph: Graph,
        target: Target,
        asked: Asked,
        bits: int | None,
    ) -> AcceleratorPlan | None:
        decisive = architecture.decisive(
            target, asked.clock_mhz or target.clock_mhz, asked.target_fps
        )
        key = (bits, asked.target_fps, architecture.name, *decisive)
        if key not in self._plans:
            self._plans[key] = _planned(architecture, graph, target, asked)
        return self._plans[key]

    def _per_second(self, plan: AcceleratorPlan, target: Target) -> float:
        return (self._asked.clock_mhz or target.clock_mhz) * 1e6 / plan.interval

    def _cost(self, plan: AcceleratorPlan, target: Target) -> str:
        rate = units.rate(self._per_second(plan, target))
        return f"{plan.interval:,} cycles, {rate} inferences/s"


@contextlib.contextmanager
def remedied(ways: Callable[[], Ways], target: Target) -> Iterator[None]:
    """Add to a refusal for what a target lacks the one way that works.

    Raises
    ------
    ShortageError
        As the block does, with a remedy.
    """
    try:
        yield
    except ShortageError as error:
        error.remedy = ways().best(target)
        raise


def _planned(
    architecture: AnyArchitecture, graph: Graph, target: Target, asked: Asked
) -> AcceleratorPlan | None:
    try:
        if not architecture.may_fit(graph, target, layer_counters=asked.layer_counters):
            return None
        plan: AcceleratorPlan = architecture.plan(
            graph, target, clock_mhz=asked.clock_mhz, target_fps=asked.target_fps,
            layer_counters=asked.layer_counters, batch=asked.batch,
        )  # fmt: skip
    except NnefHwError:
        return None
    return plan


def _weight_bytes(graph: Graph) -> int:
    """Return how many bytes the constants of layers take that have formats of their own."""
    return sum(x.volume * x.qtype.bits for x in _weights(graph) if x.qtype is not None) // 8


def _weights(graph: Graph) -> list[Tensor]:
    """List the constants of layers that have formats of their own."""
    return [x for x in graph.tensors.values() if x.data is not None and x.qtype is not None]
