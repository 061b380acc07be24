"""Operators that compute nothing: the elements of the result are those of the operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.ir.operators.attributes import (
    Attributes,
    Pair,
    integer_pair,
    padding_pairs,
)
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS", "FactorAttributes", "PadAttributes", "SliceAttributes"]


@dataclass(frozen=True, kw_only=True)
class FactorAttributes(Attributes):
    """Attributes of what makes an image larger.

    Parameters
    ----------
    factor
        Pixels of the result for each of the input, vertical and horizontal.
    """

    factor: Pair

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        return cls(factor=integer_pair(attrs["factor"]))


@dataclass(frozen=True, kw_only=True)
class PadAttributes(Attributes):
    """Attributes of a ``pad``, without the items of batch and channels.

    Parameters
    ----------
    padding
        ``((top, bottom), (left, right))`` in pixels.
    value
        The real number that the padding holds.
    """

    padding: tuple[Pair, Pair]
    value: float

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        assert not any(map(any, attrs["padding"][:2])), "padding of batch or channels"
        assert attrs["border"] == "constant", f"border {attrs['border']}"
        return cls(padding=padding_pairs(attrs["padding"][2:]), value=float(attrs["value"]))


@dataclass(frozen=True, kw_only=True)
class SliceAttributes(Attributes):
    """Attributes of a ``slice``, which is a part along one axis.

    Parameters
    ----------
    axis
        Number of the axis in the input's shape.
    begin, end
        Index of the first element of the part, and of the first one behind it.
    """

    axis: int
    begin: int
    end: int

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        values = [attrs[name] for name in ("axes", "begin", "end", "stride")]
        assert all(len(items) == 1 for items in values), "a slice along several axes"
        axis, begin, end, stride = (int(item) for [item] in values)
        assert 0 <= begin < end, f"a slice from {begin} to {end}"
        assert stride == 1, f"a slice with stride {stride}"
        return cls(axis=axis, begin=begin, end=end)


_ONE_OPERAND = {Trait.KEEPS_FORMAT}

OPERATORS = (
    CanonicalOperator(
        "concat",
        frozenset({Trait.ONE_FORMAT, Trait.RAISES, Trait.ALIGNED}),
        attributes=frozenset({"axis"}),
        requant=None,
        hardware="joins channels, rows or columns of streams; a constant of one value is a pad",
    ),
    CanonicalOperator(
        "depth_to_space",
        frozenset(_ONE_OPERAND | {Trait.REARRANGES, Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"factor"}),
        parsed=FactorAttributes,
        requant=None,
        hardware="another order read from memory; so are exporters' transposes that express it",
    ),
    CanonicalOperator(
        "nearest_upsample",
        frozenset(_ONE_OPERAND | {Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"factor"}),
        parsed=FactorAttributes,
        requant=None,
        hardware="rows and columns read again from memory",
    ),
    CanonicalOperator(
        "pad",
        frozenset(_ONE_OPERAND | {Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"padding", "border", "value"}),
        parsed=PadAttributes,
        requant=None,
        borders=("constant",),
        hardware="a value or parts of the image around it; zeros become padding of the next window",
    ),
    CanonicalOperator(
        "reshape",
        frozenset(
            _ONE_OPERAND
            | {Trait.MOVES, Trait.RESHAPES, Trait.REARRANGES, Trait.LETS_SCALES_THROUGH}
        ),
        attributes=frozenset({"shape"}),
        requant=None,
        hardware="nothing, or a memory of twice what is moved",
    ),
    CanonicalOperator(
        "slice",
        frozenset(_ONE_OPERAND | {Trait.RAISES}),
        attributes=frozenset({"axes", "begin", "end", "stride"}),
        parsed=SliceAttributes,
        requant=None,
        hardware="parts of channels, rows and columns; strides of rows and columns",
    ),
    CanonicalOperator(
        "transpose",
        frozenset(_ONE_OPERAND | {Trait.MOVES, Trait.REARRANGES}),
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="nothing if the stream keeps its order, else a memory of twice what is moved",
    ),
)
