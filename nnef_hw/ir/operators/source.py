"""Operators of the float stage alone that passes treat like canonical ones."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import Operator, Trait

__all__ = ["OPERATORS"]

_ELEMENTWISE = frozenset({Trait.ELEMENTWISE})
_OF_STEPS = _ELEMENTWISE | {Trait.EXACT_TABLE}
_SMOOTH = ("erf", "pow")
_STEPS = (
    "and", "bit_and", "bit_not", "bit_or", "bit_xor", "cast", "eq", "ge", "gt", "is_inf", "is_nan",
    "le", "lt", "mod", "ne", "not", "or", "round_even", "select", "shift_left", "shift_right",
    "xor",
)  # fmt: skip

OPERATORS = (
    *(Operator(name, _ELEMENTWISE) for name in _SMOOTH),
    *(Operator(name, _OF_STEPS) for name in _STEPS),
    Operator("batch_normalization", frozenset({Trait.RAISES})),
    Operator("copy", frozenset({Trait.MOVES, Trait.KEEPS_FORMAT})),
    Operator("div", frozenset({Trait.ELEMENTWISE, Trait.RAISES, Trait.ALIGNED})),
    Operator("max_reduce", frozenset({Trait.KEEPS_FORMAT})),
    Operator("prelu", frozenset({Trait.ELEMENTWISE})),
    Operator("squeeze", frozenset({Trait.MOVES, Trait.RESHAPES, Trait.KEEPS_FORMAT})),
    Operator("unsqueeze", frozenset({Trait.MOVES, Trait.RESHAPES, Trait.KEEPS_FORMAT})),
)
