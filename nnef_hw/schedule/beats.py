"""Beat times: when every beat of a Plan moves, by simulating its blocks as timed processes.

With the timing of the components they are the cycles of the hardware, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any

from nnef_hw.schedule import move_processes, processes
from nnef_hw.schedule.plan import SHALLOW_FIFO, Block, Port
from nnef_hw.schedule.timing import Kernel, Log, Process, RecordedStream, Stream

__all__ = [
    "FIFO_REGISTERS", "BeatTimes", "DeadlockError", "FifoLogs", "Network", "Trace",
    "simulate_beats", "trace_beats",
]  # fmt: skip

BANK_STAGES = 2
FIFO_REGISTERS = 2
SHARED_CYCLES = 3
LEAST_FRAMES = 3
MOST_FRAMES = 12
"""Frames after which a design that does not come to rest is taken as it is, beside those inside."""


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
        """Cycles between frames' final output beats: the largest of the last spacings.

        Small layers may alternate between spacings for ever; at most as many frames as are in the
        pipeline at a time make one round of that.
        """
        return max(self.spacings[-max(2, self.inside) :])

    @property
    def inside(self) -> int:
        """Frames that are in the pipeline at a time."""
        return -(-self.latency // self.spacings[-1])

    @property
    def spacings(self) -> tuple[int, ...]:
        """Cycles from each frame's last output beat to the next one's."""
        return tuple(later - earlier for earlier, later in pairwise(self.last_outputs))

    @property
    def is_steady(self) -> bool:
        """Whether the pipeline was full, and the spacings of a whole filling were equal."""
        last = self.spacings[-max(2, self.inside) :]
        return len(self.spacings) >= self.inside and len(set(last)) == 1


class DeadlockError(Exception):
    """A frame that enters does not come out: a FIFO or line buffer is too small."""


def simulate_beats(
    blocks: Sequence[Block],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    frames: int | None = None,
) -> BeatTimes:
    """Run back-to-back frames, inputs always valid and outputs always ready.

    Without a number of frames, as many as it takes until each is like the one before.

    Raises
    ------
    DeadlockError
        If a frame does not come out.
    """
    return Network(blocks, inputs, outputs).run(frames)


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
    blocks: Sequence[Block],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    frames: int | None = None,
) -> tuple[BeatTimes, dict[str, Trace]]:
    """Run as :func:`simulate_beats` does; return also the traces, by input or computed tensor."""
    network = Network(blocks, inputs, outputs, RecordedStream)
    times = network.run(frames)
    return times, {
        tensor: _trace([s.events for s in streams if isinstance(s, RecordedStream)], taking_turns)
        for tensor, (streams, taking_turns) in network.entrances.items()
    }


def _trace(operands: Sequence[Sequence[tuple[int, int]]], taking_turns: bool) -> Trace:
    """Merge streams that are accepted in turn, or all at once when the last has come."""
    if taking_turns:
        events = sorted(chain(*operands), key=itemgetter(1))
    else:
        events = [(max(o for o, _ in item), item[0][1]) for item in zip(*operands, strict=True)]
    return Trace(tuple(o for o, _ in events), tuple(a for _, a in events))


@dataclass(frozen=True, slots=True)
class FifoLogs:
    """When items entered a BlockFifo, left its memory, and left the registers behind that."""

    written: Log
    moved: Log
    given: Log


class Network:
    """The processes of a whole accelerator, ready to run.

    With ``in_step`` several inputs keep step: each gives a beat only once the one before it has
    given the same share of its frames.

    Attributes
    ----------
    fifos
        Logs of every BlockFifo, by block and operand.
    unregistered
        Streams that come from a fork without a register between.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        inputs: Sequence[Port],
        outputs: Sequence[Port],
        streams: type[Stream] = Stream,
        *,
        in_step: bool = False,
    ) -> None:
        self.kernel, self.stream_class = Kernel(), streams
        self.inputs, self.outputs = inputs, outputs
        self.logs: list[Log] = []
        self.admitted = [self._log() for _ in inputs]
        self.given = [self._log() for _ in inputs]
        self.taken: list[list[int]] = [[] for _ in outputs]
        self.fifos: dict[tuple[str, int], FifoLogs] = {}
        self.entrances: dict[str, tuple[Sequence[Stream], bool]] = {}
        readers = Counter(source.tensor for block in blocks for source in block.sources)
        readers.update(port.tensor for port in outputs)
        self.branches: dict[str, list[Stream]] = {}
        self.unregistered: set[str] = set()

        for n, port in enumerate(inputs):
            border = self._stream()
            self.entrances[port.tensor] = [border], False
            pace = None
            if in_step:
                pace = processes.Pace(self.given[n - 1], inputs[n - 1].beats, port.beats)
            ends = (self.admitted[n], self.given[n])
            self._start(processes.source(border, port.beats, *ends, pace))
            self._give(port.tensor, self._skid(border), readers)
        for block in blocks:
            self._give(block.tensor, self._block(block), readers)
        for port, times in zip(outputs, self.taken, strict=True):
            result = self._skid(self.branches[port.tensor].pop())
            self._start(processes.sink(result, times))

    def run(self, frames: int | None = None) -> BeatTimes:
        """Let so many frames pass, or as many as it takes until each is like the one before.

        Raises
        ------
        DeadlockError
            If a frame does not come out.
        """
        while not self._finished(frames):
            for log in self.admitted:
                log.add(0)
            self.kernel.run()
            for port, times in zip(self.outputs, self.taken, strict=True):
                if len(times) < port.beats * self._passed:
                    raise DeadlockError
        return self.times

    @property
    def times(self) -> BeatTimes:
        """Of the frames that have passed."""
        firsts = [
            log.times[:: port.beats] for log, port in zip(self.given, self.inputs, strict=True)
        ]
        lasts = [
            times[port.beats - 1 :: port.beats]
            for times, port in zip(self.taken, self.outputs, strict=True)
        ]
        return BeatTimes(
            tuple(min(cycles) for cycles in zip(*firsts, strict=True)),
            tuple(max(cycles) for cycles in zip(*lasts, strict=True)),
        )

    @property
    def _passed(self) -> int:
        """Frames that were admitted."""
        return len(self.admitted[0].times)

    def _finished(self, frames: int | None) -> bool:
        if frames is not None:
            return self._passed >= frames
        if self._passed < LEAST_FRAMES:
            return False
        times = self.times
        return times.is_steady or self._passed >= MOST_FRAMES + times.inside

    def _stream(self) -> Stream:
        return self.stream_class(self.kernel)

    @property
    def events(self) -> int:
        """What has been simulated so far: codes and words that entered or left a memory."""
        return sum(len(log.times) for log in self.logs)

    def _log(self) -> Log:
        log = Log(self.kernel)
        self.logs.append(log)
        return log

    def _start(self, process: Process) -> None:
        self.kernel.start(process)

    def _give(self, tensor: str, stream: Stream, readers: Counter[str]) -> None:
        """Make a stream known by its name, once for every reader."""
        branches = [stream]
        if readers[tensor] > 1:
            self.unregistered.add(tensor)
            branches = [self._stream() for _ in range(readers[tensor])]
            self._start(processes.fork(stream, tuple(branches)))
        self.branches[tensor] = branches

    def _connect(self, process: Callable[..., Process], origin: Any, *arguments: Any) -> Stream:
        target = self._stream()
        self._start(process(origin, target, *arguments))
        return target

    def _skid(self, origin: Stream) -> Stream:
        return self._connect(processes.skid, origin)

    def _operand(self, block: Block, n: int) -> Stream:
        stream = self.branches[block.sources[n].tensor].pop()
        depth = block.sources[n].depth
        if not depth:
            return stream
        target, written, given = self._stream(), self._log(), self._log()
        if depth <= SHALLOW_FIFO:
            self._start(processes.queue_write(stream, written, given, depth))
            self._start(processes.shallow_give(target, written, given))
            return target
        moved = self._log()
        self.fifos[block.tensor, n] = FifoLogs(written, moved, given)
        self._start(processes.fifo_write(stream, written, moved, depth - FIFO_REGISTERS))
        self._start(processes.fifo_give(target, written, moved, given))
        return target

    def _block(self, block: Block) -> Stream:
        origins = [self._operand(block, n) for n in range(len(block.sources))]
        self.entrances[block.tensor] = origins, block.kind == "concat"
        if block.kind == "concat":
            return self._connect(processes.concat, tuple(origins), block.runs)
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
            # A pipeline of one operand and a constant, which is always there, or of two.
            stream = self._connect(processes.eltwise, origins, block.stages)
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
        written, freed, target = self._log(), self._log(), self._stream()
        self._start(processes.queue_write(stream, written, freed, block.depth))
        self._start(move_processes.reordered(target, block, written, freed))
        return target

    def _windows(self, block: Block, stream: Stream) -> Stream:
        window = block.window
        assert window is not None
        if block.parallel:
            return self._connect(processes.parallel, stream, window)
        written, released, windows = self._log(), self._log(), self._stream()
        if block.lines:
            self._start(processes.bank_write(stream, window, block.lines, written, released))
            self._start(processes.bank_read(windows, window, BANK_STAGES, written, released))
        else:
            self._start(processes.write(stream, window, block.depth, written, released))
            self._start(processes.read(windows, window, written, released))
        return windows
