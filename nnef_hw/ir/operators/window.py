"""Products with a filter, and functions of windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.images.windows import count_taps
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.arithmetic.tflite.numerics import TfliteAverage, TfliteRequant
from nnef_hw.ir.operators.attributes import (
    Attributes,
    Pair,
    integer_pair,
    padding_pairs,
)
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = [
    "OPERATORS",
    "ConvAttributes",
    "PoolAttributes",
    "WeightsAttributes",
    "WindowAttributes",
]


@dataclass(frozen=True, kw_only=True)
class WeightsAttributes(Attributes):
    """Connections of channels with a filter: attributes of every ``Trait.WEIGHTS``.

    Parameters
    ----------
    groups
        Number of parts that the channels are divided into, each with filters of its own.
    """

    groups: int = 1

    @classmethod
    def parse(cls, attrs: Mapping[str, object]) -> Self:
        """Return the attributes of a ``linear``."""
        del attrs
        return cls()


@dataclass(frozen=True, kw_only=True)
class WindowAttributes(Attributes):
    """Moves of a window over rows and columns: attributes of every ``Trait.WINDOW``.

    Parameters
    ----------
    stride
        Pixels from one window to the next, vertical and horizontal.
    dilation
        Pixels from one tap of a window to the next, vertical and horizontal.
    padding
        ``((top, bottom), (left, right))`` in pixels.
    border
        NNEF's name of what the padding holds.
    """

    stride: Pair
    dilation: Pair
    padding: tuple[Pair, Pair]
    border: str


@dataclass(frozen=True, kw_only=True)
class ConvAttributes(WeightsAttributes, WindowAttributes):
    """Attributes of a ``conv``; the filter has the extents of its window."""

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        return cls(
            stride=integer_pair(attrs["stride"]),
            dilation=integer_pair(attrs["dilation"]),
            padding=padding_pairs(attrs["padding"]),
            border=attrs["border"],
            groups=int(attrs["groups"]),
        )


@dataclass(frozen=True, kw_only=True)
class PoolAttributes(WindowAttributes):
    """Attributes of every ``Trait.POOL``, without the items of batch and channels.

    Parameters
    ----------
    size
        Rows and columns of taps.
    """

    size: Pair

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        for name in ("size", "stride"):
            assert list(attrs[name][:2]) == [1, 1], f"{name} extends over batch or channels"
        assert not any(map(any, attrs["padding"][:2])), "padding of batch or channels"
        return cls(
            size=integer_pair(attrs["size"][2:]),
            stride=integer_pair(attrs["stride"][2:]),
            dilation=integer_pair(attrs["dilation"][2:]),
            padding=padding_pairs(attrs["padding"][2:]),
            border=attrs["border"],
        )

    @property
    def taps(self) -> int:
        """Pixels of a window."""
        return self.size[0] * self.size[1]

    def counts(self, shape: Sequence[int]) -> NDArray[np.int64]:
        """Count the taps of every window that lie inside of an image [N, C, H, W] of a shape.

        Returns
        -------
        ndarray
            [rows, columns] of windows.
        """
        return count_taps(shape[2:], self.padding, self.size, self.stride, self.dilation)


_GEOMETRY = frozenset({"stride", "dilation", "padding", "border"})
_WEIGHTS = {Trait.WEIGHTS, Trait.CLIPS}
_WINDOW = {Trait.WINDOW, Trait.PER_AXIS, Trait.RAISES}

OPERATORS = (
    CanonicalOperator(
        "conv",
        frozenset(_WEIGHTS | _WINDOW | {Trait.SUMS}),
        attributes=_GEOMETRY | {"groups", "activation"},
        parsed=ConvAttributes,
        requant=Requant | TfliteRequant,
        borders=("constant",),
        hardware="systolic array; depthwise convolutions have an array of another kind",
    ),
    CanonicalOperator(
        "linear",
        frozenset(_WEIGHTS),
        attributes=frozenset({"activation"}),
        parsed=WeightsAttributes,
        requant=Requant | TfliteRequant,
        hardware="systolic array",
    ),
    CanonicalOperator(
        "avg_pool",
        frozenset(_WINDOW | {Trait.POOL, Trait.LETS_SCALES_THROUGH}),
        attributes=_GEOMETRY | {"size"},
        parsed=PoolAttributes,
        requant=Requant | TfliteAverage | TfliteRequant,
        borders=("constant", "ignore"),
        hardware="window sums and a requantizer, which divides by the pixels that count",
    ),
    CanonicalOperator(
        "box",
        frozenset(_WINDOW | {Trait.POOL, Trait.SUMS}),
        attributes=_GEOMETRY | {"size"},
        parsed=PoolAttributes,
        requant=Requant | TfliteRequant,
        borders=("constant",),
        hardware="window sums and a requantizer",
    ),
    CanonicalOperator(
        "max_pool",
        frozenset(_WINDOW | {Trait.POOL, Trait.KEEPS_FORMAT, Trait.LETS_SCALES_THROUGH}),
        attributes=_GEOMETRY | {"size"},
        parsed=PoolAttributes,
        requant=None,
        borders=("constant", "ignore"),
        hardware="window maxima",
    ),
)
