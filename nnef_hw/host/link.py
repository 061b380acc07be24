"""Host side of the link to a board: the packets of docs/protocol.md over any byte transport.

Knows neither serial ports nor simulators: both are transports. Never looks at a clock, so that a
simulated board may take its time: all waiting is done by :meth:`Transport.read`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from nnef_hw.errors import TargetError, ToolError
from nnef_hw.host.packets import (
    Counters,
    Identity,
    LayerCounts,
    Packet,
    decode_packet,
    encode_packet,
)
from nnef_hw.host.protocol import (
    CLOCK_COUNTS,
    COUNTS,
    IDENTITY,
    LAYER_COUNTS,
    LOST_COUNTS,
    MAX_PAYLOAD,
    RATIO_CYCLES,
    VERSION,
    Reason,
    Reply,
    Request,
    Session,
)

__all__ = [
    "Host",
    "LinkError",
    "Timing",
    "Transport",
]

_MAX_GARBAGE = 1024

_REMEDIES = {
    Reason.TYPE: "its link has another protocol version; build and flash it again",
    Reason.TENSOR: "it has no layer of that number; flash the build that belongs to the model",
    Reason.LOADED: "its memory was filled meanwhile, by another host; run again",
    Reason.SESSION: "it was reset or reconfigured meanwhile; run again",
}


class LinkError(ToolError):
    """The board does not answer, or not as the protocol says."""


class Transport(Protocol):
    """Carries bytes to and from a board."""

    def write(self, data: bytes) -> None:
        """Send all bytes."""

    def read(self, timeout: float) -> bytes:
        """Bytes received, as soon as there are any; none after ``timeout`` seconds of silence."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Time limits of a host, in seconds of the transport.

    ``silence`` makes the board forget an unfinished packet and must exceed its 10 to 20 ms;
    ``reply`` is how long an answer may take; ``stall`` is how long an accelerator may work without
    giving a byte; ``pause`` lies between two polls of a working one.
    """

    silence: float = 0.03
    reply: float = 0.2
    stall: float = 30.0
    pause: float = 0.001
    retries: int = 10

    def scaled(self, factor: float) -> Timing:
        """Return the times of a board that takes ``factor`` times as long for everything."""
        return Timing(
            self.silence * factor, self.reply * factor, self.stall * factor, self.pause,
            self.retries,
        )  # fmt: skip


class Host:
    """Talks to one board: one request at a time, repeated until it is answered.

    Whatever the line does to the bytes, a result is delivered once, in order and as the board sent
    it, or :class:`LinkError` is raised.

    Parameters
    ----------
    transport
        Carries the bytes.
    timing
        Time limits of the link.
    sequence
        Number of the last request before this session; any number will do.

    Attributes
    ----------
    repeats
        Number of requests that had to be sent again.
    """

    def __init__(
        self, transport: Transport, timing: Timing | None = None, *, sequence: int = 0
    ) -> None:
        self._transport = transport
        self._timing = timing or Timing()
        self._sequence = sequence
        self.repeats = 0

    def open(self, manifest_hash: bytes | None = None) -> Identity:
        """Begin a session: check who answers, then clear accelerator and link.

        Raises
        ------
        LinkError
            When nobody answers, or the board speaks another version or runs another build.
        """
        self._drain()
        identity = self.identify()
        if manifest_hash is not None and identity.manifest_hash != manifest_hash:
            raise LinkError(
                f"the board runs build {identity.manifest_hash.hex()[:16]}, "
                f"not {manifest_hash.hex()[:16]}",
                remedy="flash the build first",
            )
        self.abort()
        return identity

    def identify(self) -> Identity:
        """Read the board's identity; needs no session and has no side effects."""
        payload = self._request(Request.IDENTIFY, expect={Reply.IDENTITY}).payload
        if not payload or payload[0] != VERSION:
            raise LinkError(
                f"the board speaks link protocol {payload[0] if payload else None}, not {VERSION}",
                remedy="build and flash it again",
            )
        if len(payload) != IDENTITY.size:
            raise LinkError(f"the board's identity has {len(payload)} bytes, not {IDENTITY.size}")
        return Identity(*IDENTITY.unpack(payload))

    def abort(self) -> None:
        """Reset the accelerator to a frame boundary and drop everything on its way."""
        self._request(Request.ABORT, expect={Reply.ACK})

    def begin_texts(self) -> None:
        """Do as :meth:`abort`, and begin a session of texts; boards without a loop refuse."""
        self._request(Request.ABORT, argument=Session.TEXTS, expect={Reply.ACK})

    def counters(self) -> Counters:
        """Read the board's counters."""
        payload = self._request(Request.COUNTERS, expect={Reply.COUNTS}).payload
        if len(payload) == CLOCK_COUNTS.size:
            latency, interval, frames, damaged, _, ratio = CLOCK_COUNTS.unpack(payload)
            return Counters(latency, interval, frames, damaged, ratio=ratio)
        layout = LOST_COUNTS if len(payload) == LOST_COUNTS.size else COUNTS
        return Counters(*layout.unpack_from(payload))

    def clock_hz(self) -> float:
        """Read the clock of the board's accelerator, as the board has measured or knows it.

        Raises
        ------
        LinkError
            If the board has not measured it yet.
        """
        clk_hz, ratio = self.identify().clk_hz, self.counters().ratio
        if ratio is None:
            return clk_hz
        if not ratio:
            raise LinkError("the board has not measured its clock", remedy="flash it again")
        return clk_hz * ratio / RATIO_CYCLES

    def layer_counts(self, layer: int) -> LayerCounts:
        """Read the counters of a layer, numbered from 1; boards without them refuse."""
        reply = self._request(Request.COUNTERS, argument=layer, expect={Reply.COUNTS})
        return LayerCounts(*LAYER_COUNTS.unpack_from(reply.payload))

    def replay(self, frames: int) -> bool:
        """Start a replay of ``frames`` frames, 0 to just ask; False while frames are in flight."""
        payload = frames.to_bytes(2, "little")
        reply = self._request(Request.REPLAY, payload, expect={Reply.ACK, Reply.BUSY})
        return reply.kind == Reply.ACK

    def wait_for_replay(self) -> None:
        """Poll until the replay has ended.

        Raises
        ------
        LinkError
            If it takes too long.
        """
        waited = 0.0
        while not self.replay(0):
            if waited > self._timing.stall:
                raise LinkError(
                    f"the replay has not ended within {self._timing.stall} seconds",
                    remedy="replay fewer frames",
                )
            self._transport.read(self._timing.pause)
            waited += self._timing.pause

    def load(self, image: bytes) -> Iterator[int]:
        """Fill the board's memory, unless it has been filled; yield the bytes of every packet.

        Raises
        ------
        LinkError
            If the board does not take them, or has no such memory.
        """
        if self._load(b""):
            return
        for offset in range(0, len(image), MAX_PAYLOAD):
            chunk = image[offset : offset + MAX_PAYLOAD]
            self._load_all(chunk)
            yield len(chunk)
        self._load_all(b"")

    def _load_all(self, payload: bytes) -> None:
        """Offer bytes until they are taken; without any, ask until all have come."""
        waited = 0.0
        while not self._load(payload):
            if waited > self._timing.stall:
                raise LinkError(
                    f"the board's memory has taken no words for {self._timing.stall:g} seconds",
                    remedy="power the board off and on, flash the build, and run again",
                )
            self._transport.read(self._timing.pause)
            waited += self._timing.pause

    def _load(self, payload: bytes) -> bool:
        """Offer bytes, or ask whether all have come; False if the board says that it is busy."""
        reply = self._request(Request.LOAD, payload, expect={Reply.ACK, Reply.BUSY})
        return reply.kind == Reply.ACK

    def send(self, payload: bytes, *, end: bool = False, tensor: int = 0) -> bool:
        """Offer one packet of a frame, its last one if ``end``; False when the board is busy."""
        kind = Request.DATA_END if end else Request.DATA
        reply = self._request(kind, payload, tensor, expect={Reply.ACK, Reply.BUSY})
        return reply.kind == Reply.ACK

    def read(self, tensor: int = 0) -> bytes:
        """Results that are ready, at most one packet of them, perhaps none."""
        return self._request(Request.READ, argument=tensor, expect={Reply.RESULT}).payload

    def infer(self, frames: Iterable[bytes], result_bytes: int) -> Iterator[bytes]:
        """Run frames through the accelerator, several in flight if it takes them.

        Parameters
        ----------
        frames
            Input bytes of each frame: whole beats.
        result_bytes
            Bytes of one frame's result.
        """
        pending = 0
        results = bytearray()
        for frame in frames:
            if not frame:
                raise ValueError("a frame has no bytes")
            pending += 1
            self._send_all(frame, results)
            while len(results) >= result_bytes:
                pending -= 1
                yield self._take(results, result_bytes)
        while pending:
            waited = 0.0
            while len(results) < result_bytes:
                waited = self._poll(results, waited)
            pending -= 1
            yield self._take(results, result_bytes)
        if results:
            raise LinkError(
                f"the board sent {len(results)} bytes after the last result",
                remedy="flash the build that belongs to the model",
            )

    def pieces(self, frame: bytes, size: int) -> Iterator[bytes]:
        """Send one frame, and yield what comes back, so many bytes at a time, without an end.

        Raises
        ------
        LinkError
            If the board stops answering, or nothing comes for too long.
        """
        results = bytearray()
        self._send_all(frame, results)
        yield from self._listen(results, size)

    def listen(self, size: int) -> Iterator[bytes]:
        """Yield results that come of themselves, so many bytes at a time, without an end.

        Raises
        ------
        LinkError
            If the board stops answering, or nothing comes for too long.
        """
        yield from self._listen(bytearray(), size)

    def _listen(self, results: bytearray, size: int) -> Iterator[bytes]:
        waited = 0.0
        while True:
            while len(results) >= size:
                yield self._take(results, size)
            waited = self._poll(results, waited)

    def _send_all(self, frame: bytes, results: bytearray) -> None:
        """Send a frame, and collect results while the board is busy."""
        for offset in range(0, len(frame), MAX_PAYLOAD):
            chunk = frame[offset : offset + MAX_PAYLOAD]
            waited = 0.0
            while not self.send(chunk, end=offset + MAX_PAYLOAD >= len(frame)):
                waited = self._poll(results, waited)

    @staticmethod
    def _take(results: bytearray, count: int) -> bytes:
        head = bytes(results[:count])
        del results[:count]
        return head

    def _poll(self, results: bytearray, waited: float) -> float:
        """Collect what is ready; return for how long nothing has been."""
        chunk = self.read()
        results += chunk
        if chunk:
            return 0.0
        if waited > self._timing.stall:
            raise LinkError(
                f"the accelerator sent no result for {self._timing.stall} seconds",
                remedy="check the result size and the build, then run again",
            )
        self._transport.read(self._timing.pause)
        return waited + self._timing.pause

    def _drain(self) -> None:
        """Wait until the line is silent: then the board waits for the start of a packet."""
        quiet = self._timing.silence
        for _ in range(_MAX_GARBAGE):
            if not self._transport.read(quiet):
                return
        raise LinkError("the line is never silent", remedy="check the port and the baud rate")

    def _request(
        self, kind: Request, payload: bytes = b"", argument: int = 0, *, expect: set[Reply]
    ) -> Packet:
        """Send a request under a new number until its reply arrives."""
        self._sequence = (self._sequence + 1) & 0xFF
        packet = encode_packet(Packet(kind, self._sequence, argument, payload))
        for attempt in range(self._timing.retries + 1):
            self.repeats += attempt > 0
            self._transport.write(packet)
            reply = self._await_reply()
            if reply is not None and reply.kind in expect:
                return reply
            if reply is not None and reply.kind == Reply.NAK and reply.argument != Reason.DAMAGED:
                self._refused(kind, reply.argument)
            self._drain()
        raise LinkError(
            f"the board does not answer {kind.name} after {self._timing.retries + 1} attempts",
            remedy="check that it is connected, flashed, and the baud rate is right",
        )

    def _await_reply(self) -> Packet | None:
        """Next packet of the current number or damage report; None after silence or garbage."""
        received = b""
        total = 0
        while total < _MAX_GARBAGE:
            chunk = self._transport.read(self._timing.reply)
            if not chunk:
                return None
            total += len(chunk)
            received += chunk
            packet, received = decode_packet(received)
            while packet is not None:
                damaged = packet.kind == Reply.NAK and packet.argument == Reason.DAMAGED
                if damaged or packet.sequence == self._sequence:
                    return packet
                packet, received = decode_packet(received)
        return None

    def _refused(self, kind: Request, argument: int) -> None:
        if argument == Reason.MEMORY:
            raise TargetError(
                f"the board refuses {kind.name}: the memory that the build reads weights from has "
                "not been filled over the link, or its flash does not answer as its chip does",
                remedy="check that the board is the one that was built for, power it off and on, "
                "flash the build, and run again",
            )
        nak_reason = {int(reason): reason for reason in Reason}.get(argument)
        reason = nak_reason.name.lower() if nak_reason else f"reason {argument}"
        remedy = _REMEDIES.get(nak_reason) if nak_reason else None
        raise LinkError(f"the board refuses {kind.name}: {reason}", remedy=remedy)
