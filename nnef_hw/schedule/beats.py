"""Beat times: when every beat of a Plan moves, by simulating its blocks as timed processes.

A stream is a rendezvous: the producer offers an item at the cycle its ``valid`` rises, the consumer
accepts it no earlier than that. Every process advances its own clock, so the network is a timed
Kahn network: results do not depend on the order in which processes run, and with the timing of the
components (docstrings in ``rtl/``) they are the cycles of the hardware.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from nnef_hw.schedule.plan import Block, Port
from nnef_hw.window import Window

__all__ = ["BeatTimes", "simulate_beats"]


class _Stream:
    """Rendezvous of one producer and one consumer."""

    __slots__ = ("accepted", "consumer", "offer", "producer")

    def __init__(self) -> None:
        self.offer: int | None = None
        self.producer: _Process | None = None
        self.consumer: _Process | None = None


class _Log:
    """Times of events of one process that another one waits for."""

    __slots__ = ("times", "waiter")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.waiter: tuple[_Process, int] | None = None


@dataclass(frozen=True, slots=True)
class _Put:
    stream: _Stream
    time: int


@dataclass(frozen=True, slots=True)
class _Peek:
    stream: _Stream


@dataclass(frozen=True, slots=True)
class _Wait:
    log: _Log
    count: int


_Process = Generator[Any, int, None]


@dataclass
class _Kernel:
    """Runs processes until none can go on."""

    ready: deque[tuple[_Process, int]] = field(default_factory=deque)

    def start(self, process: _Process) -> None:
        self.ready.append((process, -1))

    def accept(self, stream: _Stream, time: int) -> None:
        """Complete the rendezvous: the consumer took the offered item at this cycle."""
        producer = stream.producer
        assert producer is not None
        stream.offer = stream.producer = None
        self.ready.append((producer, time))

    def log(self, log: _Log, time: int) -> None:
        """Record an event; wake the process that waits for it."""
        log.times.append(time)
        if log.waiter is not None and len(log.times) >= log.waiter[1]:
            self.ready.append((log.waiter[0], 0))
            log.waiter = None

    def run(self) -> None:
        while self.ready:
            process, value = self.ready.popleft()
            try:
                request = next(process) if value < 0 else process.send(value)
            except StopIteration:
                continue
            if isinstance(request, _Put):
                stream = request.stream
                stream.offer, stream.producer = request.time, process
                if stream.consumer is not None:
                    self.ready.append((stream.consumer, request.time))
                    stream.consumer = None
            elif isinstance(request, _Peek):
                if request.stream.offer is None:
                    request.stream.consumer = process
                else:
                    self.ready.append((process, request.stream.offer))
            elif len(request.log.times) >= request.count:
                self.ready.append((process, 0))
            else:
                request.log.waiter = (process, request.count)


@dataclass(frozen=True, slots=True)
class BeatTimes:
    """Cycles of the accelerator's border beats over some frames.

    Attributes
    ----------
    first_inputs, last_outputs
        Cycle of each frame's first input beat and last output beat.
    """

    first_inputs: tuple[int, ...]
    last_outputs: tuple[int, ...]

    @property
    def latency(self) -> int:
        """Cycles from first input beat to last output beat, frame 0 in an empty pipeline."""
        return self.last_outputs[0] - self.first_inputs[0]

    @property
    def interval(self) -> int:
        """Cycles between frames' final output beats, the larger of the last two spacings.

        Tiny layers may alternate between two spacings for ever.
        """
        return max(later - earlier for earlier, later in pairwise(self.last_outputs[-3:]))


def simulate_beats(
    blocks: Sequence[Block], input_port: Port, output_port: Port, frames: int = 4
) -> BeatTimes:
    """Run ``frames`` back-to-back frames, input always valid and output always ready."""
    kernel = _Kernel()
    inputs: list[int] = []
    outputs: list[int] = []
    stream = _Stream()
    kernel.start(_source(stream, input_port.beats * frames, inputs))
    stream = _start_skid(kernel, stream)
    for block in blocks:
        stream = _start_block(kernel, block, stream, frames)
    stream = _start_skid(kernel, stream)
    kernel.start(_sink(kernel, stream, outputs))
    kernel.run()
    assert len(outputs) == output_port.beats * frames, "the beat-time simulation deadlocked"
    return BeatTimes(
        tuple(inputs[:: input_port.beats]),
        tuple(outputs[output_port.beats - 1 :: output_port.beats]),
    )


def _start_skid(kernel: _Kernel, source: _Stream) -> _Stream:
    target = _Stream()
    kernel.start(_skid(kernel, source, target))
    return target


def _start_block(kernel: _Kernel, block: Block, source: _Stream, frames: int) -> _Stream:
    def connect(process: Any, *arguments: Any) -> _Stream:
        nonlocal source
        target = _Stream()
        kernel.start(process(kernel, source, target, *arguments))
        source = target
        return target

    if block.beat_lanes > 1:
        connect(_pack, block.channels, block.beat_lanes)
    if block.parallel:
        connect(_parallel, block.window)
    elif block.window is not None:
        written, released, windows = _Log(), _Log(), _Stream()
        kernel.start(_write(kernel, source, block.window, block.depth, written, released, frames))
        kernel.start(_read(kernel, windows, block.window, written, released, frames))
        source = windows
    if block.kind == "conv":
        connect(_array, block)
    elif block.kind in {"max_pool", "avg_pool", "table"}:
        connect(_register_last, 1)
    elif block.kind == "argmax":
        connect(_register_last, block.channels)
    elif block.kind == "softmax":
        connect(_softmax, block.channels)
    if block.interval:
        connect(_requantizer, block.interval)
    return source


def _source(target: _Stream, beats: int, times: list[int]) -> _Process:
    time = 0
    for _ in range(beats):
        accepted = yield _Put(target, time)
        times.append(accepted)
        time = accepted + 1


def _sink(kernel: _Kernel, source: _Stream, times: list[int]) -> _Process:
    while True:
        offered = yield _Peek(source)
        kernel.accept(source, offered)
        times.append(offered)


def _skid(kernel: _Kernel, source: _Stream, target: _Stream) -> _Process:
    """Model Fifo of depth 2."""
    before = last = -1
    while True:
        offered = yield _Peek(source)
        accepted = max(offered, before + 1)
        kernel.accept(source, accepted)
        before, last = last, (yield _Put(target, max(accepted, last) + 1))


def _pack(kernel: _Kernel, source: _Stream, target: _Stream, channels: int, lanes: int) -> _Process:
    given = -1
    while True:
        for channel in range(channels):
            offered = yield _Peek(source)
            complete = channel % lanes == lanes - 1 or channel == channels - 1
            accepted = max(offered, given) if complete else offered
            kernel.accept(source, accepted)
            if complete:
                given = yield _Put(target, accepted + 1)


def _register_last(kernel: _Kernel, source: _Stream, target: _Stream, items: int) -> _Process:
    """Model a reduction of ``items`` beats with an output register, one cycle of latency."""
    given = -1
    while True:
        for item in range(items):
            offered = yield _Peek(source)
            final = item == items - 1
            accepted = max(offered, given) if final else offered
            kernel.accept(source, accepted)
            if final:
                given = yield _Put(target, accepted + 1)


def _write(
    kernel: _Kernel,
    source: _Stream,
    window: Window,
    depth: int,
    written: _Log,
    released: _Log,
    frames: int,
) -> _Process:
    """Model the line buffer's write side: one word per cycle while there is room."""
    bases = _window_bases(window, frames + 1)
    padding = _padding_words(window)
    time = 0
    for word in range(window.words * frames):
        needed = bisect_left(bases, word - depth + 1)
        if needed > 0:
            if len(released.times) < needed:
                yield _Wait(released, needed)
            time = max(time, released.times[needed - 1] + 1)
        if not padding[word % window.words]:
            offered = yield _Peek(source)
            time = max(time, offered)
            kernel.accept(source, time)
        elif window.starts_in_padding and word % window.words == 0:
            time = max(time, (yield _Peek(source)))
        kernel.log(written, time)
        time += 1


def _read(
    kernel: _Kernel, target: _Stream, window: Window, written: _Log, released: _Log, frames: int
) -> _Process:
    """Model the line buffer's read side; items are passes, offered with their last word."""
    bases = _window_bases(window, frames)
    words = window.pass_words
    time = 0
    for base in bases:
        needed = base + window.span
        if len(written.times) < needed:
            yield _Wait(written, needed)
        time = max(time, written.times[needed - 1] + 1)
        for index in range(window.passes):
            if index == window.passes - 1:
                kernel.log(released, time + words - 1)
            time = yield _Put(target, time + words)


def _parallel(kernel: _Kernel, source: _Stream, target: _Stream, window: Window) -> _Process:
    """Model the parallel line buffer: a pixel is accepted, shifts in, and its window is given."""
    padding = _padding_words(window)
    completing = {base + window.span - 1 for base in _window_bases(window, 1)}
    time = shifted = free = -1
    while True:
        for word in range(window.words):
            time = max(time + 1, shifted)
            if not padding[word]:
                offered = yield _Peek(source)
                time = max(time, offered)
                kernel.accept(source, time)
            shifted = max(time + 1, free)
            free = shifted + 1
            if word in completing:
                for _ in range(window.passes):
                    free = (yield _Put(target, free)) + 1
                free -= 1


def _window_bases(window: Window, frames: int) -> list[int]:
    """First word of every window, counted from the first frame's first word."""
    rows = np.arange(window.out_height) * window.stride[0] * window.padded_width
    columns = np.arange(window.out_width) * window.stride[1]
    frame = ((rows[:, None] + columns) * window.channel_blocks).reshape(-1)
    offsets = np.arange(frames) * window.words
    bases: list[int] = (offsets[:, None] + frame).reshape(-1).tolist()
    return bases


def _padding_words(window: Window) -> list[bool]:
    """Tell for every stored word of a frame whether it is padding."""
    (top, _), (left, _) = window.padding
    inside = np.zeros((window.padded_height, window.padded_width), bool)
    inside[top : top + window.height, left : left + window.width] = True
    result: list[bool] = np.repeat(~inside.reshape(-1), window.channel_blocks).tolist()
    return result


def _array(kernel: _Kernel, source: _Stream, target: _Stream, block: Block) -> _Process:
    passes = -(-block.out_channels // block.rows)
    spacing = 2 if block.groups > 1 else 1
    reload = spacing if block.kept_passes > 1 else 1
    emptied = [-1] * block.kept_passes
    while True:
        for index in range(passes):
            offered = yield _Peek(source)
            accepted = max(offered, emptied[-block.kept_passes])
            kernel.accept(source, accepted)
            time = max(accepted + block.result_latency, emptied[-1] + reload)
            taken = time
            for _ in range(min(block.rows, block.out_channels - index * block.rows)):
                taken = yield _Put(target, time)
                time = taken + spacing
            emptied = [*emptied[1:], taken]


def _requantizer(kernel: _Kernel, source: _Stream, target: _Stream, interval: int) -> _Process:
    finished = product_left = rounded_left = given = -1
    while True:
        offered = yield _Peek(source)
        taken = max(offered, finished)
        if finished < taken < product_left:
            taken = product_left
        kernel.accept(source, taken)
        finished = max(taken + 1, product_left) + interval - 1
        product_left = max(finished + 1, rounded_left)
        rounded_left = max(product_left + 1, given)
        given = yield _Put(target, rounded_left + 1)


def _softmax(kernel: _Kernel, source: _Stream, target: _Stream, channels: int) -> _Process:
    idle = 0
    while True:
        accepted = 0
        for _ in range(channels):
            offered = yield _Peek(source)
            accepted = max(offered, idle)
            kernel.accept(source, accepted)
        time = accepted + channels + 16
        for _ in range(channels):
            given = yield _Put(target, time)
            time = given + 13
            idle = given + 1
