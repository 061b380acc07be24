"""Functions of all channels of a pixel."""

from __future__ import annotations

from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.normalization import NormalizeRequant
from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS"]

_CHANNELS = frozenset({Trait.ALONG_CHANNELS, Trait.FIXED_FORMAT})

OPERATORS = (
    CanonicalOperator(
        "softmax",
        _CHANNELS | {Trait.EXACT_TABLE},
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="softmax over channels; over other axes between transposes",
    ),
    CanonicalOperator(
        "argmax_reduce",
        _CHANNELS | {Trait.INDEX},
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="argmax over channels; over another axis between transposes",
    ),
    CanonicalOperator(
        "argmin_reduce",
        _CHANNELS | {Trait.INDEX},
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="as argmax_reduce",
    ),
    CanonicalOperator(
        "normalize",
        frozenset({Trait.ALONG_CHANNELS}),
        attributes=frozenset({"axes", "centered", "epsilon"}),
        requant=NormalizeRequant,
        hardware="exact sums, an inverse root, two multipliers; over other axes between transposes",
    ),
    CanonicalOperator(
        "integer_softmax",
        _CHANNELS | {Trait.EXACT_TABLE},
        attributes=frozenset({"axes", "levels"}),
        requant=None,
        hardware="softmax over channels, with exponentials of the model's own",
    ),
    CanonicalOperator(
        "integer_normalize",
        _CHANNELS,
        attributes=frozenset({"axes", "centered", "shift"}),
        requant=IntegerNormalizeRequant,
        hardware="exact sums, a root, a product and a division for each code",
    ),
)
