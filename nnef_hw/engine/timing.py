"""When a frame is loaded, computed and sent: the cycles of the hardware, exactly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nnef_hw.engine.design import Design
from nnef_hw.parts.engine import Engine
from nnef_hw.parts.timing import Kernel, Process, Stream

__all__ = ["FrameTimes", "Span", "simulate_frames", "spans"]

BEFORE_LOAD = 2
"""Cycles from the begin of a load to its first code, padding included."""
BEFORE_SEND = 4
"""Cycles from the begin of a send until its first code is offered."""
SETTLING = 2
"""Frames after which weights come as they will in all that follow."""
BETWEEN_WORDS = 3
"""Cycles from the last code of a word that is sent to the first one of the next."""


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
    first_inputs, last_outputs
        Cycle of each frame's first beat at the input, and of its last one at the output.
    """

    first_inputs: tuple[int, ...]
    last_outputs: tuple[int, ...]

    @property
    def latency(self) -> int:
        """Cycles from the first input of the first frame to its last output."""
        return self.last_outputs[0] - self.first_inputs[0]


@dataclass
class _Ring:
    """When words of weights come to their ring, from a stream that always has the next beat.

    Parameters
    ----------
    words, beats
        Size of the ring, and beats of a word.

    Attributes
    ----------
    last
        Cycle in which the last word came so far.
    came, freed
        Words that came so far; for each that is no longer needed, when it was freed.
    """

    words: int
    beats: int
    last: int = -1
    came: int = 0
    freed: list[int] = field(default_factory=list)

    def ready(self, words: int) -> int:
        """Return the first cycle in which so many more words than were freed are there."""
        while self.came < len(self.freed) + words:
            begin = self.last + 1
            if self.came >= self.words:
                begin = max(begin, self.freed[self.came - self.words] + 1)
            self.last = begin + self.beats - 1
            self.came += 1
            self._times.append(self.last)
        return self._times[len(self.freed) + words - 1] + 1 if words else 0

    def free(self, words: int, time: int) -> None:
        """Free the oldest words at the end of this cycle."""
        self.freed += [time] * words

    def __post_init__(self) -> None:
        self._times: list[int] = []

    @classmethod
    def of(cls, engine: Engine) -> _Ring | None:
        """Return that of an engine; None if all weights are there for ever."""
        return cls(engine.ring_words, len(engine.weight_memories)) if engine.ring_words else None


def spans(design: Design) -> tuple[Span, ...]:
    """Return load, layers and send of a frame like all that follow."""
    found: tuple[Span, ...] = ()
    ring, time = _Ring.of(design.engine), design.engine.setup
    for _ in range(SETTLING + 1):
        found = _frame(design, ring, time)
        time += found[-1].begin + found[-1].cycles
    return found


def _frame(design: Design, ring: _Ring | None, start: int) -> tuple[Span, ...]:
    """Return load, layers and send of a frame that begins at a cycle, if the output is ready."""
    engine, network = design.engine, design.network
    end = start + BEFORE_LOAD + design.loading.cycles - 1
    found = [Span(network.source, 0, end + 1 + engine.setup - start, network.input.beats)]
    for layer, parts in zip(design.layers, design.parts, strict=True):
        begin = end + 1 + engine.setup if len(found) == 1 else end + 1 + engine.between
        first, stalled, results = begin, 0, 0
        for part in parts:
            ready = begin if ring is None else max(begin, ring.ready(part.weight_words))
            stalled += ready - begin
            # The results of the part before have to leave, too.
            kept = max(ready + part.passes[0].words, end + results)
            end = kept + part.cycles - part.passes[0].words
            results = part.passes[-1].results
            if ring is not None:
                ring.free(part.weight_words, end)
            begin = end + 1 + engine.setup
        words = sum(part.nest.words for part in parts)
        cycles = end + 1 + engine.between - first
        found.append(Span(layer.name, first - start, cycles, words, stalled))
    words = network.result_image.words(design.shape.lanes)
    codes = network.result_image.pixels * network.result_image.channels
    until_end = BEFORE_SEND + codes - 1 + (words - 1) * (BETWEEN_WORDS - 1)
    begin = found[-1].begin + found[-1].cycles
    found.append(Span(network.result, begin, until_end + 1 + engine.setup, codes))
    return tuple(found)


def simulate_frames(design: Design, frames: int) -> FrameTimes:
    """Run frames back to back, the input always valid and the output always ready."""
    kernel = Kernel()
    begins: list[int] = []
    stream = kernel.stream()
    kernel.start(_engine(design, stream, begins, frames))
    tail = design.network.tail
    if tail is not None:
        stream = tail.part.start(kernel, stream)
    times: list[int] = []
    kernel.start(_sink(stream, times))
    kernel.run()
    beats = design.network.output.beats
    return FrameTimes(tuple(begins), tuple(times[beats - 1 :: beats]))


def _engine(design: Design, target: Stream, begins: list[int], frames: int) -> Process:
    """Load, compute and send frame after frame, from the cycle after the reset on."""
    image, lanes = design.network.result_image, design.shape.lanes
    ring, start = _Ring.of(design.engine), design.engine.setup
    for _ in range(frames):
        begins.append(start + BEFORE_LOAD + design.loading.lead)
        time = sent = start + _frame(design, ring, start)[-1].begin + BEFORE_SEND
        for _ in range(image.pixels):
            for channel in range(image.channels):
                is_last = channel % lanes == lanes - 1 or channel == image.channels - 1
                sent = yield target, time
                time = sent + (BETWEEN_WORDS if is_last else 1)
        start = sent + 1 + design.engine.setup
    yield None


def _sink(origin: Stream, times: list[int]) -> Process:
    """Take every code at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)
