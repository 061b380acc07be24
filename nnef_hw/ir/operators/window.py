"""Products with a filter, and functions of windows."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait
from nnef_hw.numerics import Requant
from nnef_hw.tflite_numerics import TfliteAverage, TfliteRequant

__all__ = ["OPERATORS"]

_GEOMETRY = frozenset({"stride", "dilation", "padding", "border"})
_WEIGHTS = {Trait.WEIGHTS, Trait.FUSES_RELU, Trait.TFLITE}
_WINDOW = {Trait.WINDOW, Trait.PER_AXIS, Trait.RAISES}

OPERATORS = (
    CanonicalOperator(
        "conv",
        frozenset(_WEIGHTS | _WINDOW | {Trait.SUMS}),
        attributes=_GEOMETRY | {"groups", "activation"},
        requant=Requant | TfliteRequant,
        borders=("constant",),
        hardware="systolic array; an array of its own for depthwise",
    ),
    CanonicalOperator(
        "linear",
        frozenset(_WEIGHTS),
        attributes=frozenset({"activation"}),
        requant=Requant | TfliteRequant,
        hardware="systolic array",
    ),
    CanonicalOperator(
        "avg_pool",
        frozenset(_WINDOW | {Trait.POOL, Trait.LETS_SCALES_THROUGH, Trait.TFLITE}),
        attributes=_GEOMETRY | {"size"},
        requant=Requant | TfliteAverage,
        borders=("constant", "ignore"),
        hardware="window sums and a requantizer, which divides by the pixels that count",
    ),
    CanonicalOperator(
        "box",
        frozenset(_WINDOW | {Trait.POOL, Trait.SUMS}),
        attributes=_GEOMETRY | {"size"},
        requant=Requant,
        borders=("constant",),
        hardware="window sums and a requantizer",
    ),
    CanonicalOperator(
        "max_pool",
        frozenset(
            _WINDOW | {Trait.POOL, Trait.KEEPS_FORMAT, Trait.LETS_SCALES_THROUGH, Trait.TFLITE}
        ),
        attributes=_GEOMETRY | {"size"},
        requant=None,
        borders=("constant", "ignore"),
        hardware="window maxima",
    ),
)
