"""Bytes that a camera makes of pictures."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["camera_bytes"]

Pixels = NDArray[np.uint8]
_GREY = np.array([38, 75, 15])
_COLOURS = np.array([[77, 150, 29], [-43, -85, 128], [128, -107, -21]])
"""Red, green and blue in Y, U and V, of 256."""


def camera_bytes(pixels: Pixels, form: str) -> Pixels:
    """Return the bytes [rows, columns, bytes of a pixel] of a picture [rows, columns, 1 or 3]."""
    return _FORMS[form](pixels.astype(np.int64)).astype(np.uint8)


def _grey(pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    if pixels.shape[2] == 1:
        return pixels
    return (pixels @ _GREY + 64 >> 7)[..., None]


def _colours(pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.broadcast_to(pixels, (*pixels.shape[:2], 3))


def _rgb565(pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    red, green, blue = np.moveaxis(_colours(pixels), -1, 0)
    word = red >> 3 << 11 | green >> 2 << 5 | blue >> 3
    return np.stack([word >> 8, word & 255], -1)


def _yuv422(pixels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return Y and, by turns, U and V of two pixels."""
    if pixels.shape[2] == 1:
        return np.concatenate([pixels, np.full_like(pixels, 128)], -1)
    bright, u, v = (np.clip((pixels @ row + 128 >> 8) + offset, 0, 255)
                    for row, offset in zip(_COLOURS, (0, 128, 128), strict=True))
    colour = np.where(np.arange(pixels.shape[1]) % 2, v, u)
    return np.stack([bright, colour], -1)


_FORMS: Mapping[str, Callable[[NDArray[np.int64]], NDArray[np.int64]]] = {
    "grey": _grey, "rgb565": _rgb565, "yuv422": _yuv422,
}
