"""Beat times: when every beat of a Plan moves, by simulating its blocks as timed processes.

With the timing of the components they are the cycles of the hardware, exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from nnef_hw.schedule import move_processes, processes
from nnef_hw.schedule.plan import SHALLOW_FIFO, Block, Port, Source
from nnef_hw.schedule.timing import Kernel, Log, Process, Recorder, Stream

__all__ = ["BeatTimes", "Trace", "simulate_beats", "size_fifos", "trace_beats"]

BANK_STAGES = 2
FIFO_REGISTERS = 2
FIFO_LATENCY = 3
MIN_FIFO = 4
SHARED_CYCLES = 3
UNBOUNDED = 1 << 40


@dataclass(frozen=True, slots=True)
class BeatTimes:
    """Cycles of the accelerator's border beats over some frames.

    Attributes
    ----------
    first_inputs, last_outputs
        Cycle of each frame's first beat at any input, and of the last one of all its outputs.
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
    blocks: Sequence[Block], inputs: Sequence[Port], outputs: Sequence[Port], frames: int = 4
) -> BeatTimes:
    """Run ``frames`` back-to-back frames, inputs always valid and outputs always ready."""
    return _Network(blocks, inputs, outputs, frames).run()


@dataclass(frozen=True, slots=True)
class Trace:
    """When items came to where a block works, and when they were accepted there.

    Attributes
    ----------
    offered, accepted
        Cycles, one per item of all frames: a pass of an array or pool, a code of other blocks. An
        item of several words is offered with its last word.
    """

    offered: tuple[int, ...]
    accepted: tuple[int, ...]


def trace_beats(
    blocks: Sequence[Block], inputs: Sequence[Port], outputs: Sequence[Port], frames: int = 4
) -> tuple[BeatTimes, dict[str, Trace]]:
    """Run as :func:`simulate_beats` does; return also the traces, by input or computed tensor."""
    recorder = Recorder()
    network = _Network(blocks, inputs, outputs, frames, recorder)
    times = network.run()
    return times, {
        tensor: _trace([recorder.events[stream] for stream in streams], taking_turns)
        for tensor, (streams, taking_turns) in network.entrances.items()
    }


def _trace(operands: Sequence[Sequence[tuple[int, int]]], taking_turns: bool) -> Trace:
    """Merge streams that are accepted in turn, or all at once when the last has come."""
    if taking_turns:
        events = sorted(chain(*operands), key=itemgetter(1))
    else:
        events = [(max(o for o, _ in item), item[0][1]) for item in zip(*operands, strict=True)]
    return Trace(tuple(o for o, _ in events), tuple(a for _, a in events))


def size_fifos(
    blocks: Sequence[Block], inputs: Sequence[Port], outputs: Sequence[Port], frames: int = 3
) -> tuple[tuple[Block, ...], int]:
    """Give every operand of a block with several the FIFO it needs for nothing to wait.

    A FIFO holds what one path has computed ahead of the other: as many items as it would ever hold
    without a limit. Where one at most waits, the operand needs none; nor does one that has nothing
    in common with the others but this block, since its inputs can wait. So that no input fills
    FIFOs with frames ahead of the others, all keep step: each has given about the same share of its
    frames. Returns the interval too.
    """
    unlimited = [_with_depths(block, [UNBOUNDED] * len(block.sources)) for block in blocks]
    network = _Network(unlimited, inputs, outputs, frames, in_step=len(inputs) > 1)
    interval = network.run().interval
    sized = tuple(
        _with_depths(
            block,
            [
                0 if _is_bridge(blocks, block, n) else network.peak(block, n)
                for n in range(len(block.sources))
            ],
        )
        for block in blocks
    )
    return sized, interval


def _is_bridge(blocks: Sequence[Block], block: Block, operand: int) -> bool:
    """Whether an operand's stream is all that joins what is before it with the rest."""
    leaders: dict[str, str] = {}

    def leader(tensor: str) -> str:
        while tensor in leaders:
            tensor = leaders[tensor]
        return tensor

    for other in blocks:
        for n, source in enumerate(other.sources):
            ends = leader(source.tensor), leader(other.tensor)
            if (other.tensor, n) != (block.tensor, operand) and ends[0] != ends[1]:
                leaders[ends[0]] = ends[1]
    return leader(block.sources[operand].tensor) != leader(block.tensor)


def _with_depths(block: Block, stored: Sequence[int]) -> Block:
    if len(block.sources) < 2:
        return block
    sources = [
        Source(source.tensor, max(MIN_FIFO, items + FIFO_REGISTERS) if items else 0)
        for source, items in zip(block.sources, stored, strict=True)
    ]
    return replace(block, sources=tuple(sources))


@dataclass
class _Fifo:
    """When items entered a BlockFifo, left its memory, the register behind it, and the FIFO."""

    written: Log = field(default_factory=Log)
    read: Log = field(default_factory=Log)
    moved: Log = field(default_factory=Log)
    given: Log = field(default_factory=Log)

    @property
    def waiting(self) -> int:
        """Most items that waited at a time to be taken, the one that comes then included."""
        return max(
            count - bisect_left(self.given.times, arrival)
            for count, arrival in enumerate(self.arrivals, 1)
        )

    @property
    def arrivals(self) -> list[int]:
        """When each item would come first to where it is taken."""
        return [time + FIFO_LATENCY for time in self.written.times]

    def waits_for_later(self, other: _Fifo) -> bool:
        """Whether an item waits until one was taken from another FIFO that came there later."""
        arrivals, taken = other.arrivals, other.given.times
        for arrival, end in zip(self.arrivals, self.given.times, strict=True):
            later = bisect_right(arrivals, arrival)
            if later < len(taken) and taken[later] <= end:
                return True
        return False

    @property
    def peak(self) -> int:
        """Most items that it held at a time in its memory, the one that enters included."""
        return max(
            count - bisect_left(self.read.times, time)
            for count, time in enumerate(self.written.times, 1)
        )


class _Network:
    """The processes of a whole accelerator, ready to run."""

    def __init__(
        self,
        blocks: Sequence[Block],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        frames: int,
        kernel: Kernel | None = None,
        *,
        in_step: bool = False,
    ) -> None:
        self.kernel = kernel or Kernel()
        self.frames = frames
        self.inputs, self.outputs = inputs, outputs
        self.given = [Log() for _ in inputs]
        self.taken: list[list[int]] = [[] for _ in outputs]
        self.fifos: dict[tuple[str, int], _Fifo] = {}
        self.entrances: dict[str, tuple[Sequence[Stream], bool]] = {}
        readers = Counter(source.tensor for block in blocks for source in block.sources)
        readers.update(port.tensor for port in outputs)
        self.branches: dict[str, list[Stream]] = {}
        self.unregistered: set[str] = set()

        for n, port in enumerate(inputs):
            border = Stream()
            self.entrances[port.tensor] = [border], False
            pace = None
            if in_step:
                pace = processes.Pace(self.given[n - 1], inputs[n - 1].beats, port.beats)
            beats = port.beats * frames
            self.start(processes.source(self.kernel, border, beats, self.given[n], pace))
            self._give(port.tensor, self._skid(border), readers)
        for block in blocks:
            self._give(block.tensor, self._block(block), readers)
        for port, times in zip(outputs, self.taken, strict=True):
            result = self._skid(self.branches[port.tensor].pop())
            self.start(processes.sink(self.kernel, result, times))

    def run(self) -> BeatTimes:
        """Let all frames pass."""
        self.kernel.run()
        firsts = [
            log.times[:: port.beats] for log, port in zip(self.given, self.inputs, strict=True)
        ]
        lasts = []
        for port, times in zip(self.outputs, self.taken, strict=True):
            assert len(times) == port.beats * self.frames, "the beat-time simulation deadlocked"
            lasts.append(times[port.beats - 1 :: port.beats])
        return BeatTimes(
            tuple(min(cycles) for cycles in zip(*firsts, strict=True)),
            tuple(max(cycles) for cycles in zip(*lasts, strict=True)),
        )

    def peak(self, block: Block, operand: int) -> int:
        """Most items in the memory in front of an operand of a block; 0 if it needs none.

        One item that waits can be held by what gives it, unless that is a fork, which the other
        operand may wait for.
        """
        fifo = self.fifos.get((block.tensor, operand))
        if fifo is None:
            return 0
        others = [self.fifos[block.tensor, n] for n in range(len(block.sources)) if n != operand]
        blocks = block.sources[operand].tensor in self.unregistered and any(
            fifo.waits_for_later(other) for other in others
        )
        return fifo.peak if blocks or fifo.waiting > 1 else 0

    def start(self, process: Process) -> None:
        self.kernel.start(process)

    def _give(self, tensor: str, stream: Stream, readers: Counter[str]) -> None:
        """Make a stream known by its name, once for every reader."""
        branches = [stream]
        if readers[tensor] > 1:
            self.unregistered.add(tensor)
            branches = [Stream() for _ in range(readers[tensor])]
            self.start(processes.fork(self.kernel, stream, tuple(branches)))
        self.branches[tensor] = branches

    def _connect(self, process: Any, origin: Stream, *arguments: Any) -> Stream:
        target = Stream()
        self.start(process(self.kernel, origin, target, *arguments))
        return target

    def _skid(self, origin: Stream) -> Stream:
        return self._connect(processes.skid, origin)

    def _operand(self, block: Block, n: int) -> Stream:
        stream = self.branches[block.sources[n].tensor].pop()
        depth = block.sources[n].depth
        if not depth:
            return stream
        self.fifos[block.tensor, n] = fifo = _Fifo()
        target = Stream()
        if depth <= SHALLOW_FIFO:
            ends = (fifo.written, fifo.given)
            self.start(processes.fifo_write(self.kernel, stream, *ends, depth))
            self.start(processes.shallow_give(self.kernel, target, *ends))
            return target
        logs = (fifo.written, fifo.read, fifo.moved, fifo.given)
        self.start(processes.fifo_write(self.kernel, stream, *logs[:2], depth - FIFO_REGISTERS))
        self.start(processes.fifo_read(self.kernel, *logs[:3]))
        self.start(processes.fifo_give(self.kernel, target, *logs[1:]))
        return target

    def _block(self, block: Block) -> Stream:
        origins = [self._operand(block, n) for n in range(len(block.sources))]
        self.entrances[block.tensor] = origins, block.kind == "concat"
        if block.kind == "concat":
            stream = Stream()
            self.start(processes.concat(self.kernel, tuple(origins), stream, block.runs))
            return stream
        stream = origins[0]
        if block.is_move:
            return self._move(block, stream)
        if block.beat_lanes > 1:
            stream = self._connect(processes.pack, stream, block.channels, block.beat_lanes)
        if block.has_windows:
            stream = self._windows(block, stream)
            self.entrances[block.tensor] = [stream], False
        if block.kind == "conv":
            stream = self._connect(processes.array, stream, block)
        elif block.sums_taps:
            stream = self._connect(processes.depthwise, stream, block)
        elif block.kind in {"max_pool", "avg_pool", "table"}:
            stream = self._connect(processes.register_last, stream, 1)
        elif block.is_running:
            spacing = SHARED_CYCLES if block.single_port else 1
            stream = self._connect(processes.running_pool, stream, block.window, spacing)
        elif block.kind == "argmax":
            stream = self._connect(processes.register_last, stream, block.channels)
        elif block.kind in {"softmax", "tflite_softmax"}:
            times = block.softmax_cycles
            stream = self._connect(processes.softmax, stream, block.channels, *times)
        else:
            stream = self._eltwise(block, origins)
        if block.queued_sums:
            stream = self._skid(stream)
        if block.interval:
            stream = self._connect(
                processes.requantizer, stream, block.interval, block.digit_stages,
                block.round_stages,
            )  # fmt: skip
        return stream

    def _move(self, block: Block, stream: Stream) -> Stream:
        """Start a component that only moves codes."""
        if block.kind in {"pad", "slice"} and block.sources[0].tensor in self.unregistered:
            self.unregistered.add(block.tensor)
        if block.kind == "slice":
            return self._connect(move_processes.take_slice, stream, block.runs)
        if block.kind == "pad":
            return self._connect(move_processes.pad, stream, block.window)
        written, freed, target = Log(), Log(), Stream()
        self.start(processes.fifo_write(self.kernel, stream, written, freed, block.depth))
        self.start(move_processes.reordered(self.kernel, target, block, written, freed))
        return target

    def _windows(self, block: Block, stream: Stream) -> Stream:
        if block.parallel:
            return self._connect(processes.parallel, stream, block.window)
        assert block.window is not None
        written, released, windows = Log(), Log(), Stream()
        if block.lines:
            logs = (written, released, self.frames)
            self.start(processes.bank_write(self.kernel, stream, block.window, block.lines, *logs))
            self.start(processes.bank_read(self.kernel, windows, block.window, BANK_STAGES, *logs))
            return windows
        self.start(
            processes.write(
                self.kernel, stream, block.window, block.depth, written, released, self.frames
            )
        )
        self.start(
            processes.read(self.kernel, windows, block.window, written, released, self.frames)
        )
        return windows

    def _eltwise(self, block: Block, origins: Sequence[Stream]) -> Stream:
        """Start a pipeline of one operand and a constant, which is always there, or of two."""
        target = Stream()
        self.start(processes.eltwise(self.kernel, origins, target, block.stages))
        return target
