"""Packets of docs/protocol.md: their bytes, and what replies say."""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass

from nnef_hw.host.protocol import (
    CRC_BYTES,
    HEADER_BYTES,
    MAX_PAYLOAD,
    START,
)

__all__ = [
    "Counters",
    "Identity",
    "LayerCounts",
    "Packet",
    "decode_packet",
    "encode_packet",
]


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet of either direction; ``argument`` is a tensor index, or the reason of a NAK."""

    kind: int
    sequence: int
    argument: int = 0
    payload: bytes = b""


@dataclass(frozen=True, slots=True)
class Identity:
    """A board's description of itself."""

    version: int
    max_payload: int
    in_bytes: int
    out_bytes: int
    clk_hz: int
    manifest_hash: bytes


@dataclass(frozen=True, slots=True)
class Counters:
    """Measurements of a board: cycles of the accelerator's clock, all modulo their width.

    ``lost`` counts samples that sources have lost since the reset, 65,535 being so many or more;
    None if every source waits. ``ratio`` are the accelerator's cycles in 2048 of the oscillator, 0
    before they are counted; None if both have one clock, or the identity tells it.
    """

    latency: int
    interval: int
    frames: int
    damaged: int
    lost: int | None = None
    ratio: int | None = None


@dataclass(frozen=True, slots=True)
class LayerCounts:
    """Cycles of two frames in which a layer took a word, and in which one had to wait."""

    busy: int
    waiting: int


def encode_packet(packet: Packet) -> bytes:
    """Bytes of a packet on the line."""
    if len(packet.payload) > MAX_PAYLOAD:
        raise ValueError(f"payload of {len(packet.payload)} bytes is over {MAX_PAYLOAD}")
    body = bytes([packet.kind, packet.sequence, packet.argument, len(packet.payload)])
    body += packet.payload
    return bytes([START]) + body + crc_hqx(body, 0xFFFF).to_bytes(2, "big")


def decode_packet(received: bytes) -> tuple[Packet | None, bytes]:
    """Return the first valid packet in the received bytes, and the bytes after it.

    Bytes before the packet are dropped. Without one, the second item may be its beginning.
    """
    start = received.find(START)
    while start >= 0:
        candidate = received[start:]
        if len(candidate) < HEADER_BYTES:
            return None, candidate
        payload_end = HEADER_BYTES + candidate[4]
        end = payload_end + CRC_BYTES
        if candidate[4] <= MAX_PAYLOAD:
            if len(candidate) < end:
                return _decode_behind(received, start, candidate)
            if crc_hqx(candidate[1:end], 0xFFFF) == 0:
                payload = candidate[HEADER_BYTES:payload_end]
                return Packet(candidate[1], candidate[2], candidate[3], payload), candidate[end:]
        start = received.find(START, start + 1)
    return None, b""


def _decode_behind(received: bytes, start: int, unfinished: bytes) -> tuple[Packet | None, bytes]:
    """Look past an unfinished packet, which may be noise in front of a whole one."""
    packet, remaining = decode_packet(received[start + 1 :])
    return (packet, remaining) if packet else (None, unfinished)
