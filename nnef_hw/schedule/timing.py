"""Timed processes that hand items to each other: the kernel of the beat-time simulation.

A stream is a rendezvous: the producer offers an item at the cycle its ``valid`` rises, the consumer
accepts it no earlier than that. Every process advances its own clock, so the network is a timed
Kahn network: results do not depend on the order in which processes run.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Kernel", "Log", "Peek", "Process", "Put", "PutAll", "Recorder", "Stream", "Wait"]


class Stream:
    """Rendezvous of one producer and one consumer."""

    __slots__ = ("consumer", "offer", "producer")

    def __init__(self) -> None:
        self.offer: int | None = None
        self.producer: Process | _Gather | None = None
        self.consumer: Process | None = None


class Log:
    """Times of events of one process that another one waits for."""

    __slots__ = ("times", "waiter")

    def __init__(self) -> None:
        self.times: list[int] = []
        self.waiter: tuple[Process, int] | None = None


@dataclass(slots=True)
class Put:
    """Offer an item at a cycle; resumes with the cycle in which it is accepted."""

    stream: Stream
    time: int


@dataclass(slots=True)
class PutAll:
    """Offer an item to several streams; resumes when all have accepted, with the last cycle."""

    streams: tuple[Stream, ...]
    time: int


class _Gather:
    """A process that waits until several streams have accepted its item."""

    __slots__ = ("missing", "process", "time")

    def __init__(self, process: Process, missing: int) -> None:
        self.process, self.missing, self.time = process, missing, -1


@dataclass(slots=True)
class Peek:
    """Wait for an item; resumes with the cycle in which it is offered."""

    stream: Stream


@dataclass(slots=True)
class Wait:
    """Wait until a log has that many events."""

    log: Log
    count: int


Process = Generator[Any, int, None]


@dataclass
class Kernel:
    """Runs processes until none can go on."""

    ready: deque[tuple[Process, int]] = field(default_factory=deque)

    def start(self, process: Process) -> None:
        """Let a process run."""
        self.ready.append((process, -1))

    def accept(self, stream: Stream, time: int) -> None:
        """Complete the rendezvous: the consumer took the offered item at this cycle."""
        producer = stream.producer
        assert producer is not None
        stream.offer = stream.producer = None
        if isinstance(producer, _Gather):
            producer.missing -= 1
            producer.time = max(producer.time, time)
            if producer.missing:
                return
            time, producer = producer.time, producer.process
        self.ready.append((producer, time))

    def log(self, log: Log, time: int) -> None:
        """Record an event; wake the process that waits for it."""
        log.times.append(time)
        if log.waiter is not None and len(log.times) >= log.waiter[1]:
            self.ready.append((log.waiter[0], 0))
            log.waiter = None

    def run(self) -> None:
        """Run until no process can go on."""
        while self.ready:
            process, value = self.ready.popleft()
            try:
                request = next(process) if value < 0 else process.send(value)
            except StopIteration:
                continue
            if isinstance(request, Put):
                self._offer(request.stream, request.time, process)
            elif isinstance(request, Peek):
                if request.stream.offer is None:
                    request.stream.consumer = process
                else:
                    self.ready.append((process, request.stream.offer))
            elif isinstance(request, PutAll):
                gather = _Gather(process, len(request.streams))
                for stream in request.streams:
                    self._offer(stream, request.time, gather)
            elif len(request.log.times) >= request.count:
                self.ready.append((process, 0))
            else:
                request.log.waiter = (process, request.count)

    def _offer(self, stream: Stream, time: int, producer: Process | _Gather) -> None:
        stream.offer, stream.producer = time, producer
        if stream.consumer is not None:
            self.ready.append((stream.consumer, time))
            stream.consumer = None


@dataclass
class Recorder(Kernel):
    """A kernel that notes when every item is offered and accepted, stream by stream."""

    events: dict[Stream, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def accept(self, stream: Stream, time: int) -> None:
        """Complete the rendezvous, and note it."""
        assert stream.offer is not None
        self.events[stream].append((stream.offer, time))
        super().accept(stream, time)
