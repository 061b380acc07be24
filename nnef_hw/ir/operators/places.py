"""Operators whose last operand is an integer: the place of a row in a table or in a cache."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS"]

OPERATORS = (
    CanonicalOperator(
        "causal_mask",
        frozenset({Trait.ALONG_CHANNELS, Trait.KEEPS_FORMAT, Trait.INDEXED}),
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="a comparator: channels behind a place are hidden from a softmax",
        place_axis=1,
    ),
    CanonicalOperator(
        "lookup",
        frozenset({Trait.INDEXED}),
        attributes=frozenset(),
        requant=None,
        hardware="a memory of rows, whose address is an integer of the input",
    ),
    CanonicalOperator(
        "write_row",
        frozenset({Trait.ONE_FORMAT, Trait.INDEXED}),
        attributes=frozenset(),
        requant=None,
        hardware="a row takes the place of that of a cache; in the weights of a product of two "
        "activations, nothing else is written",
        place_axis=2,
    ),
)
