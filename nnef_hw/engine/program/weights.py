"""Words of weights as a program has them: each in one of its memory, or two in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.nest import LayerPart
from nnef_hw.parts.engine.narrow import NARROW_BITS, packed_words, short_words

__all__ = ["contents", "packed", "weights_read"]


def weights_read(part: LayerPart) -> int:
    """Return how many words of weights a part reads, one after the other."""
    low, high = part.nest.extremes("weight")
    return high + 1 - low


def packed(parts: list[LayerPart]) -> list[LayerPart]:
    """Return the parts of a layer with words of weights of which two are one in memory."""
    ends = [0, *accumulate(-(-len(part.weights) // 2) for part in parts)]
    return [
        replace(part, weights=range(begin, end))
        for part, (begin, end) in zip(parts, pairwise(ends), strict=True)
    ]


def contents(
    layer: EngineLayer,
    parts: Sequence[LayerPart],
    shape: Shape,
    *,
    is_packed: bool,
    is_short: bool = False,
) -> list[int]:
    """Return the words of memory of a layer's weights: row 0 and lane 0 lowest."""
    codes = layer.weights(shape).reshape(-1, shape.rows * shape.lanes)
    if is_short:
        nibbles = short_words(codes)[0] & (1 << NARROW_BITS) - 1
        codes = (nibbles[:, ::2] | nibbles[:, 1::2] << NARROW_BITS).astype(np.uint8).view(np.int8)
    data = codes.astype(np.int8)
    assert (data == codes).all(), f"{layer.name}: weights exceed 8 bits"
    if is_packed:
        ends = [0, *accumulate(map(weights_read, parts))]
        data = np.concatenate([packed_words(data[a:b]) for a, b in pairwise(ends)])
    return [int.from_bytes(row.tobytes(), "little") for row in data]
