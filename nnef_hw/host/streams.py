"""Conversion between tensors and the accelerator's streams, done by the host."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.ir.batch import join_batch

__all__ = ["Stream", "fill_batch", "from_stream", "to_stream"]


class Stream(Protocol):
    """Shape of a stream: an image (height, width, channels) in beats of so many channels."""

    @property
    def image(self) -> tuple[int, int, int]:
        """Extents of the image."""

    @property
    def lanes(self) -> int:
        """Codes per beat."""

    @property
    def beats(self) -> int:
        """Beats per frame."""


def fill_batch(codes: Array, batch: int) -> Array:
    """Return codes [N, ...] with frames of 0 behind them, up to a multiple of a batch."""
    codes = np.asarray(codes)
    filling = np.zeros((-len(codes) % batch, *codes.shape[1:]), codes.dtype)
    return np.concatenate([codes, filling]) if len(filling) else codes


def to_stream(codes: Array, port: Stream) -> NDArray[np.int64]:
    """Codes [N, ...] of a graph input as beats [N, beats, lanes]: row, column, channel.

    A reshape at the graph's input is done here: any shape with the stream's number of elements will
    do. Filling lanes are 0.
    """
    height, width, channels = port.image
    image = np.asarray(codes, np.int64).reshape(len(codes), channels, height, width)
    image = image.transpose(0, 2, 3, 1)
    filling = -channels % port.lanes
    if filling:
        image = np.pad(image, ((0, 0), (0, 0), (0, 0), (0, filling)))
    return image.reshape(len(codes), port.beats, port.lanes)


def from_stream(beats: Array, port: Stream, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Beats [N, beats, lanes] of a graph output as codes, see :func:`join_batch`."""
    height, width, channels = port.image
    image = np.asarray(beats, np.int64).reshape(len(beats), height, width, -1)[..., :channels]
    return join_batch(image.transpose(0, 3, 1, 2).reshape(len(beats), *shape), shape)
