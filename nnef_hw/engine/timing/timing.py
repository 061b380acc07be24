"""When a frame is loaded, computed and sent: the cycles of the hardware, exactly."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.engine.layers.unit import UnitLayer
from nnef_hw.engine.memory.steps import Step
from nnef_hw.engine.network.network import Sink
from nnef_hw.engine.program.design import Design
from nnef_hw.engine.program.division import Run
from nnef_hw.engine.program.issue import Issue
from nnef_hw.engine.timing.arrivals import Arrivals
from nnef_hw.engine.timing.feed import Feed
from nnef_hw.engine.timing.passage import passage_cycles
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.engine.program import Kind

__all__ = ["FrameTimes", "Span", "simulate_frames", "spans", "waits"]

SETTLING = 2
"""Frames after which weights come as they will in all that follow."""


class Span(NamedTuple):
    """Cycles of a step of the program, from that in which it begins to that before the next begins.

    Attributes
    ----------
    name
        Of the layer, or of the tensor that is loaded or sent.
    begin, cycles
        When, after the begin of the load; how many.
    busy
        Cycles in which it takes a code or reads a word, or gives a code.
    stalled
        Cycles in which it waits for weights.
    """

    name: str
    begin: int
    cycles: int
    busy: int
    stalled: int = 0

    @classmethod
    def total(cls, spans: Sequence[Span]) -> Span:
        """Return several of one name as if they were one, from the first begin on."""
        name, begin, *_ = spans[0]
        return cls(
            name, begin, *(sum(counts) for counts in zip(*(x[2:] for x in spans), strict=True))
        )


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """Times at which frames enter and leave that come without a pause.

    Attributes
    ----------
    first_inputs
        Cycle of each frame's first beat at the first input.
    sends, results
        By output, the cycles of its first code that leaves the engine, and of its last beat.
    last_outputs
        Cycle of each frame's last beat of all outputs.
    """

    first_inputs: tuple[int, ...]
    sends: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    last_outputs: tuple[int, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first input of the first frame to its last output."""
        return self.last_outputs[0] - self.first_inputs[0]


def spans(design: Design) -> tuple[Span, ...]:
    """Return loads, layers and sends of a batch like all that follow, in their order."""
    frames, end = _settled(design)
    return frames.spans(end)


def waits(design: Design) -> tuple[int, ...]:
    """Return the cycles that every instruction of such a frame waits for its packet."""
    return tuple(_settled(design)[0].waits)


def _settled(design: Design) -> tuple[_Frames, int]:
    """Return some frames, and the cycle in which the last one was sent."""
    frames, end = _Frames(design), -1
    engine, lanes = design.engine, design.shape.lanes
    for _ in range(SETTLING + 1):
        end = frames.compute(end)
        for step in design.placement.steps.sends:
            sink, count = design.network.sinks[step.n], step.frames
            begin = frames.send(sink, count, end)
            words = sink.image.words(lanes) * count
            end = begin + engine.pipeline.before_send + sink.codes * count - 1
            end += (words - 1) * (engine.pipeline.between_words - 1) + engine.pipeline.border_delay
            frames.ended(end)
    return frames, end


class _Frames:
    """Frame after frame, or batch after batch, on an engine, from the first cycle on.

    Attributes
    ----------
    inputs
        Cycles of the first beat at the first input of every frame of the last batch.
    waits
        Cycles that every instruction of the last batch waited for its packet; 0 of those that run
        once.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._feed = Feed(design)
        self._arrivals = [
            None if x.head is None else Arrivals(x.head) for x in design.network.sources
        ]
        self.inputs: list[int] = []
        self.waits: list[int] = []
        # Of every step of the batch: name, when it would begin if nothing had to come, words, stall
        self._steps: list[tuple[str, int, int, int]] = []
        self._settles = 0

    def _begin(self, end: int, least: int) -> tuple[int, int]:
        """Return when an instruction begins, and when it did if nothing of it had to come.

        Parameters
        ----------
        end
            Cycle in which the one before ended.
        least
            Cycles that have to go by until it begins.
        """
        setup = self._design.engine.pipeline.setup
        rows, everything = self._feed.packet()
        alone = end + 1 + max(setup, least)
        begin = max(alone, rows + setup, everything)
        self._feed.begin(begin)
        self.waits.append(begin - alone)
        return begin, alone

    def compute(self, end: int) -> int:
        """Load and compute the next batch, if inputs are ready; return the cycle of its last word.

        Parameters
        ----------
        end
            Cycle in which the batch before was sent.
        """
        program = self._design.program
        if end < 0:
            for run in program.division.first_runs:
                end = self._run(run, end)
        self._steps.clear()
        self.waits[:] = [0] * program.first
        self.inputs.clear()
        runs = iter(program.runs[len(program.division.first_runs) :])
        for step in self._design.placement.steps.sequence:
            if step.kind == Kind.LOAD:
                end = self._load(step, end)
            elif step.kind == Kind.RUN:
                end = self._run(next(runs), end)
        return end

    def _load(self, step: Step, end: int) -> int:
        """Return when frames of an input have been loaded, after what ends in a cycle."""
        design, engine, count = self._design, self._design.engine, step.frames
        source, loading = design.network.sources[step.n], design.placement.loadings[step.n]
        begin, alone = self._begin(end, self._settles)
        self._settles = 0
        first = begin + engine.pipeline.before_load
        arrivals = self._arrivals[step.n]
        if arrivals is not None:
            last, taken = first - 1, []
            for _ in range(count):
                taken.append(arrivals.begins[arrivals.frames])
                last = arrivals.taken(loading, last + 1)
        else:
            last = first + count * loading.cycles - 1
            frames = range(first, last + 1, loading.cycles)
            taken = [cycle + loading.lead for cycle in frames]
        if not step.n:
            self.inputs += taken
        self._feed.give(step.n, taken[0])
        end = last + engine.pipeline.border_delay
        self._feed.end(end)
        beats = count * design.placement.inputs[step.n].beats
        self._steps.append((source.tensor, alone, beats, begin - alone))
        return end

    def _run(self, run: Run, end: int) -> int:
        """Return the cycle of a layer's last word, in the same way."""
        design, layer = self._design, run.layer
        if isinstance(layer, UnitLayer):
            return self._stream(layer, run.step.frames, end)
        stalled, earliest = 0, None
        adds = layer.residual is not None
        issue = Issue(
            design.engine, by_lane=layer.by_lane, adds=adds, shares=design.placement.shares(layer)
        )  # fmt: skip
        settles = design.engine.pipeline.settle(adds=adds)
        for part in run.parts:
            waits = self._settles if earliest is None else settles
            follows = len(self.waits) in design.program.followers
            begin, alone = self._begin(end, 0 if follows else waits)
            earliest = alone if earliest is None else earliest
            stalled += begin - alone
            end = issue.run(part, begin, end)
            self._feed.end(end, issue.retired)
        self._settles = settles
        assert earliest is not None
        words = sum(part.nest.words for part in run.parts)
        self._steps.append((layer.name, earliest, words, stalled))
        return end

    def _stream(self, layer: UnitLayer, frames: int, end: int) -> int:
        """Return when a unit has computed a layer, in the same way."""
        design = self._design
        begin, alone = self._begin(end, self._settles)
        self._settles = 0
        part = layer.passed(design.program.units.of(layer).part).timing
        units = design.engine.units
        assert units is not None, layer.name
        end = begin + passage_cycles(design.engine.pipeline, units, part, layer.source, frames)
        self._feed.end(end)
        beats = frames * layer.beats(design.shape.lanes if units.lanes > 1 else 1)
        self._steps.append((layer.name, alone, beats, begin - alone))
        return end

    def send(self, sink: Sink, count: int, end: int) -> int:
        """Return when the send of an output's frames begins, after what ends in a cycle."""
        begin, alone = self._begin(end, self._settles)
        self._settles = 0
        self._steps.append((sink.tensor, alone, count * sink.codes, begin - alone))
        return begin

    def ended(self, end: int) -> None:
        """Tell when the instruction ended."""
        self._feed.end(end)

    def spans(self, end: int) -> tuple[Span, ...]:
        """Return the steps of the last frame, which was sent in a cycle."""
        start, setup = self._steps[0][1], self._design.engine.pipeline.setup
        ends = [*(begin for _, begin, *_ in self._steps[1:]), end + 1 + setup]
        return tuple(
            Span(name, begin - start, stop - begin, busy, stalled)
            for (name, begin, busy, stalled), stop in zip(self._steps, ends, strict=True)
        )


def simulate_frames(design: Design, frames: int) -> FrameTimes:
    """Run frames back to back, the inputs always valid and the outputs always ready.

    Those of batches are as many as fill the last one up.
    """
    kernel = Kernel()
    begins: list[int] = []
    sinks = design.network.sinks
    streams = [kernel.stream() for _ in sinks]
    sends: list[list[int]] = [[] for _ in sinks]
    kernel.start(_engine(design, streams, begins, sends, frames))
    ends = []
    for sink, stream in zip(sinks, streams, strict=True):
        behind = stream if sink.tail is None else sink.tail.part.start(kernel, stream)
        ends.append(times := array("q"))
        kernel.start(_sink(behind, times))
    kernel.run()
    lasts = [
        times[sink.port.beats - 1 :: sink.port.beats]
        for sink, times in zip(sinks, ends, strict=True)
    ]
    return FrameTimes(
        tuple(begins), tuple(map(tuple, sends)), tuple(map(tuple, lasts)),
        tuple(map(max, zip(*lasts, strict=True))),
    )  # fmt: skip


def _engine(
    design: Design,
    streams: Sequence[Stream],
    begins: list[int],
    sends: Sequence[list[int]],
    frames: int,
) -> Process:
    """Load, compute and send frame after frame, from the cycle after the reset on."""
    engine, lanes = design.engine, design.shape.lanes
    run, end = _Frames(design), -1
    for _ in range(-(-frames // design.batch)):
        end = run.compute(end)
        begins += run.inputs
        for step in design.placement.steps.sends:
            n, count = step.n, step.frames
            sink, stream = design.network.sinks[n], streams[n]
            time = end = run.send(sink, count, end) + engine.pipeline.before_send
            for pixel in range(count * sink.image.pixels):
                if pixel % sink.image.pixels == 0:
                    sends[n].append(time)
                for channel in range(sink.image.channels):
                    is_last = channel % lanes == lanes - 1 or channel == sink.image.channels - 1
                    end = yield stream, time
                    time = max(end + 1, time + (engine.pipeline.between_words if is_last else 1))
            end += engine.pipeline.border_delay
            run.ended(end)
    yield None


def _sink(origin: Stream, times: array[int]) -> Process:
    """Take every code at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)
