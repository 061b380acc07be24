"""Operators of the float stage alone that passes treat like canonical ones."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import Operator, Trait

__all__ = ["OPERATORS"]

OPERATORS = (
    Operator("batch_normalization", frozenset({Trait.RAISES})),
    Operator("copy", frozenset({Trait.MOVES, Trait.KEEPS_FORMAT})),
    Operator("div", frozenset({Trait.ELEMENTWISE, Trait.RAISES, Trait.ALIGNED})),
    Operator("max_reduce", frozenset({Trait.KEEPS_FORMAT})),
    Operator("prelu", frozenset({Trait.ELEMENTWISE})),
    Operator("squeeze", frozenset({Trait.MOVES, Trait.RESHAPES, Trait.KEEPS_FORMAT})),
    Operator("unsqueeze", frozenset({Trait.MOVES, Trait.RESHAPES, Trait.KEEPS_FORMAT})),
)
