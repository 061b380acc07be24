"""Beat times: when every beat of a Plan moves, by simulating its blocks as timed processes.

With the timing of the components they are the cycles of the hardware, exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from operator import itemgetter

from nnef_hw.parts.fifo import BlockFifo, FifoLogs
from nnef_hw.parts.fork import fork
from nnef_hw.parts.stream import Skid
from nnef_hw.parts.timing import Kernel, RecordedStream, Stream
from nnef_hw.schedule.block import Block
from nnef_hw.schedule.border import Pace, sink, source
from nnef_hw.schedule.plan import Port

__all__ = [
    "BeatTimes", "DeadlockError", "Network", "Trace", "simulate_beats", "trace_beats",
]  # fmt: skip

LEAST_FRAMES = 3
SKID = Skid(bits=1)
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
        self.kernel = Kernel(streams)
        self.inputs, self.outputs = inputs, outputs
        self.admitted = [self.kernel.log() for _ in inputs]
        self.given = [self.kernel.log() for _ in inputs]
        self.taken: list[list[int]] = [[] for _ in outputs]
        self.fifos: dict[tuple[str, int], FifoLogs] = {}
        self.entrances: dict[str, tuple[Sequence[Stream], bool]] = {}
        readers = Counter(source.tensor for block in blocks for source in block.sources)
        readers.update(port.tensor for port in outputs)
        self.branches: dict[str, list[Stream]] = {}
        self.unregistered: set[str] = set()

        for n, port in enumerate(inputs):
            border = self.kernel.stream()
            self.entrances[port.tensor] = [border], False
            pace = None
            if in_step:
                pace = Pace(self.given[n - 1], inputs[n - 1].beats, port.beats)
            ends = (self.admitted[n], self.given[n])
            self.kernel.start(source(border, port.beats, *ends, pace))
            self._give(port.tensor, SKID.start(self.kernel, border), readers)
        for block in blocks:
            self._give(block.tensor, self._block(block), readers)
        for port, times in zip(outputs, self.taken, strict=True):
            result = SKID.start(self.kernel, self.branches[port.tensor].pop())
            self.kernel.start(sink(result, times))

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

    @property
    def events(self) -> int:
        """What has been simulated so far: codes and words that entered or left a memory."""
        return sum(len(log.times) for log in self.kernel.logs)

    def _give(self, tensor: str, stream: Stream, readers: Counter[str]) -> None:
        """Make a stream known by its name, once for every reader."""
        branches = [stream]
        if readers[tensor] > 1:
            self.unregistered.add(tensor)
            branches = fork(self.kernel, stream, readers[tensor])
        self.branches[tensor] = branches

    def _operand(self, block: Block, n: int) -> Stream:
        stream = self.branches[block.sources[n].tensor].pop()
        if not block.fifos[n]:
            return stream
        fifo = block.fifo(n)
        if not isinstance(fifo, BlockFifo):
            return fifo.start(self.kernel, stream)
        stream, self.fifos[block.tensor, n] = fifo.start_logged(self.kernel, stream)
        return stream

    def _block(self, block: Block) -> Stream:
        """Start the parts of a block; a constant operand is always there."""
        streams = [self._operand(block, n) for n in range(len(block.sources))]
        if block.sources[0].tensor in self.unregistered and not block.parts[0].is_registered:
            self.unregistered.add(block.tensor)
        for n, part in enumerate(block.parts):
            if n == block.worker:
                self.entrances[block.tensor] = streams, part.takes_turns
            streams = [part.start(self.kernel, *streams)]
        return streams[0]
