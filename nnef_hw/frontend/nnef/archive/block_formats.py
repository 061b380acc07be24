"""Weights in blocks of 32 that share a scale: the formats of vendor 0x5452 (tract)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import Location, ModelError

__all__ = ["BLOCK_FORMATS", "BLOCK_VENDOR", "BlockFormat", "encode_q4_0"]

BLOCK_VENDOR = 0x5452
_BLOCK = 32

FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """Layout of a block of 32 values in ``size`` bytes.

    Parameters
    ----------
    name
        Name of the format.
    size
        Number of bytes of a block.
    decode
        Maps blocks, uint8 [N, size], to values, float32 [N, 32].
    """

    name: str
    size: int
    decode: Callable[[NDArray[np.uint8]], FloatArray]

    def check(self, shape: tuple[int, ...], where: Location) -> int:
        """Return the length in bytes of a tensor's data.

        Raises
        ------
        ModelError
            If the shape cannot be cut into blocks within each slice of dimension 0.
        """
        if len(shape) < 2 or math.prod(shape[1:]) % _BLOCK:
            raise ModelError(
                f"shape {list(shape)} cannot be cut into blocks of {_BLOCK} as {self.name} needs",
                remedy="export the model again, this tensor as float32",
                location=where,
            )
        return math.prod(shape) // _BLOCK * self.size

    def read(self, body: memoryview, shape: tuple[int, ...]) -> FloatArray:
        """Return the values of a tensor whose length was checked."""
        blocks = np.frombuffer(body, np.uint8).reshape(-1, self.size)
        return self.decode(blocks).reshape(shape)


def encode_q4_0(values: Array) -> bytes:
    """Return the blocks of real numbers as the exporters choose them.

    The scale is the value of the largest magnitude in a block over -8, so that this one is exact.
    """
    rows = np.asarray(values, np.float32).reshape(-1, _BLOCK)
    peak = np.take_along_axis(rows, np.abs(rows).argmax(axis=1)[:, None], axis=1)
    scale = (peak / -8).astype("<f2")
    step = scale.astype(np.float32)
    inverse = np.divide(1, step, out=np.zeros_like(step), where=step != 0)
    codes = np.clip(np.trunc(rows * inverse + np.float32(8.5)), 0, 15).astype(np.uint8)
    nibbles = codes[:, :16] | codes[:, 16:] << 4
    return np.hstack([scale.view(np.uint8), nibbles]).tobytes()


def _scale(blocks: NDArray[np.uint8]) -> FloatArray:
    return np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)


def _split_halves(blocks: NDArray[np.uint8]) -> FloatArray:
    """Low nibbles are the first 16 values, high ones the other 16."""
    nibbles = np.hstack([blocks[:, 2:] & 15, blocks[:, 2:] >> 4])
    return (nibbles.astype(np.float32) - 8) * _scale(blocks)


def _split_pairs(blocks: NDArray[np.uint8]) -> FloatArray:
    """Each byte holds two neighbours, the first one in its low nibble."""
    nibbles = np.stack([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=2).reshape(-1, _BLOCK)
    return (nibbles.astype(np.float32) - 8) * _scale(blocks)


def _bytes(blocks: NDArray[np.uint8]) -> FloatArray:
    """Scale, sum of the values (not needed), 32 signed bytes."""
    return np.ascontiguousarray(blocks[:, 4:]).view(np.int8) * _scale(blocks)


_Q8_1 = BlockFormat("Q8_1", 36, _bytes)

BLOCK_FORMATS: Mapping[int, BlockFormat] = MappingProxyType({
    0x3040: BlockFormat("Q4_0", 18, _split_halves),
    0x2040: BlockFormat("Q4_0 of before 2025", 18, _split_pairs),
    0x3080: _Q8_1,
    0x3081: _Q8_1,
})  # fmt: skip
"""Block formats by the vendor's item type."""
