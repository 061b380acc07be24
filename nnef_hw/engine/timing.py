"""When a frame is loaded, computed and sent: the cycles of the hardware, exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.engine.design import Design
from nnef_hw.engine.layer import Places
from nnef_hw.parts.timing import Kernel, Process, Stream

__all__ = ["FrameTimes", "Span", "simulate_frames", "spans"]

BEFORE_LOAD = 2
"""Cycles from the begin of a load to its first code, padding included."""
BEFORE_SEND = 4
"""Cycles from the begin of a send until its first code is offered."""
BETWEEN_WORDS = 3
"""Cycles from the last code of a word that is sent to the first one of the next."""
ANYWHERE = Places(0, 0, 0, 0)


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
    """

    name: str
    begin: int
    cycles: int
    busy: int


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


def spans(design: Design) -> tuple[Span, ...]:
    """Return load, layers and send of a frame, if nothing makes it wait."""
    engine, network = design.engine, design.network
    found: list[Span] = []

    def add(name: str, end: int, after: int, busy: int) -> None:
        """Add what ends so many cycles after its begin."""
        begin = found[-1].begin + found[-1].cycles if found else 0
        found.append(Span(name, begin, end + 1 + after, busy))

    add(network.source, BEFORE_LOAD + design.loading.cycles - 1, engine.setup, network.input.beats)
    for layer in design.layers:
        words = layer.nest(design.shape, ANYWHERE).words
        add(layer.name, layer.cycles(design.shape), max(engine.setup, engine.drain), words)
    words = network.result_image.words(design.shape.lanes)
    codes = network.result_image.pixels * network.result_image.channels
    add(network.result, BEFORE_SEND + codes - 1 + (words - 1) * (BETWEEN_WORDS - 1), engine.setup,
        codes)  # fmt: skip
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
    """Load, compute and send frame after frame."""
    sending = spans(design)[-1]
    image, lanes = design.network.result_image, design.shape.lanes
    time = 0
    for _ in range(frames):
        begins.append(time + BEFORE_LOAD + design.loading.lead)
        time = sent = time + sending.begin + BEFORE_SEND
        for _ in range(image.pixels):
            for channel in range(image.channels):
                is_last = channel % lanes == lanes - 1 or channel == image.channels - 1
                sent = yield target, time
                time = sent + (BETWEEN_WORDS if is_last else 1)
        time = sent + 1 + design.engine.setup
    yield None


def _sink(origin: Stream, times: list[int]) -> Process:
    """Take every code at once; note when."""
    while True:
        offered = yield origin
        origin.accept(offered)
        times.append(offered)
