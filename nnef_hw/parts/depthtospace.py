"""Channels spread over rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.parts.part import counter_bits
from nnef_hw.parts.reorder import Reorder, place_bits

__all__ = ["DepthToSpace"]


@dataclass(frozen=True, kw_only=True)
class DepthToSpace(Reorder):
    """Makes of a pixel's channels (y, x, c) ``factors`` rows and columns of ``channels``."""

    component = "nnef_hw.rtl.depthtospace:DepthToSpace"
    label = "depth_to_space"
    costs = "depth to space"

    height: int
    width: int
    channels: int
    factors: tuple[int, int]
    depth: int

    @property
    def memory_depth(self) -> int:
        return self.depth

    @property
    def _pixel(self) -> int:
        """Codes of a pixel that comes."""
        rows, columns = self.factors
        return self.channels * rows * columns

    @property
    def counters(self) -> int:
        place = place_bits(self.height, self.width, self._pixel, *self.factors)
        return place + 4 * counter_bits(self.depth)

    @property
    def reading(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = np.arange(self.height * self.width * self._pixel)
        phases = codes.reshape(self.height, self.width, self.factors[0], -1)
        reads = phases.swapaxes(1, 2)
        frees = np.zeros_like(reads)
        frees[:, -1, :, -1] = self._pixel
        return reads.reshape(-1), frees.reshape(-1)
