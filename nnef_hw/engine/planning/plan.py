"""The Plan of an engine: its size, and the cycles that follow."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from nnef_hw.architecture.architecture import Port, border_queues
from nnef_hw.arithmetic.records import Fields, JsonObject
from nnef_hw.engine.layers.ends import Head, Tail
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.memory.choices import MEMORY, saved
from nnef_hw.engine.network.network import Sink
from nnef_hw.engine.planning.resources import border_resources, engine_resources
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.image import ProgramImage, loaded_bytes
from nnef_hw.engine.timing.timing import FrameTimes, Span, simulate_frames, spans
from nnef_hw.hardware.devices import Resources, Target
from nnef_hw.ir import Graph, Node, stream_image
from nnef_hw.parts.base.part import Part
from nnef_hw.parts.engine.features import FEATURES
from nnef_hw.parts.engine.program import Kind

__all__ = ["SIMULATED", "EnginePlan", "LayerStation", "TailStation"]

NOTHING_KEPT = {name: 0 for feature in FEATURES for name in feature.kept_names()}
"""What follows from the weights, of features that an engine does not have."""
SIMULATED = 4
"""Frames, or batches, whose ends tell the interval: from the third on waits are as ever."""


def _description(node: Node, graph: Graph, others: str) -> str:
    shapes = [stream_image(graph.tensor(name).shape) for name in (node.inputs[0], node.name)]
    parts = [node.op, " -> ".join("x".join(map(str, shape)) for shape in shapes)]
    if node.location is not None:
        # The folders of the file are this machine's, not the model's.
        parts.append(re.sub(r".*[/]", "", str(node.location)))
    return ", ".join([*parts, others])


@dataclass(frozen=True)
class LayerStation:
    """A layer that the engine runs."""

    layer: EngineLayer
    size: Shape
    span: Span
    batch: int

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self.layer.name

    @property
    def instance(self) -> str:
        """Name of the engine's instance, which runs all layers."""
        return "engine"

    def describe(self, graph: Graph) -> str:
        """Say in a line what it runs."""
        return _description(self.layer.node, graph, f"{self.cycles} cycles of the engine")

    @property
    def shape(self) -> Mapping[str, int]:
        """The array's multipliers."""
        return {"rows": self.size.rows, "lanes": self.size.lanes, "taps": 1, "lines": 0}

    @property
    def cycles(self) -> int:
        """Cycles per frame: of a batch the mean, rounded up."""
        return -(-self.span.cycles // self.batch)


@dataclass(frozen=True)
class HeadStation:
    """A front end, between an input and the engine: cycles from a frame to the next one."""

    head: Head

    @property
    def node(self) -> Node:
        """The node."""
        return self.head.node

    @property
    def part(self) -> Part:
        """Part that computes it."""
        return self.head.part

    @property
    def cycles(self) -> int:
        """Cycles per frame of the network."""
        return self.head.begin.cycles

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self.node.name

    @property
    def instance(self) -> str:
        """Name of the head's instance."""
        return self.head.instance

    def describe(self, graph: Graph) -> str:
        """Say in a line what it runs."""
        return _description(self.node, graph, "in front of the engine")

    @property
    def shape(self) -> Mapping[str, int]:
        """Multipliers of a head: none of the array's."""
        return {"rows": 0, "lanes": 1, "taps": 1, "lines": 0}


@dataclass(frozen=True)
class TailStation:
    """A last node, between the engine and an output: from its first code to its last result."""

    sink: Sink
    cycles: int

    @property
    def node(self) -> Node:
        """The node."""
        return self.tail.node

    @property
    def tail(self) -> Tail:
        """Tail that runs the layer."""
        assert self.sink.tail is not None
        return self.sink.tail

    @property
    def part(self) -> Part:
        """Part that computes it."""
        return self.tail.part

    @property
    def name(self) -> str:
        """Name of the layer."""
        return self.node.name

    @property
    def instance(self) -> str:
        """Name of the tail's instance."""
        return self.sink.instance

    def describe(self, graph: Graph) -> str:
        """Say in a line what it runs."""
        return _description(self.node, graph, "behind the engine")

    @property
    def shape(self) -> Mapping[str, int]:
        """Multipliers of a tail: none."""
        return {"rows": 0, "lanes": 1, "taps": 1, "lines": 0}


@dataclass(frozen=True, eq=False)
class EnginePlan:
    """A network on an engine, for a target.

    Parameters
    ----------
    design
        The network and the engine.
    board, clock_mhz
        Where it goes, and the clock that it has there.
    link
        Resources of the host link.
    """

    design: Design
    board: str
    clock_mhz: float
    link: Resources
    arch: str = "engine"

    @classmethod
    def of(cls, design: Design, target: Target, clock_mhz: float | None) -> EnginePlan:
        """Return the plan of a design for a target."""
        plan = cls(design, target.name, clock_mhz or target.clock_mhz, Resources())
        queues = border_queues(plan.inputs, plan.outputs, target)
        return replace(plan, link=border_resources(target) + queues)

    @property
    def model(self) -> str:
        """Name of the graph."""
        return self.design.network.name

    @property
    def device(self) -> str:
        """Name of the FPGA."""
        return self.design.device.name

    @property
    def inputs(self) -> tuple[Port, ...]:
        """Input streams."""
        pairs = zip(self.design.network.sources, self.design.placement.inputs, strict=True)
        return tuple(port if x.head is None else x.head.port for x, port in pairs)

    @property
    def outputs(self) -> tuple[Port, ...]:
        """Output streams."""
        return tuple(sink.port for sink in self.design.network.sinks)

    @cached_property
    def spans(self) -> tuple[Span, ...]:
        """Loads, layers and sends."""
        return spans(self.design)

    def graph_of(self, graph: Graph) -> Graph:
        """Return the graph itself."""
        return graph

    @cached_property
    def stations(self) -> tuple[HeadStation | LayerStation | TailStation, ...]:
        """Layers, and what stands in front of the engine and behind it."""
        heads = (source.head for source in self.design.network.sources)
        found: list[HeadStation | LayerStation | TailStation] = [
            HeadStation(head) for head in heads if head is not None
        ]
        found += [
            LayerStation(layer, self.design.shape, span, self.batch)
            for layer, span in zip(self.design.frame_layers, self.layer_spans, strict=True)
        ]
        times = self._times
        for sink, sends, ends in zip(
            self.design.network.sinks, times.sends, times.results, strict=True
        ):
            if sink.tail is not None:
                found.append(TailStation(sink, ends[0] - sends[0]))
        return tuple(found)

    def spans_of(self, kind: Kind, n: int) -> list[Span]:
        """Return the spans of an input, layer or output: several, if frames take turns."""
        steps = zip(self.spans, self.design.placement.steps.sequence, strict=True)
        return [span for span, step in steps if (step.kind, step.n) == (kind, n)]

    @cached_property
    def layer_spans(self) -> tuple[Span, ...]:
        """Layers, from their first begin, with the cycles of all frames."""
        found = (self.spans_of(Kind.RUN, n) for n in range(len(self.design.frame_layers)))
        return tuple(map(Span.total, found))

    @property
    def batch(self) -> int:
        """Frames that it takes before it gives the result of the first one."""
        return self.design.batch

    @property
    def first_input(self) -> int:
        """Cycles from the begin of the load to the first beat of the input."""
        return self.design.engine.pipeline.before_load + self.design.placement.loadings[0].lead

    @cached_property
    def _times(self) -> FrameTimes:
        return simulate_frames(self.design, SIMULATED * self.batch)

    @property
    def batch_cycles(self) -> int:
        """Cycles per batch: one is taken when the one before has left the engine."""
        ends = self._times.last_outputs
        return ends[-1] - ends[-1 - self.batch]

    @property
    def interval(self) -> int:
        """Cycles per frame: the mean of a batch, rounded up."""
        return -(-self.batch_cycles // self.batch)

    @property
    def latency(self) -> int:
        """Cycles from the first beat of the input to the last of the output, after a reset."""
        return self._times.latency

    @property
    def period(self) -> int:
        """Frames after which the pattern of results repeats."""
        return self.batch

    @property
    def settling(self) -> int | None:
        """Frames before it does: what comes from a memory may be ahead at first."""
        ends, batch = self._times.last_outputs, self.batch
        steps = [later - earlier for earlier, later in zip(ends, ends[batch:], strict=False)]
        uneven = (n for n, step in enumerate(steps, batch) if step != self.batch_cycles)
        return max(uneven, default=0) + 1

    @property
    def images(self) -> tuple[ProgramImage, ...]:
        """The program, if it comes from a memory of the board."""
        return () if self.design.store is None else (ProgramImage(self.design),)

    @cached_property
    def loaded(self) -> bytes | None:
        """The program, if a system may write another one in its place."""
        return loaded_bytes(self.design) if self.design.is_loaded else None

    @property
    def layer_counters(self) -> bool:
        """The board counts frames, not layers."""
        return False

    @cached_property
    def resources(self) -> Resources:
        """Estimate of the whole design with its host link."""
        return engine_resources(self.design) + self.link

    @property
    def macs(self) -> int:
        """Multiply-accumulates per frame."""
        return sum(layer.macs for layer in self.design.layers)

    @property
    def multipliers(self) -> int:
        """Multipliers of the array."""
        return self.design.engine.array.multipliers

    @property
    def mac_utilization(self) -> float:
        """``macs / (cycles per frame * multipliers)``."""
        return self.macs * self.batch / (self.batch_cycles * self.multipliers)

    @property
    def work(self) -> tuple[tuple[int, int], ...]:
        """Cycles per frame in which each station takes words, and in which it has to wait.

        Of batches the means, rounded down.
        """
        found = [
            (span.busy // self.batch, (span.cycles - span.busy) // self.batch)
            for span in self.layer_spans
        ]
        sinks = self.design.network.sinks
        heads = ((x.cycles, 0) for x in self.stations if isinstance(x, HeadStation))
        tails = ((sink.codes, 0) for sink in sinks if sink.tail is not None)
        return (*heads, *found, *tails)

    def to_json(self) -> JsonObject:
        """Plain JSON values: size, cycles, and the first word of every tensor in memory."""
        design = self.design
        return {
            "model": self.model,
            "board": self.board,
            "device": self.device,
            "arch": self.arch,
            "clock_mhz": self.clock_mhz,
            "rows": design.shape.rows,
            "lanes": design.shape.lanes,
            "sliding": design.shape.sliding,
            **({"results": design.shape.results} if design.shape.results > 1 else {}),
            "interval": self.interval,
            "latency": self.latency,
            "link": self.link.to_json(),
            **saved(design),
            **self._memory,
            **self._bitstream,
            "cycles": dict(self._cycles),
            "words": dict(design.placement.places),
        }

    @property
    def _cycles(self) -> Counter[str]:
        """Cycles of loads and layers in a batch."""
        found: Counter[str] = Counter()
        for span in self.spans[: -len(self.design.placement.steps.sends)]:
            found[span.name] += span.cycles
        return found

    @property
    def _memory(self) -> Fields:
        """Where the program comes from, if it comes as a stream."""
        design = self.design
        if design.store is None:
            return {}
        size = {"bytes": 2 * design.packets.image_words}
        return {MEMORY: {**design.store.to_json(), **size, **saved(design, MEMORY)}}

    @property
    def _bitstream(self) -> Fields:
        """Choices that do not follow from the model, if the engine is that of a bitstream."""
        existing = self.design.existing
        if existing is None:
            return {}
        # The order of fields decides about their places.
        fields = [[name, width] for name, width in existing.fields.items()]
        same = [[name, *known] for name, known in existing.same_fields.items()]
        kept = {**NOTHING_KEPT, **existing.kept}
        return {"bitstream": {**kept, "fields": fields, "same_fields": same}}

    def dumps(self) -> str:
        """Return the text of ``plan.json``."""
        return json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n"
