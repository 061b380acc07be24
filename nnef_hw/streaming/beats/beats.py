"""Beat times: when every beat of a Plan moves, by simulating its blocks as timed processes.

With the timing of the components they are the cycles of the hardware, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nnef_hw.architecture.architecture import Port
from nnef_hw.parts.base.timing import Kernel, Log, RecordedStream, Stream
from nnef_hw.parts.streams.fifo import BlockFifo, FifoLogs
from nnef_hw.parts.streams.fork import connect, fork
from nnef_hw.parts.streams.stream import Skid
from nnef_hw.streaming.beats.border import Pace, gate, sink, source
from nnef_hw.streaming.beats.steady import Advances, Steady, cycles_per_frame, find_steady
from nnef_hw.streaming.foldings.block import Block
from nnef_hw.streaming.foldings.plan import StreamingPlan

__all__ = [
    "BeatTimes", "DeadlockError", "Network", "Trace", "predict_interval", "predict_spacing",
    "simulate_beats", "trace_beats",
]  # fmt: skip

SKID = Skid(bits=1)
LEAST_DELAY = 2
MOST_FRAMES = 16
MOST_EVENTS = 1_000_000
"""A design whose ends are not spaced as they will be after that many is left as it is: seconds."""


@dataclass(frozen=True, slots=True)
class BeatTimes:
    """Cycles of the accelerator's border beats over some frames.

    Attributes
    ----------
    first_inputs, last_outputs
        Cycle of each frame's first input beat and last output beat.
    steady
        How frames leave in the long run, if that was looked for.
    """

    first_inputs: tuple[int, ...]
    last_outputs: tuple[int, ...]
    steady: Steady | None = field(default=None, compare=False)

    @property
    def latency(self) -> int:
        """Cycles from first input beat to last output beat, frame 0 in an empty pipeline."""
        return self.last_outputs[0] - self.first_inputs[0]

    @property
    def interval(self) -> int:
        """Cycles per frame in the long run, rounded up; else between the last two frames' ends."""
        return self.steady.interval if self.steady else self.spacings[-1]

    @property
    def spacings(self) -> tuple[int, ...]:
        """Cycles from each frame's last output beat to the next one's."""
        return tuple(later - earlier for earlier, later in pairwise(self.last_outputs))


class DeadlockError(Exception):
    """A frame that enters does not come out: a FIFO or line buffer is too small."""


def simulate_beats(
    blocks: Sequence[Block],
    inputs: Sequence[Port],
    outputs: Sequence[Port],
    frames: int | None = None,
) -> BeatTimes:
    """Run back-to-back frames, inputs always valid and outputs always ready.

    Without a number of frames, as many as it takes until their ends are spaced as for ever.

    Raises
    ------
    DeadlockError
        If a frame does not come out.
    """
    return Network(blocks, inputs, outputs).run(frames)


def predict_interval(plan: StreamingPlan, frames: int) -> int | None:
    """Return cycles per frame at the end of a run of so many; None if there is only one.

    It is the plan's interval, but in runs so short that frames do not come steadily yet.
    """
    if plan.settling is not None and frames > plan.settling + plan.period:
        return plan.interval
    times = simulate_beats(plan.blocks, plan.inputs, plan.outputs, frames)
    return cycles_per_frame(times.last_outputs, plan.period)


def predict_spacing(plan: StreamingPlan, frames: int) -> int:
    """Return cycles between the ends of the last two of so many frames."""
    if plan.settling is not None and frames > plan.settling + 1:
        if plan.period == 1:
            return plan.interval
        frames = plan.settling + 2 + (frames - plan.settling - 2) % plan.period
    return simulate_beats(plan.blocks, plan.inputs, plan.outputs, frames).spacings[-1]


@dataclass(frozen=True, slots=True)
class Trace:
    """When items came to where a block works, and when they were accepted there.

    Attributes
    ----------
    offered, accepted
        Cycles, one per item of all frames: a pass of an array or pool, a code of other blocks. An
        item of several words is offered with its last word.
    """

    offered: NDArray[np.int64]
    accepted: NDArray[np.int64]


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
        tensor: _trace([s for s in streams if isinstance(s, RecordedStream)], taking_turns)
        for tensor, (streams, taking_turns) in network.entrances.items()
    }


def _trace(operands: Sequence[RecordedStream], taking_turns: bool) -> Trace:
    """Merge streams that are accepted in turn, or all at once when the last has come.

    One that has fewer items than the first, such as a place, is not of these.
    """
    if not taking_turns:
        operands = [x for x in operands if len(x.times) == len(operands[0].times)]
    offered = [np.array(stream.offers) for stream in operands]
    accepted = [np.array(stream.times) for stream in operands]
    if not taking_turns:
        return Trace(np.maximum.reduce(offered), accepted[0])
    order = np.argsort(np.concatenate(accepted), kind="stable")
    return Trace(np.concatenate(offered)[order], np.concatenate(accepted)[order])


class Network:
    """The processes of a whole accelerator, ready to run.

    With ``lockstep`` several inputs keep step: each gives a beat only once the one before it has
    given the same share of its frames; and states give no codes of a frame before it is admitted.
    So nothing fills FIFOs without limit.

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
        lockstep: bool = False,
    ) -> None:
        self.kernel = Kernel(streams)
        self.inputs, self.outputs = inputs, outputs
        self.admitted = [self.kernel.log() for _ in inputs]
        self.gates = {
            block.tensor: self.kernel.log() for block in blocks if lockstep and block.closes_loop
        }
        self.sent = [self.kernel.log() for _ in inputs]
        self.passed = 0
        self.received: list[list[int]] = [[] for _ in outputs]
        self.fifos: dict[tuple[str, int], FifoLogs] = {}
        self.entrances: dict[str, tuple[Sequence[Stream], bool]] = {}
        # What waits for one another across frames: of every block, its operands and what it adds.
        self.groups: list[list[Stream | Log]] = []
        readers = Counter(source.tensor for block in blocks for source in block.sources)
        readers.update(port.tensor for port in outputs)
        self.branches: dict[str, list[Stream]] = {}
        self.unregistered: set[str] = set()

        for n, port in enumerate(inputs):
            self._begin_group()
            border = self.kernel.stream()
            self.entrances[port.tensor] = [border], False
            pace = None
            if lockstep and len(inputs) > 1:
                pace = Pace(self.sent[n - 1], inputs[n - 1].beats, port.beats)
            logs = (self.admitted[n], self.sent[n])
            self.kernel.start(source(border, port.beats, *logs, pace))
            self._give(port.tensor, SKID.start(self.kernel, border), readers)
        loops: list[tuple[str, Stream, list[Stream | Log]]] = []
        for block in blocks:
            self._begin_group()
            if block.closes_loop:
                # What it reads is given by a block behind it.
                operands = [self.kernel.stream() for _ in block.sources]
                pairs = zip(block.sources, operands, strict=True)
                loops += [(origin.tensor, operand, self.groups[-1]) for origin, operand in pairs]
            else:
                operands = [self._take(origin.tensor) for origin in block.sources]
            self._give(block.tensor, self._block(block, operands), readers)
        for tensor, operand, group in loops:
            result = self.branches[tensor].pop()
            group.append(result)
            connect(self.kernel, result, operand)
        for port, times in zip(outputs, self.received, strict=True):
            self._begin_group()
            result = SKID.start(self.kernel, self._take(port.tensor))
            self.kernel.start(sink(result, times))
        self.slowest = max(block.cycles for block in blocks)
        delay = max(part.interval for block in blocks for part in block.parts)
        self.advances = Advances(self.groups, max(LEAST_DELAY, delay))

    def run(self, frames: int | None = None) -> BeatTimes:
        """Let so many frames pass, or as many as it takes until their ends are spaced as for ever.

        Raises
        ------
        DeadlockError
            If a frame does not come out.
        """
        if frames is None:
            return self.settle()
        while self.passed < frames:
            self._step()
        return self.times

    def settle(self, enough: Steady | None = None, most: int | None = None) -> BeatTimes:
        """Let frames pass until they leave as they will for ever, and their ends show it.

        They need not show it once they are known to leave as soon as is ``enough``, nor after
        ``most`` frames. Frames that have passed already count.

        Raises
        ------
        DeadlockError
            If a frame does not come out.
        """
        while (steady := self._steady(enough, most)) is None:
            # More at a time when many have passed: looking at them takes as long as all of them.
            for _ in range(1 + self.passed // 32):
                self._step()
        return replace(self.times, steady=steady)

    def _steady(self, enough: Steady | None, most: int | None) -> Steady | None:
        """Return how frames leave, if those that have passed show it."""
        if not self.passed:
            return None
        times = self.times
        steady = find_steady(
            self.advances, times.last_outputs, times.latency, enough, slowest=self.slowest
        )
        is_long = self.passed > MOST_FRAMES and self.events > MOST_EVENTS
        if steady is None and (is_long or (most is not None and self.passed > most)):
            return self.advances.least()
        return steady

    def _step(self) -> None:
        """Let a frame pass."""
        self.passed += 1
        for log in (*self.admitted, *self.gates.values()):
            log.add(0)
        self.kernel.run()
        for port, times in zip(self.outputs, self.received, strict=True):
            if len(times) < port.beats * self.passed:
                raise DeadlockError
        self.advances.add_frame()

    @property
    def times(self) -> BeatTimes:
        """Beat times of the frames that have passed."""
        firsts = [
            log.times[:: port.beats] for log, port in zip(self.sent, self.inputs, strict=True)
        ]
        lasts = [
            times[port.beats - 1 :: port.beats]
            for times, port in zip(self.received, self.outputs, strict=True)
        ]
        return BeatTimes(
            tuple(min(cycles) for cycles in zip(*firsts, strict=True)),
            tuple(max(cycles) for cycles in zip(*lasts, strict=True)),
        )

    def _begin_group(self) -> None:
        """List the streams and logs that are made from now on as those of another block."""
        self.groups.append([])
        self.kernel.series = self.groups[-1]

    def _take(self, tensor: str) -> Stream:
        """Take one of the streams of that name."""
        stream = self.branches[tensor].pop()
        self.groups[-1].append(stream)
        return stream

    @property
    def events(self) -> int:
        """Number of events simulated so far: codes and words that entered or left a memory."""
        return sum(len(log.times) for log in self.kernel.logs)

    def _give(self, tensor: str, stream: Stream, readers: Counter[str]) -> None:
        """Make a stream known by its name, once for every reader."""
        branches = [stream]
        if readers[tensor] > 1:
            self.unregistered.add(tensor)
            branches = fork(self.kernel, stream, readers[tensor])
        self.branches[tensor] = branches

    def _operand(self, block: Block, n: int, stream: Stream) -> Stream:
        """Let an operand pass its FIFO."""
        if not block.fifos[n]:
            return stream
        fifo = block.fifo(n)
        if not isinstance(fifo, BlockFifo):
            return fifo.start(self.kernel, stream)
        stream, self.fifos[block.tensor, n] = fifo.start_logged(self.kernel, stream)
        return stream

    def _block(self, block: Block, operands: Sequence[Stream]) -> Stream:
        """Start the parts of a block; a constant operand is always there."""
        streams = [self._operand(block, n, stream) for n, stream in enumerate(operands)]
        if block.sources[0].tensor in self.unregistered and not block.parts[0].is_registered:
            self.unregistered.add(block.tensor)
        count = 1 if block.joins else len(streams)
        streams, joining = streams[:count], streams[count:]
        for n, part in enumerate(block.parts):
            if n == block.worker:
                self.entrances[block.tensor] = streams, part.takes_turns
            if n == block.joins:
                streams = [*streams, *joining]
            streams = [part.start(self.kernel, *streams)]
        if block.tensor in self.gates:
            admitted = self.kernel.stream()
            log = self.gates[block.tensor]
            self.kernel.start(gate(streams[0], admitted, block.cycles, log))
            return admitted
        return streams[0]
