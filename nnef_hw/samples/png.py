"""Pictures in PNG files, without a library: 8 bits, grey or colours, not interlaced."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UsageError

__all__ = ["read_png", "write_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">2I5B")
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
"""Bytes of a pixel by type: grey, colours, a palette's, and the first two with opacity."""
_PALETTE = 3
_COLOURED = {2, 3, 6}

Pixels = NDArray[np.uint8]


def read_png(path: Path) -> Pixels:
    """Return the bytes [rows, columns, 1 or 3] of a picture; opacity is left out.

    Raises
    ------
    UsageError
        If it is no such file.
    """
    convert = f"convert it: ffmpeg -i {path} -pix_fmt rgb24 converted.png"
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    try:
        return _decoded(data)
    except (ValueError, KeyError, struct.error, zlib.error, IndexError) as error:
        what = f"{path} is no PNG of 8 bits that is known: {error}"
        raise UsageError(what, remedy=convert) from error


def write_png(path: Path, pixels: Pixels) -> None:
    """Write bytes [rows, columns, 1 or 3]."""
    rows, columns, channels = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    kind = {1: 0, 3: 2}[channels]
    header = _HEADER.pack(columns, rows, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    path.write_bytes(_SIGNATURE + b"".join(_chunk(*chunk) for chunk in chunks))


def _chunk(name: bytes, data: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(name + data))
    return struct.pack(">I", len(data)) + name + data + check


def _decoded(data: bytes) -> Pixels:
    if not data.startswith(_SIGNATURE):
        raise ValueError("it does not begin as one")
    place, packed, palette = len(_SIGNATURE), b"", b""
    header = _HEADER.pack(0, 0, 0, 0, 0, 0, 0)
    name = b""
    while name != b"IEND":
        size, name = struct.unpack_from(">I4s", data, place)
        chunk = data[place + 8 : place + 8 + size]
        place += 12 + size
        if name == b"IHDR":
            header = chunk
        elif name == b"PLTE":
            palette = chunk
        elif name == b"IDAT":
            packed += chunk
    columns, rows, depth, kind, _, _, interlaced = _HEADER.unpack(header)
    if depth != 8 or interlaced:
        raise ValueError(f"{depth} bits{', interlaced' if interlaced else ''}")
    channels = _CHANNELS[kind]
    pixels = _unfiltered(zlib.decompress(packed), rows, columns, channels)
    if kind == _PALETTE:
        pixels = np.frombuffer(palette, np.uint8).reshape(-1, 3)[pixels[..., 0]]
    return pixels[..., : 3 if kind in _COLOURED else 1]


def _unfiltered(data: bytes, rows: int, columns: int, channels: int) -> Pixels:
    stride = columns * channels
    if len(data) != rows * (stride + 1):
        raise ValueError(f"{len(data)} bytes are not {rows} rows of {columns} pixels")
    lines = np.frombuffer(data, np.uint8).reshape(rows, stride + 1)
    above = np.zeros(stride, np.int64)
    found = np.empty((rows, stride), np.uint8)
    for n, (sort, *_) in enumerate(lines):
        above = _line(int(sort), lines[n, 1:].astype(np.int64), above, channels)
        found[n] = above
    return found.reshape(rows, columns, channels)


def _line(
    sort: int, line: NDArray[np.int64], above: NDArray[np.int64], channels: int
) -> NDArray[np.int64]:
    """Return a line of which each byte was told from those to the left of it and above it."""
    if sort in {0, 2}:
        return line + above & 255 if sort else line
    found = np.zeros(len(line) + channels, np.int64)
    before = np.concatenate([np.zeros(channels, np.int64), above])
    for n, byte in enumerate(line.tolist()):
        left, up, corner = int(found[n]), int(above[n]), int(before[n])
        found[n + channels] = byte + _expected(sort, left, up, corner) & 255
    return found[channels:]


def _expected(sort: int, left: int, up: int, corner: int) -> int:
    if sort == 1:
        return left
    if sort == 3:
        return (left + up) // 2
    if sort != 4:
        raise ValueError(f"its lines have a filter {sort}")
    far = [abs(left + up - corner - near) for near in (left, up, corner)]
    return (left, up, corner)[far.index(min(far))]
