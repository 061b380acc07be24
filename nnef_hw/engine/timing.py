"""When a frame is loaded, computed and sent: the cycles of the hardware, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.engine.design import Design
from nnef_hw.engine.feed import Feed
from nnef_hw.engine.issue import Issue
from nnef_hw.parts.timing import Kernel, Process, Stream

__all__ = ["FrameTimes", "Span", "simulate_frames", "spans"]

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


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """When frames that come without a pause enter and leave.

    Attributes
    ----------
    first_inputs, sends, last_outputs
        Cycle of each frame's first beat at the input, of the first one that leaves the engine, and
        of its last one at the output.
    """

    first_inputs: tuple[int, ...]
    sends: tuple[int, ...]
    last_outputs: tuple[int, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first input of the first frame to its last output."""
        return self.last_outputs[0] - self.first_inputs[0]


def spans(design: Design) -> tuple[Span, ...]:
    """Return load, layers and send of a frame like all that follow."""
    frames, end = _Frames(design), -1
    found: tuple[Span, ...] = ()
    for _ in range(SETTLING + 1):
        found = frames.run(end)
        end = frames.start + found[-1].begin + found[-1].cycles - 1 - design.engine.setup
        frames.sent(end)
    return found


class _Frames:
    """Frame after frame on an engine, from the first cycle on.

    Attributes
    ----------
    start
        Cycle in which the load of the last frame would have begun if it had been there.
    loads, sends
        Cycles in which its load and its send began.
    """

    def __init__(self, design: Design) -> None:
        self._design = design
        self._feed = Feed(design)
        self.start = self.loads = self.sends = 0

    def _begin(self, end: int, least: int) -> tuple[int, int]:
        """Return when an instruction begins, and when it did if nothing of it had to come.

        Parameters
        ----------
        end
            Cycle in which the one before ended.
        least
            Cycles that have to go by until it begins.
        """
        setup = self._design.engine.setup
        rows, everything = self._feed.packet()
        alone = end + 1 + max(setup, least)
        return max(alone, rows + setup, everything), alone

    def run(self, end: int) -> tuple[Span, ...]:
        """Return load, layers and send of the next frame, if input and output are ready.

        Parameters
        ----------
        end
            Cycle in which the frame before was sent.
        """
        design, feed = self._design, self._feed
        engine, network = design.engine, design.network
        self.loads, self.start = self._begin(end, 0)
        end = self.loads + engine.before_load + design.loading.cycles - 1 + engine.border_delay
        feed.end(end)
        times = [(network.source, self.start, network.input.beats, self.loads - self.start)]
        before = 0
        for layer, parts in zip(design.layers, design.parts, strict=True):
            stalled, first = 0, None
            adds = layer.residual is not None
            issue = Issue(engine, by_lane=layer.by_lane, adds=adds, shares=design.shares(layer))
            for part in parts:
                begin, alone = self._begin(end, before if first is None else 0)
                first = alone if first is None else first
                stalled += begin - alone
                end = issue.run(part, begin, end)
                feed.end(end)
            before = engine.settle(adds=adds)
            assert first is not None
            words = sum(part.nest.words for part in parts)
            times.append((layer.name, first, words, stalled))
        begin, alone = self._begin(end, before)
        words = network.result_image.words(design.shape.lanes)
        codes = network.result_image.pixels * network.result_image.channels
        end = begin + engine.before_send + codes - 1 + (words - 1) * (engine.between_words - 1)
        end += engine.border_delay
        times.append((network.result, alone, codes, begin - alone))
        self.sends = begin
        ends = [*(begin for _, begin, _, _ in times[1:]), end + 1 + engine.setup]
        return tuple(
            Span(name, begin - self.start, stop - begin, busy, stalled)
            for (name, begin, busy, stalled), stop in zip(times, ends, strict=True)
        )

    def sent(self, end: int) -> None:
        """Tell when the frame was sent."""
        self._feed.end(end)


def simulate_frames(design: Design, frames: int) -> FrameTimes:
    """Run frames back to back, the input always valid and the output always ready."""
    kernel = Kernel()
    begins: list[int] = []
    sends: list[int] = []
    stream = kernel.stream()
    kernel.start(_engine(design, stream, begins, sends, frames))
    tail = design.network.tail
    if tail is not None:
        stream = tail.part.start(kernel, stream)
    times: list[int] = []
    kernel.start(_sink(stream, times))
    kernel.run()
    beats = design.network.output.beats
    return FrameTimes(tuple(begins), tuple(sends), tuple(times[beats - 1 :: beats]))


def _engine(
    design: Design, target: Stream, begins: list[int], sends: list[int], frames: int
) -> Process:
    """Load, compute and send frame after frame, from the cycle after the reset on."""
    engine, image, lanes = design.engine, design.network.result_image, design.shape.lanes
    run, end = _Frames(design), -1
    for _ in range(frames):
        run.run(end)
        begins.append(run.loads + engine.before_load + design.loading.lead)
        time = end = run.sends + engine.before_send
        sends.append(time)
        for _ in range(image.pixels):
            for channel in range(image.channels):
                is_last = channel % lanes == lanes - 1 or channel == image.channels - 1
                end = yield target, time
                time = max(end + 1, time + (engine.between_words if is_last else 1))
        end += engine.border_delay
        run.sent(end)
    yield None


def _sink(origin: Stream, times: list[int]) -> Process:
    """Take every code at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)
