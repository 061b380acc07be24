"""Timed processes that hand items to each other: the kernel of the beat-time simulation.

A stream is a rendezvous: the producer offers an item at the cycle its ``valid`` rises, the consumer
accepts it no earlier than that. Every process advances its own clock, so the network is a timed
Kahn network: results do not depend on the order in which processes run.

A process is a generator that never ends. What it yields is what it waits for:

* a :class:`Stream`: an item; it goes on with the cycle in which that is offered, and later calls
  :meth:`Stream.accept`;
* ``(stream, cycle)``: it offers an item, and goes on with the cycle in which that is accepted;
* ``(branches, cycle)``: it offers an item to all :class:`Branches`, and goes on with the cycle in
  which the last accepts it;
* ``(log, count)``: it goes on, with some number, when the log has that many events.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator
from typing import Any

from nnef_hw.parts.base.untyped import Hardware

__all__ = ["Branches", "Kernel", "Log", "Process", "RecordedStream", "Stream"]

Process = Generator[Any, int, None]
Resume = Callable[[Hardware], Hardware]


class Stream:
    """Rendezvous of one producer and one consumer; ``times`` are those at which items passed."""

    __slots__ = ("consumer", "offered", "producer", "ready", "times")

    def __init__(self, kernel: Kernel) -> None:
        self.ready = kernel.ready
        self.times = array("q")
        self.offered: int | None = None
        self.producer: Resume | None = None
        self.consumer: Resume | None = None

    def accept(self, time: int) -> None:
        """Complete the rendezvous: the consumer takes the offered item at this cycle."""
        self.offered = None
        self.times.append(time)
        self.ready.append((self.producer, time))


class RecordedStream(Stream):
    """A stream that also notes in ``offers`` when the items were offered."""

    __slots__ = ("offers",)

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self.offers = array("q")

    def accept(self, time: int) -> None:
        """Complete the rendezvous, and note when it began."""
        assert self.offered is not None
        self.offers.append(self.offered)
        super().accept(time)


class Log:
    """Times of events of one process that another one waits for.

    The events may be the items that pass a stream, which notes them itself.
    """

    __slots__ = ("missing", "ready", "times", "waiter")

    def __init__(self, kernel: Kernel, stream: Stream | None) -> None:
        self.ready = kernel.ready
        self.times = array("q") if stream is None else stream.times
        self.waiter: Resume | None = None
        self.missing = 0

    def add(self, time: int) -> None:
        """Record an event; wake the process that waits for it."""
        self.times.append(time)
        if self.waiter is not None:
            self.wake(time)

    def wake(self, time: int) -> None:
        """Let the process go on that waits for as many events as there are now."""
        if self.waiter is not None and len(self.times) >= self.missing:
            self.ready.append((self.waiter, time))
            self.waiter = None


class Branches:
    """Several streams that get the same items from one producer, made by :meth:`Kernel.branches`.

    Attributes
    ----------
    streams
        The streams.
    """

    __slots__ = ("_accepted", "_last", "_missing", "_producer", "_ready", "streams")

    def __init__(self, kernel: Kernel, streams: tuple[Stream, ...]) -> None:
        self.streams = streams
        self._ready, self._accepted = kernel.ready, self._accept
        self._producer: Resume | None = None
        self._missing = self._last = 0

    def offer(self, time: int, producer: Resume) -> None:
        """Offer an item to all; the producer goes on when the last has accepted it."""
        self._producer, self._missing, self._last = producer, len(self.streams), -1
        for stream in self.streams:
            stream.offered, stream.producer = time, self._accepted
            if stream.consumer is not None:
                self._ready.append((stream.consumer, time))
                stream.consumer = None

    def _accept(self, time: int) -> None:
        """Note that one more stream has accepted."""
        self._missing -= 1
        if time > self._last:
            self._last = time
        if not self._missing:
            self._ready.append((self._producer, self._last))


class Kernel:
    """Makes streams and logs, and runs the processes that use them until none can go on.

    Parameters
    ----------
    stream_class
        What :meth:`stream` makes.

    Attributes
    ----------
    logs
        All that :meth:`log` made.
    series
        Where streams and logs are listed as they are made.
    """

    def __init__(self, stream_class: type[Stream] = Stream) -> None:
        self.ready: list[tuple[Hardware, int | None]] = []
        self.logs: list[Log] = []
        self.series: list[Stream | Log] = []
        self._stream_class = stream_class
        self._processes: list[Process] = []

    def __del__(self) -> None:
        """End the processes: they and their streams hold each other, and much memory so."""
        for process in self._processes:
            process.close()

    def stream(self) -> Stream:
        """Return a new stream."""
        stream = self._stream_class(self)
        self.series.append(stream)
        return stream

    def branches(self, count: int) -> Branches:
        """Return new streams that one producer gives the same items."""
        return Branches(self, tuple(self.stream() for _ in range(count)))

    def log(self, stream: Stream | None = None) -> Log:
        """Return a new log; if a stream is given, of the items that pass it.

        The process that makes them pass calls :meth:`Log.wake` then, not :meth:`Log.add`.
        """
        log = Log(self, stream)
        self.logs.append(log)
        if stream is None:
            self.series.append(log)
        return log

    def start(self, process: Process) -> None:
        """Let a process run."""
        self._processes.append(process)
        self.ready.append((process.send, None))

    def run(self) -> None:
        """Run until no process can go on."""
        ready, streams = self.ready, self._stream_class
        while ready:
            resume, value = ready.pop()
            request = resume(value)
            while True:
                # type() of one argument is the fastest question to an object.
                if type(request) is not tuple:
                    if request is None:
                        break
                    value = request.offered
                    if value is None:
                        request.consumer = resume
                        break
                    request = resume(value)
                    continue
                target, value = request
                kind = type(target)
                if kind is streams:
                    # Most common by far: no detour over the list if the consumer waits.
                    target.offered, target.producer = value, resume
                    resume = target.consumer
                    if resume is None:
                        break
                    target.consumer = None
                    request = resume(value)
                elif kind is Log:
                    if len(target.times) < value:
                        target.waiter, target.missing = resume, value
                        break
                    request = resume(value)
                else:
                    target.offer(value, resume)
                    break
