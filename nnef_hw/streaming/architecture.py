"""The streaming architecture: hardware of its own for every layer."""

from __future__ import annotations

from typing import Any

from nnef_hw.architecture.architecture import Architecture
from nnef_hw.architecture.room import WeightRoom
from nnef_hw.architecture.timeline import Timeline, Work
from nnef_hw.arithmetic.records import JsonObject
from nnef_hw.errors import NnefHwError, UsageError
from nnef_hw.hardware.devices import Target
from nnef_hw.ir import Graph
from nnef_hw.report.model.report import Insides
from nnef_hw.streaming.beats.activity import make_timeline, predict_work
from nnef_hw.streaming.beats.beats import predict_interval, predict_spacing
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.foldings.plan import StreamingPlan
from nnef_hw.streaming.foldings.siblings import apart
from nnef_hw.streaming.foldings.support import check_streamable
from nnef_hw.streaming.report import report_plan
from nnef_hw.streaming.search.misfit import ARCH, may_fit, weight_room
from nnef_hw.streaming.search.solver import schedule

__all__ = ["Streaming"]


class Streaming(Architecture[StreamingPlan]):
    """Activations flow from layer to layer; docs/streaming.md."""

    name = ARCH

    def problems(self, graph: Graph) -> list[NnefHwError]:
        return check_streamable(graph)

    def weight_room(self, target: Target) -> WeightRoom:
        return weight_room(target)

    def may_fit(self, graph: Graph, target: Target, *, layer_counters: bool = False) -> bool:
        return may_fit(lower(graph), target, layer_counters=layer_counters)

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
    ) -> StreamingPlan:
        if batch != 1:
            raise UsageError(
                "--batch is for layers that take turns: streaming has all weights on the chip",
                remedy="omit it, or give --arch engine",
            )
        return schedule(
            graph, target, clock_mhz=clock_mhz, target_fps=target_fps,
            layer_counters=layer_counters, by_latency=by_latency,
        )  # fmt: skip

    def read_plan(self, value: JsonObject, graph: Graph) -> StreamingPlan:
        return StreamingPlan.from_json(value, lower(apart(graph) if value["apart"] else graph))

    def component(
        self, plan: StreamingPlan, graph: Graph, *, restartable: bool = False, counted: bool = False
    ) -> Any:
        # Planning alone needs no Amaranth, which takes half a second to import.
        from nnef_hw.streaming.hardware.accelerator import Accelerator

        return Accelerator(plan, graph, restartable=restartable, counted=counted)

    def predict_interval(self, plan: StreamingPlan, frames: int) -> int | None:
        return predict_interval(plan, frames)

    def predict_spacing(self, plan: StreamingPlan, frames: int) -> int:
        return predict_spacing(plan, frames)

    def predict_work(
        self, plan: StreamingPlan, begin: int, end: int, frames: int
    ) -> tuple[Work, ...]:
        return predict_work(plan, begin, end, frames)

    def timeline(self, plan: StreamingPlan) -> Timeline:
        return make_timeline(plan)

    def report(
        self, plan: StreamingPlan, graph: Graph, target: Target, timeline: Timeline
    ) -> Insides:
        return report_plan(plan, graph, target, timeline)
