"""Functions of two operands, element by element."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait
from nnef_hw.numerics import AddRequant, Requant
from nnef_hw.tflite_division import TfliteQuotient
from nnef_hw.tflite_numerics import TfliteAddRequant, TfliteRequant

__all__ = ["OPERATORS"]

_ARITHMETIC = frozenset({Trait.ARITHMETIC, Trait.ELEMENTWISE, Trait.RAISES, Trait.ALIGNED})
_HARDWARE = (
    "element by element, of two streams or of one and a constant; upsamples what is broadcast"
)

OPERATORS = (
    CanonicalOperator(
        "add",
        _ARITHMETIC | {Trait.CLIPS},
        attributes=frozenset(),
        requant=AddRequant | TfliteAddRequant,
        hardware=_HARDWARE,
    ),
    CanonicalOperator(
        "sub",
        _ARITHMETIC | {Trait.CLIPS},
        attributes=frozenset(),
        requant=AddRequant | TfliteAddRequant,
        hardware=_HARDWARE,
    ),
    CanonicalOperator(
        "mul",
        _ARITHMETIC,
        attributes=frozenset(),
        requant=Requant | TfliteRequant,
        hardware=_HARDWARE,
    ),
    CanonicalOperator(
        "quotient",
        _ARITHMETIC | {Trait.SHORT_OPERANDS, Trait.CLIPS},
        attributes=frozenset(),
        requant=TfliteQuotient,
        hardware="a multiplier for all bits of both codes, in turn; upsamples what is broadcast",
    ),
    CanonicalOperator(
        "max",
        _ARITHMETIC | {Trait.ONE_FORMAT},
        attributes=frozenset(),
        requant=None,
        hardware=_HARDWARE,
    ),
    CanonicalOperator(
        "min",
        _ARITHMETIC | {Trait.ONE_FORMAT},
        attributes=frozenset(),
        requant=None,
        hardware=_HARDWARE,
    ),
)
