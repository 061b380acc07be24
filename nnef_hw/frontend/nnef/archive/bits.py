"""Integers of any width, packed into bytes from the highest bit."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.arrays import Array

__all__ = ["WHOLE_BITS", "pack_bits", "unpack_bits"]

WHOLE_BITS = frozenset({8, 16, 32, 64})
"""Widths that are stored as little-endian integers instead."""


def pack_bits(array: Array, bits: int) -> bytes:
    """Return integers as items of ``bits`` bits, 1..64; the last byte is filled up with zeros."""
    if not 1 <= bits <= 64:
        raise ValueError(f"items of tensor files have 1..64 bits, not {bits}")
    if bits in WHOLE_BITS:
        return array.astype(f"<{array.dtype.kind}{bits // 8}").tobytes()
    wide = array.reshape(-1).astype(f">{array.dtype.kind}8").view(np.uint8).reshape(-1, 8)
    return np.packbits(np.unpackbits(wide, axis=1)[:, 64 - bits :]).tobytes()


def unpack_bits(body: memoryview, count: int, bits: int, *, signed: bool) -> Array:
    """Return ``count`` items of ``bits`` bits in the narrowest dtype that holds them."""
    rows = np.zeros((-(-count // 8), bits), np.uint8)  # 8 items lie in as many bytes as bits
    rows.reshape(-1)[: len(body)] = np.frombuffer(body, np.uint8)
    width = next(width for width in sorted(WHOLE_BITS) if width >= bits)
    values = np.empty((len(rows), 8), f"u{width // 8}")
    for item in range(8):
        first, last = item * bits // 8, ((item + 1) * bits - 1) // 8
        behind = 8 * (last + 1) - (item + 1) * bits
        value = rows[:, last].astype(np.uint64) >> behind
        for byte in range(first, last):
            value |= rows[:, byte].astype(np.uint64) << (8 * (last - byte) - behind)
        values[:, item] = value & ((1 << bits) - 1)
    values = values.reshape(-1)[:count]
    if not signed:
        return values
    sign = 1 << bits - 1
    return (values ^ sign).view(f"i{width // 8}") - sign
