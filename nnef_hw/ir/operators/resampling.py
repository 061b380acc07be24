"""Operators that compute values between the pixels of an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.ir.operators.attributes import Attributes, Pair, integer_pair
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS", "InterpolateAttributes"]


@dataclass(frozen=True, kw_only=True)
class InterpolateAttributes(Attributes):
    """Attributes of an ``interpolate``.

    Parameters
    ----------
    size
        Rows and columns of the result.
    coordinates
        How its pixels are mapped onto the input: a mode that :meth:`.Places.of` knows.
    """

    size: Pair
    coordinates: str

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        return cls(size=integer_pair(attrs["size"]), coordinates=attrs["coordinates"])

    def places(self, image: tuple[int, ...]) -> tuple[Places, Places]:
        """Return the places on the rows and on the columns of an image [N, C, H, W]."""
        rows, columns = image[2:]
        return (
            Places.of(rows, self.size[0], self.coordinates),
            Places.of(columns, self.size[1], self.coordinates),
        )


OPERATORS = (
    CanonicalOperator(
        "interpolate",
        frozenset({Trait.KEEPS_FORMAT}),
        attributes=frozenset({"size", "coordinates"}),
        parsed=InterpolateAttributes,
        requant=None,
        hardware="weighted sums of four pixels each, read from memory",
    ),
)
