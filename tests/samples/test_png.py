"""Pictures in PNG files."""

import re
import struct
import zlib

import numpy as np
import pytest

from nnef_hw.errors import UsageError
from nnef_hw.samples.png import read_png, write_png


@pytest.mark.parametrize("channels", [1, 3])
def test_is_written_and_read_back(channels, tmp_path, rng):
    pixels = rng.integers(0, 256, (5, 7, channels)).astype(np.uint8)
    write_png(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(read_png(tmp_path / "a.png"), pixels)


def filtered(pixels, sorts):
    """Lines that are told from what is beside and above each byte, by the standard's formulas."""
    rows, columns, channels = pixels.shape
    wide = np.zeros((rows + 1, columns + 1, channels), int)
    wide[1:, 1:] = pixels
    here, left = wide[1:, 1:], wide[1:, :-1]
    up, corner = wide[:-1, 1:], wide[:-1, :-1]
    guess = left + up - corner
    far = np.stack([abs(guess - left), abs(guess - up), abs(guess - corner)])
    nearest = np.choose(far.argmin(0), [left, up, corner])
    told = [0 * here, left, up, (left + up) // 2, nearest]
    return b"".join(
        bytes([sort]) + ((here - told[sort])[row] % 256).astype(np.uint8).tobytes()
        for row, sort in enumerate(sorts)
    )


def png(kind, lines, rows, columns, *, depth=8, palette=b""):
    header = struct.pack(">2I5B", columns, rows, depth, kind, 0, 0, 0)
    packed = zlib.compress(lines)
    chunks = [(b"IHDR", header), (b"PLTE", palette), (b"IDAT", packed), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
        if data or name != b"PLTE"
    )


@pytest.mark.parametrize(("kind", "channels", "kept"), [(0, 1, 1), (2, 3, 3), (4, 2, 1), (6, 4, 3)])
def test_every_filter_and_type(kind, channels, kept, tmp_path, rng):
    pixels = rng.integers(0, 256, (6, 9, channels))
    path = tmp_path / "a.png"
    path.write_bytes(png(kind, filtered(pixels, [4, 3, 2, 1, 0, 4]), 6, 9))
    np.testing.assert_array_equal(read_png(path), pixels[..., :kept])


def test_colours_of_a_palette(tmp_path, rng):
    places, palette = rng.integers(0, 4, (3, 5, 1)), rng.integers(0, 256, (4, 3)).astype(np.uint8)
    path = tmp_path / "a.png"
    path.write_bytes(png(3, filtered(places, [0, 1, 2]), 3, 5, palette=palette.tobytes()))
    np.testing.assert_array_equal(read_png(path), palette[places[..., 0]])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GIF89a", "it does not begin as one; convert it: ffmpeg -i"),
        (png(0, b"\0\0", 1, 1, depth=16), "16 bits"),
        (png(0, b"\0\0\0", 1, 1), "3 bytes are not 1 rows of 1 pixels"),
        (png(0, b"\5\0", 1, 1), "its lines have a filter 5"),
        (png(0, b"\0\0", 1, 1)[:40], "is no PNG"),
    ],
)
def test_refuses_other_files(data, message, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(data)
    with pytest.raises(UsageError, match=re.escape(message)):
        read_png(path)
    with pytest.raises(UsageError, match="No such file"):
        read_png(tmp_path / "none.png")
