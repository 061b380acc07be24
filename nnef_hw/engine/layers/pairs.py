"""Products and extrema of two tensors: words of both meet in a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import Fields
from nnef_hw.engine.layers.formats import Format, Places, Shape
from nnef_hw.engine.layers.layer import AnyContext, EngineContext, EngineLayer, lowers
from nnef_hw.engine.layers.nest import Nest, Pass
from nnef_hw.engine.layers.scale import Scale
from nnef_hw.ir import layers
from nnef_hw.parts.engine.fields import Record
from nnef_hw.parts.engine.pairs import Inverting, Multiplying
from nnef_hw.parts.engine.program import PASS_LEVEL

__all__ = ["ExtremumLayer", "ProductLayer"]

_MIDDLE = 1 << 7
"""What is taken from a code that becomes a weight."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PairLayer(EngineLayer):
    """A function of two tensors of the same shape, code by code.

    A pass reads a word of the first one ``repeats`` times, then as often that of the second one.

    Parameters
    ----------
    second
        The other operand.
    """

    second: str

    @property
    def read_tensors(self) -> tuple[str, ...]:
        return (self.operand, self.second)

    def renamed(self, names: Mapping[str, str]) -> EngineLayer:
        changed: Fields = {"second": names.get(self.second, self.second)}
        return replace(super().renamed(names), **changed)

    @property
    def repeats(self) -> int:
        """Times that a word is read in a row."""
        return 1

    def nest(self, shape: Shape, places: Places) -> Nest:
        blocks = self.source.blocks(shape.lanes)
        width, height = self.source.width, self.source.height
        apart = sum(places.others) - places.read
        words = (0, 0, 0, 1, blocks, width * blocks)
        none = (0,) * len(words)
        return Nest(
            counts=(self.repeats, 2, 1, blocks, width, height),
            strides={
                "read": (0, apart, *words[2:]), "y": none, "x": none,
                "weight": (1, self.repeats, 0, 0, 0, 0), "constant": none, "write": words,
            },
            starts={
                "read": places.read, "y": 0, "x": 0, "weight": places.weight,
                "constant": places.constant, "write": places.write,
            },
        )  # fmt: skip

    def passes(self, shape: Shape) -> tuple[list[Pass], int]:
        return [Pass(2 * self.repeats, shape.lanes)], self.target.words(shape.lanes)

    def part_level(self, shape: Shape) -> int:
        del shape
        return PASS_LEVEL


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtremumLayer(PairLayer):
    """The greater code of two; or the smaller one, if codes are inverted before and behind.

    Parameters
    ----------
    inverts
        Whether it is the smaller one.
    """

    label = "extremum"
    maximum = True

    inverts: bool

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        return np.zeros((2, *shape.multipliers), np.int64)

    def bias(self, shape: Shape) -> IntArray:
        return np.zeros(shape.lanes, np.int64)

    def records(self, shape: Shape) -> tuple[Record, ...]:
        return (*super().records(shape), *([Inverting(inverts=1)] if self.inverts else []))


@dataclass(frozen=True, eq=False, kw_only=True)
class ProductLayer(PairLayer):
    """The product of two differences ``code - zero_point``.

    The first word of a pass is kept, less 128, and is the weight of the second tensor's first word:
    with codes w and x this is ``x * (w - 128)``. Constant weights add ``-zx * w`` and
    ``(128 - zw) * x``, each in as many words as weights of 8 bits need; the bias is ``zx * zw``.

    Parameters
    ----------
    zero_points
        Those of the first and of the second operand, zw and zx.
    limits
        Least and greatest product.
    """

    label = "product"

    zero_points: tuple[int, int]
    limits: tuple[int, int]

    @staticmethod
    def splits(zero_point: int) -> int:
        """Return the words that ``(128 - zw) * x`` needs."""
        return 1 if zero_point > 0 else 2

    @property
    def repeats(self) -> int:
        return 1 + self.splits(self.zero_points[0])

    @property
    def largest_sum(self) -> tuple[int, int]:
        return self.limits

    def weights(self, shape: Shape) -> NDArray[np.int64]:
        of_first, of_second = -self.zero_points[1], _MIDDLE - self.zero_points[0]
        first = [max(of_first, -_MIDDLE)]
        first.append(of_first - first[0])
        second = [0, min(of_second, _MIDDLE - 1)]
        second.append(of_second - second[1])
        words = np.zeros((2, self.repeats, *shape.multipliers), np.int64)
        for n, values in enumerate((first, second)):
            for place, value in enumerate(values[: self.repeats]):
                words[n, place, 0] = value
        return words.reshape(-1, *shape.multipliers)

    def bias(self, shape: Shape) -> IntArray:
        return np.full(shape.lanes, self.zero_points[0] * self.zero_points[1], np.int64)

    def records(self, shape: Shape) -> tuple[Record, ...]:
        return (*super().records(shape), Multiplying(multiplies=1))


def _fields(context: AnyContext, first: int = 0) -> Fields:
    """Return fields of all pairs; ``first`` is the operand that comes first."""
    names = context.operands
    return {**context.common, "operand": names[first], "second": names[1 - first], "pad": 0}


@lowers("max", "min")
def _lower_extremum(context: EngineContext[layers.Extremum]) -> EngineLayer:
    return ExtremumLayer(
        **_fields(context),
        scale=Scale.identity(context.target.high),
        inverts=not context.layer.greatest,
    )


@lowers("mul")
def _lower_product(context: EngineContext[layers.Product]) -> EngineLayer:
    formats = [Format.of(x) for x in context.layer.formats]
    # That comes first of which fewer words follow.
    first = min((0, 1), key=lambda n: ProductLayer.splits(formats[n].zero_point))
    ends = [x.differences for x in formats]
    products = [one * other for one in ends[0] for other in ends[1]]
    limits = min(products), max(products)
    return ProductLayer(
        **_fields(context, first),
        scale=Scale.of(context.layer.requant, context.target.offset, [limits]),
        zero_points=(formats[first].zero_point, formats[1 - first].zero_point), limits=limits,
    )  # fmt: skip
