"""Functions of two operands, element by element; NNEF broadcasts from the left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from nnef_hw.arithmetic.numerics import AddRequant, QType, Requant
from nnef_hw.arithmetic.tflite.division import TfliteQuotient
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant, TfliteRequant
from nnef_hw.ir.graph import Node
from nnef_hw.ir.layers.layer import Codes, Layer, format_of, layers

__all__ = ["Elementwise", "Extremum", "Product", "Quotient", "Sum"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Elementwise(Layer):
    """A function of two operands, either of which may be constant."""

    @property
    def formats(self) -> tuple[QType, QType]:
        """Formats of both operands."""
        first, second = self.operands
        return format_of(first), format_of(second)

    @property
    def zero_points(self) -> tuple[int, int]:
        """Zero points of both operands."""
        first, second = self.formats
        return first.zero_point, second.zero_point

    def _aligned(self, codes: tuple[Codes, ...]) -> tuple[Codes, Codes]:
        """Return the operands with the result's rank."""
        rank = len(self.result.shape)
        first, second = (x.reshape(x.shape + (1,) * (rank - x.ndim)) for x in codes)
        return first, second

    def _differences(self, codes: tuple[Codes, ...]) -> tuple[Codes, Codes]:
        """Return the operands less their zero points."""
        (first, second), (zero, other) = self._aligned(codes), self.zero_points
        return first.astype(np.int64) - zero, second.astype(np.int64) - other


@layers("add", "sub")
@dataclass(frozen=True, eq=False, kw_only=True)
class Sum(Elementwise):
    """A sum or a difference.

    Parameters
    ----------
    requant
        Factors of both operands, with their signs, and how the sum becomes a code.
    """

    requant: AddRequant | TfliteAddRequant

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"requant": node.attrs["requant"]}

    def compute(self, *codes: Codes) -> Codes:
        return self.requant.apply(*self._differences(codes))


@layers("mul")
@dataclass(frozen=True, eq=False, kw_only=True)
class Product(Elementwise):
    """A product.

    Parameters
    ----------
    requant
        How products of differences to the zero points become codes.
    """

    requant: Requant | TfliteRequant

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"requant": node.attrs["requant"]}

    @property
    def limits(self) -> tuple[int, int]:
        """Least and greatest product of differences to the zero points."""
        first, second = ((x.lo - x.zero_point, x.hi - x.zero_point) for x in self.formats)
        products = [one * other for one, other in product(first, second)]
        return min(products), max(products)

    def compute(self, *codes: Codes) -> Codes:
        first, second = self._differences(codes)
        return self.requant.apply(first * second)


@layers("quotient")
@dataclass(frozen=True, eq=False, kw_only=True)
class Quotient(Elementwise):
    """A quotient.

    Parameters
    ----------
    requant
        The division.
    """

    requant: TfliteQuotient

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"requant": node.attrs["requant"]}

    def compute(self, *codes: Codes) -> Codes:
        return self.requant.apply(*self._differences(codes))


@layers("max", "min")
@dataclass(frozen=True, eq=False, kw_only=True)
class Extremum(Elementwise):
    """The greater or the smaller code of two.

    Parameters
    ----------
    greatest
        Whether it is the greater one.
    """

    greatest: bool

    @classmethod
    def read(cls, node: Node) -> dict[str, object]:
        return {"greatest": node.op == "max"}

    def compute(self, *codes: Codes) -> Codes:
        choose = np.maximum if self.greatest else np.minimum
        return np.asarray(choose(*self._aligned(codes)))
