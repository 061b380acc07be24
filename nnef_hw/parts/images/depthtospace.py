"""Channels spread over rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.images.reorder import Enlargement, place_bits

__all__ = ["DepthToSpace"]


@dataclass(frozen=True, kw_only=True)
class DepthToSpace(Enlargement):
    """Makes of a pixel's channels (y, x, c) ``factors`` rows and columns of ``channels``.

    Its memory holds a row or more of the image that comes, a power of two.
    """

    component = "nnef_hw.rtl.images.depthtospace:DepthToSpace"
    label = "depth_to_space"
    costs = "depth to space"

    def __post_init__(self) -> None:
        super().__post_init__()
        least = self.width * self.pixel
        if self.depth & (self.depth - 1) or self.depth < least:
            raise ValueError(
                f"DepthToSpace depth must be a power of two, at least {least}, not {self.depth!r}"
            )

    @property
    def run(self) -> int:
        """Codes of a pixel that comes which stay together: those of a row of its rectangle."""
        return self.factors[1] * self.channels

    @property
    def pixel(self) -> int:
        """Codes of a pixel that comes."""
        return self.factors[0] * self.run

    @property
    def counters(self) -> int:
        place = place_bits(self.height, self.width, self.pixel, *self.factors)
        return place + 4 * counter_bits(self.depth)

    @property
    def reading(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes = np.arange(self.height * self.width * self.pixel)
        phases = codes.reshape(self.height, self.width, self.factors[0], -1)
        reads = phases.swapaxes(1, 2)
        frees = np.zeros_like(reads)
        frees[:, -1, :, -1] = self.pixel
        return reads.reshape(-1), frees.reshape(-1)
