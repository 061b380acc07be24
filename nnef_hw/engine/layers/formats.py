"""Sizes and formats of what the engine's layers read and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.arithmetic.numerics import AddRequant, QType
from nnef_hw.engine.layers.sum_factors import sum_factors
from nnef_hw.ir import Node, layers

__all__ = [
    "ANYWHERE",
    "LANES",
    "MOST_SLIDING",
    "Format",
    "Image",
    "Most",
    "Places",
    "Residual",
    "Shape",
]

LANES = (2, 4, 8, 16)
"""Codes of a word of the engines that are tried."""
MOST_SLIDING = 4
"""Most rows between which sums are ever let move: each costs registers and multiplexers."""


class Shape(NamedTuple):
    """Size of an array.

    Attributes
    ----------
    rows, lanes
        Output channels, and codes of a word.
    sliding
        Most rows between which sums move.
    results
        Results that leave per cycle.
    """

    rows: int
    lanes: int
    sliding: int = MOST_SLIDING
    results: int = 1

    @property
    def multipliers(self) -> tuple[int, int]:
        """Extents of a word of weights."""
        return self.rows, self.lanes


@dataclass(frozen=True, slots=True)
class Image:
    """A tensor in memory: pixel after pixel, each in whole words."""

    height: int
    width: int
    channels: int

    @property
    def pixels(self) -> int:
        """Pixels in all."""
        return self.height * self.width

    def blocks(self, lanes: int) -> int:
        """Words of a pixel."""
        return -(-self.channels // lanes)

    def words(self, lanes: int) -> int:
        """Words in all."""
        return self.pixels * self.blocks(lanes)


@dataclass(frozen=True, slots=True)
class Format:
    """Codes as the engine has them: less the lowest code of their width, so never negative.

    Parameters
    ----------
    zero_point, high
        The code of 0.0, and the highest one.
    offset
        What was subtracted.
    """

    zero_point: int
    high: int
    offset: int

    @classmethod
    def of(cls, qtype: QType) -> Format:
        """Return the format of a tensor."""
        offset = -(1 << (qtype.bits - 1)) if qtype.signed else 0
        return cls(qtype.zero_point - offset, qtype.hi - offset, offset)

    @property
    def differences(self) -> tuple[int, int]:
        """Least and greatest difference of a code and the zero point."""
        return -self.zero_point, self.high - self.zero_point


@dataclass(frozen=True, slots=True)
class Residual:
    """A tensor whose codes are added to a layer's.

    Parameters
    ----------
    node, tensor
        The sum's node; name of the other operand.
    own, other
        Factors of the layer's codes and of the other's.
    offset, shift, low, high
        ``code = clip((own * q + other * r + offset) >> shift, low, high)``.
    """

    node: Node
    tensor: str
    own: int
    other: int
    offset: int
    shift: int
    low: int
    high: int

    @classmethod
    def of(cls, total: layers.Sum, own: int, tensor: str) -> Residual:
        """Return the record of a sum whose operand ``own`` is the layer's, the other a tensor."""
        requant, formats = total.requant, [Format.of(x) for x in total.formats]
        target = Format.of(total.target)
        if isinstance(requant, AddRequant):
            mult, shift = requant.mult, requant.shift
            offset = (1 << (shift - 1)) + (requant.zero_point << shift)
        else:
            found = sum_factors(requant, *(x.differences for x in formats))
            assert found is not None, f"{total.node.name}: {requant}"
            mult, shift, offset = found
        offset -= target.offset << shift
        offset -= sum(m * x.zero_point for m, x in zip(mult, formats, strict=True))
        low, high = requant.lo - target.offset, requant.hi - target.offset
        return cls(total.node, tensor, mult[own], mult[1 - own], offset, shift, low, high)


class Places(NamedTuple):
    """First words of a layer's operands, weights, constants and result in their memories."""

    read: int
    weight: int
    constant: int
    write: int
    others: tuple[int, ...] = ()


class Most(NamedTuple):
    """Words of weights and constants that an instruction may take."""

    weights: int
    constants: int


ANYWHERE = Places(0, 0, 0, 0)
"""Places for what depends on none."""
