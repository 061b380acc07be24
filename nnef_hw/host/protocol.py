"""The host link's wire format (docs/protocol.md), for the host and for the hardware."""

from __future__ import annotations

import struct
from enum import IntEnum

__all__ = [
    "CLOCK_COUNTS",
    "COUNTED_FRAMES",
    "COUNTS",
    "COUNTS_BYTES",
    "CRC_BYTES",
    "HASH_BYTES",
    "HEADER_BYTES",
    "IDENTITY",
    "LAYER_COUNTS",
    "LAYER_COUNTS_BYTES",
    "LINE_ANSWER",
    "LINE_HASH_BYTES",
    "LINE_LAST",
    "LINK_BITS",
    "LOST_BITS",
    "LOST_COUNTS",
    "MAX_BEAT",
    "MAX_PAYLOAD",
    "NO_STOP",
    "RATIO_BITS",
    "RATIO_CYCLES",
    "REPLAY_BYTES",
    "START",
    "TEXT",
    "VERSION",
    "WARM_UP_FRAMES",
    "Reason",
    "Reply",
    "Request",
    "Session",
    "identity_payload",
]

VERSION = 1
START = 0xA5
MAX_PAYLOAD = 56
MAX_BEAT = 255
"""Bytes of a beat of the accelerator at most: a byte of the identity says how many."""
LINK_BITS = 16
"""Width of a code at most."""
HASH_BYTES = 32
HEADER_BYTES = 5
CRC_BYTES = 2
REPLAY_BYTES = 2
# The work of layers is counted over so many frames, after so many have left.
WARM_UP_FRAMES = 8
COUNTED_FRAMES = 2
IDENTITY = struct.Struct(f"<4BI{HASH_BYTES}s")
"""Version, longest payload, bytes of a beat in and out, clock in Hz, hash of the manifest."""
COUNTS = struct.Struct("<2I2B")
LOST_COUNTS = struct.Struct("<2I2BH")
"""Counts of a board with a source that does not wait: at the end, the samples that were lost."""
CLOCK_COUNTS = struct.Struct("<2I2BHI")
"""Counts of a board whose clock is set after routing: no loss, and the ratio of the clocks."""
RATIO_CYCLES = 2048
"""Cycles of the oscillator, in which those of the accelerator's clock are counted."""
RATIO_BITS = 16
"""Bits of that count."""
LOST_BITS = 16
"""Bits of such a number; the greatest one means so many or more."""
LAYER_COUNTS = struct.Struct("<2I")
TEXT = struct.Struct("<2HI")
"""Tokens of a text at most, the one that ends it, state of the random numbers or 0."""
NO_STOP = 0xFFFF
"""No token ends a text."""
LINE_HASH_BYTES = 4
"""First bytes of the manifest's hash, by which a line of texts tells its build."""
LINE_ANSWER = struct.Struct(f">{LINE_HASH_BYTES}sH")
"""Answer to the head of a text on a line: that, and the CRC of head and weights."""
LINE_LAST = 0x8000
"""Bit of a prompt's last token on a line."""
COUNTS_BYTES = COUNTS.size
LAYER_COUNTS_BYTES = LAYER_COUNTS.size


class Session(IntEnum):
    """Sorts of sessions, by the argument of their ABORT: what DATA holds."""

    FRAMES = 0
    TEXTS = 1


class Request(IntEnum):
    """Types of the packets a host sends."""

    IDENTIFY = 0x01
    ABORT = 0x02
    COUNTERS = 0x03
    DATA = 0x04
    DATA_END = 0x05
    READ = 0x06
    REPLAY = 0x07
    LOAD = 0x08


class Reply(IntEnum):
    """Types of the packets a board sends."""

    ACK = 0x80
    NAK = 0x81
    BUSY = 0x82
    IDENTITY = 0x83
    RESULT = 0x84
    COUNTS = 0x85


class Reason(IntEnum):
    """Argument of a NAK."""

    NONE = 0
    DAMAGED = 1
    TYPE = 2
    TENSOR = 3
    LENGTH = 4
    SESSION = 5
    MEMORY = 6
    LOADED = 7


def identity_payload(
    *, clk_hz: float, manifest_hash: bytes, in_bytes: int, out_bytes: int
) -> bytes:
    """Payload of the IDENTITY reply.

    Parameters
    ----------
    clk_hz
        Clock of link and accelerator; the oscillator's where :data:`CLOCK_COUNTS` have the ratio.
    manifest_hash
        SHA-256 of the manifest.
    in_bytes, out_bytes
        Bytes of one beat of the first input that comes from the host, 0 if none does; and of the
        accelerator's first output.
    """
    if len(manifest_hash) != HASH_BYTES:
        raise ValueError(f"manifest hash must have {HASH_BYTES} bytes, not {len(manifest_hash)}")
    for name, count, least in (("input", in_bytes, 0), ("output", out_bytes, 1)):
        if not least <= count <= MAX_BEAT:
            raise ValueError(f"{name} beat of {count} bytes is over {MAX_BEAT}")
    return IDENTITY.pack(VERSION, MAX_PAYLOAD, in_bytes, out_bytes, round(clk_hz), manifest_hash)
