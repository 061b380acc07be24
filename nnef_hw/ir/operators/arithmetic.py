"""Functions of two operands, element by element."""

from __future__ import annotations

from nnef_hw.arithmetic.numerics import AddRequant, Requant
from nnef_hw.arithmetic.tflite.division import TfliteQuotient
from nnef_hw.arithmetic.tflite.numerics import TfliteAddRequant, TfliteRequant
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

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
