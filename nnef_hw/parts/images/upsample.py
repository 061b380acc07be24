"""Rows and columns, several times each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.images.reorder import Enlargement, place_bits

__all__ = ["Upsample"]


@dataclass(frozen=True, kw_only=True)
class Upsample(Enlargement):
    """Gives pixels and rows several times; its memory holds a row or more, at least 2 codes."""

    component = "nnef_hw.rtl.images.upsample:Upsample"
    label = "upsample"
    costs = "upsample"

    def __post_init__(self) -> None:
        super().__post_init__()
        least = max(2, self.width * self.channels)
        if self.depth < least:
            raise ValueError(f"Upsample depth must be at least {least}, not {self.depth!r}")

    @property
    def counters(self) -> int:
        place = place_bits(self.height, self.width, self.channels, *self.factors)
        return place + 6 * counter_bits(self.depth)

    @property
    def reading(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        rows, columns = self.factors
        count = self.height * self.width * self.channels
        image = np.arange(count).reshape(self.height, self.width, self.channels)
        reads = image.repeat(rows, axis=0).repeat(columns, axis=1)
        frees = np.zeros_like(reads)
        frees[rows - 1 :: rows, columns - 1 :: columns] = 1
        return reads.reshape(-1), frees.reshape(-1)
