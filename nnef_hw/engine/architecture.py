"""The engine architecture: one array, shared by all layers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from nnef_hw.architecture.architecture import Architecture, Kept
from nnef_hw.architecture.room import WeightRoom
from nnef_hw.architecture.timeline import Timeline, Work
from nnef_hw.arithmetic.records import Fields, JsonObject
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.support import check_engine
from nnef_hw.engine.memory.choices import MEMORY, restored
from nnef_hw.engine.memory.store import find_store, stores
from nnef_hw.engine.network.lowering import lower
from nnef_hw.engine.planning.plan import SIMULATED, EnginePlan
from nnef_hw.engine.planning.solver import ARCH, has_room, schedule_engine
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.listing import list_program
from nnef_hw.engine.report import make_timeline, report_plan
from nnef_hw.engine.retrained import fit_shifts, kept, retrained
from nnef_hw.engine.timing.timing import simulate_frames
from nnef_hw.errors import NnefHwError, UsageError
from nnef_hw.hardware.devices import Resources, Target, find_device
from nnef_hw.ir import Graph
from nnef_hw.report.model.report import Insides

__all__ = ["SharedArray"]

MOST_BATCH = 64
"""Frames of a batch: the board counts up to 255 that are inside."""


def _ends(plan: EnginePlan, frames: int) -> Sequence[int]:
    """Return when so many frames end, and those that fill up their last batch."""
    store = plan.design.store
    if store is None or store.repeats:
        frames = min(frames, SIMULATED * plan.batch)
    return simulate_frames(plan.design, frames).last_outputs


class SharedArray(Architecture[EnginePlan]):
    """Layers run one after the other on one array; docs/engine.md."""

    name = ARCH
    takes_whole = True
    loads_program = True

    def problems(self, graph: Graph) -> list[NnefHwError]:
        return check_engine(graph)

    def weight_room(self, target: Target) -> WeightRoom | None:
        if any(stores(target, target.clock_mhz)):
            return None
        device = target.device
        return WeightRoom(ARCH, device.bram * prod(device.ram.shapes[0]), "block RAMs")

    def may_fit(self, graph: Graph, target: Target, *, layer_counters: bool = False) -> bool:
        del layer_counters
        return has_room(graph, target)

    def plan(
        self,
        graph: Graph,
        target: Target,
        *,
        clock_mhz: float | None = None,
        target_fps: float | None = None,
        layer_counters: bool = False,
        batch: int = 1,
        by_latency: bool = False,
    ) -> EnginePlan:
        del by_latency  # a frame begins when the one before has left
        if not 1 <= batch <= MOST_BATCH:
            raise UsageError(f"--batch must be 1 to {MOST_BATCH}, not {batch}")
        if batch > 1 and graph.states:
            raise UsageError(
                f"--batch {batch} computes frames together, of which each needs the states that "
                "the one before leaves", remedy="omit --batch",
            )  # fmt: skip
        if layer_counters:
            raise UsageError(
                "--layer-counters count layers that have hardware of their own",
                remedy="omit them: the layers of an engine take the cycles of the report in turn",
            )
        return schedule_engine(
            graph, target, clock_mhz=clock_mhz, target_fps=target_fps, batch=batch
        )

    def decisive(
        self, target: Target, clock_mhz: float, target_fps: float | None
    ) -> tuple[Hashable, ...]:
        return *super().decisive(target, clock_mhz, target_fps), *stores(target, clock_mhz)

    def read_plan(self, value: JsonObject, graph: Graph) -> EnginePlan:
        device = find_device(value["device"])
        shape = Shape(value["rows"], value["lanes"], value["sliding"], value.get("results", 1))
        memory = value.get(MEMORY)
        design = Design(
            lower(graph, device), shape, device,
            store=None if memory is None else find_store(memory),
            **restored(Design, value), **restored(Design, memory or {}, MEMORY),
        )  # fmt: skip
        if "bitstream" in value:
            kept = value["bitstream"]
            existing = replace(
                design.engine.with_kept(kept),
                fields=dict(kept["fields"]),
                same_fields={name: (width, same) for name, width, same in kept["same_fields"]},
            )
            design = replace(design, existing=existing)
        plan = EnginePlan(design, value["board"], value["clock_mhz"], Resources(**value["link"]))
        if value != plan.to_json():
            raise ValueError("the plan is not one of this model")
        return plan

    def program(self, plan: EnginePlan) -> list[Fields]:
        return list(list_program(plan.design))

    def kept(self, plan: EnginePlan) -> Kept:
        return kept(plan.design)

    def retrained(self, plan: EnginePlan, graph: Graph, *, free: bool) -> tuple[EnginePlan, Graph]:
        if free:
            graph = fit_shifts(graph, plan.design)
        return replace(plan, design=retrained(graph, plan.design)), graph

    def component(
        self,
        plan: EnginePlan,
        graph: Graph,
        *,
        restartable: bool = False,
        counted: bool = False,
    ) -> Any:
        del graph
        assert not counted, "no engine is planned with counters of its layers"
        # Planning alone needs no Amaranth, which takes half a second to import.
        from nnef_hw.engine.hardware.accelerator import EngineAccelerator

        return EngineAccelerator(plan, restartable=restartable)

    def predict_interval(self, plan: EnginePlan, frames: int) -> int | None:
        ends = _ends(plan, frames)
        frames = min(plan.batch, len(ends) - 1)
        return -(-(ends[-1] - ends[-1 - frames]) // frames) if frames else None

    def predict_spacing(self, plan: EnginePlan, frames: int) -> int:
        ends = _ends(plan, max(frames, 2 * plan.batch))
        return ends[-1] - ends[-1 - plan.batch]

    def predict_work(self, plan: EnginePlan, begin: int, end: int, frames: int) -> tuple[Work, ...]:
        """Return the work of every station in so many intervals, all of which are alike."""
        del frames
        count = end - begin
        return tuple(
            Work(count * busy, count * waiting, count * (plan.interval - busy - waiting))
            for busy, waiting in plan.work
        )

    def timeline(self, plan: EnginePlan) -> Timeline:
        return make_timeline(plan)

    def report(self, plan: EnginePlan, graph: Graph, target: Target, timeline: Timeline) -> Insides:
        del timeline
        return report_plan(plan, graph, target)
