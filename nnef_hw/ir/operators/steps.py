"""Operators at the border of a loop, whose steps are parts of one inference.

What is between them is computed ``steps`` times in an inference, and so are its tensors. The steps
of an image [1, C, H, W] outside of the loop are [1, C, steps * H, W].
"""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS"]

_STEPS = frozenset({"steps"})

OPERATORS = (
    CanonicalOperator(
        "begin_steps",
        frozenset({Trait.ONE_FORMAT, Trait.ENTERS_LOOP, Trait.ALIGNED}),
        attributes=_STEPS,
        requant=None,
        hardware="the computed value with which a loop begins, and then what its steps leave",
    ),
    CanonicalOperator(
        "join_steps",
        frozenset({Trait.KEEPS_FORMAT, Trait.LEAVES_LOOP}),
        attributes=_STEPS,
        requant=None,
        hardware="nothing but a counter: what a loop gives in all steps",
    ),
    CanonicalOperator(
        "last_step",
        frozenset({Trait.KEEPS_FORMAT, Trait.LEAVES_LOOP}),
        attributes=_STEPS,
        requant=None,
        hardware="drops what a loop gives before its last step",
    ),
    CanonicalOperator(
        "reverse_steps",
        frozenset({Trait.KEEPS_FORMAT}),
        attributes=_STEPS,
        requant=None,
        hardware="a memory of two sequences, for loops that run backwards",
    ),
    CanonicalOperator(
        "split_steps",
        frozenset({Trait.KEEPS_FORMAT, Trait.ENTERS_LOOP}),
        attributes=_STEPS,
        requant=None,
        hardware="nothing: the steps of a loop follow each other in the stream",
    ),
)
