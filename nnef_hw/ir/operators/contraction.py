"""Products of two computed matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Self

from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.arithmetic.records import AttributeMap
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.ir.operators.attributes import Attributes
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS", "Contraction", "ContractionAttributes"]

Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ContractionAttributes(Attributes):
    """Attributes of a ``contraction``; sizes besides follow from shapes (:meth:`sizes`).

    Parameters
    ----------
    scale, offset
        What sums are multiplied by, and what is added then.
    """

    sets: int
    matrices: int
    repeats: int
    order: str
    scale: float = 1.0
    offset: float = 0.0

    @classmethod
    def parse(cls, attrs: AttributeMap) -> Self:
        """Return the attributes of a node."""
        order = attrs["order"]
        assert sorted(order) == ["k", "m", "n"], f"order {order!r} is none of m, k and n"
        counts = {name: int(attrs[name]) for name in ("sets", "matrices", "repeats")}
        assert min(counts.values()) > 0, f"{counts} are not positive"
        return cls(
            order=order, scale=float(attrs["scale"]), offset=float(attrs["offset"]), **counts
        )

    def sizes(self, x: Shape, w: Shape) -> Contraction:
        """Return the sizes of the product of two images [N, C, ...].

        Raises
        ------
        ValueError
            If shapes and attributes do not fit together: what does not.
        """
        rows, inner, volume = prod(x[2:]), x[1], prod(w[1:])
        group = self.sets * self.matrices * self.repeats
        if rows % group:
            raise ValueError(f"{rows} rows are no multiple of {group}: sets, matrices, repeats")
        if volume % (self.sets * self.matrices * inner):
            raise ValueError(
                f"{volume} elements are not {self.sets} x {self.matrices} matrices of {inner} rows"
            )
        columns = volume // (self.sets * self.matrices * inner)
        found = Contraction(
            sets=self.sets, matrices=self.matrices, repeats=self.repeats, turns=rows // group,
            inner=inner, columns=columns, order=self.order,
        )  # fmt: skip
        if w[1] != found.extents[-1]:
            raise ValueError(
                f"{w[1]} channels are not the {found.extents[-1]} of axis {self.order[-1]!r}"
            )
        return found


OPERATORS = (
    CanonicalOperator(
        "contraction",
        frozenset({Trait.CONTRACTS}),
        attributes=frozenset({"sets", "matrices", "repeats", "order", "scale", "offset"}),
        parsed=ContractionAttributes,
        requant=Requant | TfliteRequant,
        hardware="systolic array, whose weights the second operand's stream writes",
    ),
)
