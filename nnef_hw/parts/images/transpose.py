"""An image with its axes in another order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.parts.base.part import counter_bits
from nnef_hw.parts.images.reorder import Reorder, place_bits

__all__ = ["Transpose"]


@dataclass(frozen=True, kw_only=True)
class Transpose(Reorder):
    """Holds two images, and gives their axes in another order.

    Parameters
    ----------
    extents
        Extents of an input image, outermost axis first.
    order
        The input's axes in the order of the result's.
    turns
        Images of a frame.
    backwards
        Axes of the input that are read from their end.

    Raises
    ------
    ValueError
        If that is no order of the axes, or a frame has no images.
    """

    component = "nnef_hw.rtl.images.transpose:Transpose"
    label = "transpose"
    costs = "transpose"

    extents: tuple[int, ...]
    order: tuple[int, ...]
    turns: int = 1
    backwards: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        axes = list(range(len(self.extents)))
        if sorted(self.order) != axes:
            raise ValueError(
                f"Transpose order must be one of the axes 0..{axes[-1]}, not {self.order!r}"
            )
        if not set(self.backwards) <= set(axes):
            raise ValueError(f"Transpose has axes 0..{axes[-1]}, not {self.backwards!r}")
        if self.turns < 1:
            raise ValueError(f"Transpose needs at least one image, not {self.turns!r}")

    @property
    def image(self) -> int:
        """Codes of an image."""
        return math.prod(self.extents)

    @property
    def walk(self) -> tuple[tuple[int, int], ...]:
        """Extents of the result's axes, and how far apart their codes came."""
        strides = [math.prod(self.extents[axis + 1 :]) for axis in range(len(self.extents))]
        signs = [-1 if axis in self.backwards else 1 for axis in range(len(self.extents))]
        return tuple((self.extents[axis], signs[axis] * strides[axis]) for axis in self.order)

    @property
    def first(self) -> int:
        """Place of the code of an image that is read first."""
        return -sum(min(0, (extent - 1) * stride) for extent, stride in self.walk)

    @property
    def memory_depth(self) -> int:
        return 2 * self.image

    @property
    def counters(self) -> int:
        return place_bits(*self.extents, self.turns) + 4 * counter_bits(self.memory_depth)

    @property
    def reading(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        image = np.arange(math.prod(self.extents)).reshape(self.extents)
        frees = np.zeros(image.size, np.int64)
        frees[-1] = image.size
        return np.flip(image, self.backwards).transpose(self.order).reshape(-1), frees
