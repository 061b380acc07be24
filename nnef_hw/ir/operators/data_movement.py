"""Operators that compute nothing: the elements of the result are those of the operands."""

from __future__ import annotations

from nnef_hw.ir.operators.operator import CanonicalOperator, Trait

__all__ = ["OPERATORS"]

_ONE_OPERAND = {Trait.KEEPS_FORMAT, Trait.TFLITE}

OPERATORS = (
    CanonicalOperator(
        "concat",
        frozenset({Trait.ONE_FORMAT, Trait.RAISES, Trait.ALIGNED}),
        attributes=frozenset({"axis"}),
        requant=None,
        hardware="of channels, rows or columns; with a constant of one value as pad",
    ),
    CanonicalOperator(
        "depth_to_space",
        frozenset(_ONE_OPERAND | {Trait.REARRANGES, Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"factor"}),
        requant=None,
        hardware="from memory; also the transposes of exporters that express it",
    ),
    CanonicalOperator(
        "nearest_upsample",
        frozenset(_ONE_OPERAND | {Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"factor"}),
        requant=None,
        hardware="rows and columns again from memory",
    ),
    CanonicalOperator(
        "pad",
        frozenset(_ONE_OPERAND | {Trait.RAISES, Trait.PER_AXIS}),
        attributes=frozenset({"padding", "border", "value"}),
        requant=None,
        borders=("constant",),
        hardware="a value or parts of the image around it; zeros merge with the window behind it",
    ),
    CanonicalOperator(
        "reshape",
        frozenset(
            _ONE_OPERAND
            | {Trait.MOVES, Trait.RESHAPES, Trait.REARRANGES, Trait.LETS_SCALES_THROUGH}
        ),
        attributes=frozenset({"shape"}),
        requant=None,
        hardware="nothing, or a memory of two frames if it exchanges axes of the stream",
    ),
    CanonicalOperator(
        "slice",
        frozenset(_ONE_OPERAND | {Trait.RAISES}),
        attributes=frozenset({"axes", "begin", "end", "stride"}),
        requant=None,
        hardware="parts of channels, rows and columns; strides of rows and columns",
    ),
    CanonicalOperator(
        "transpose",
        frozenset(_ONE_OPERAND | {Trait.MOVES, Trait.REARRANGES}),
        attributes=frozenset({"axes"}),
        requant=None,
        hardware="nothing if the stream keeps its order, else a memory of two frames",
    ),
)
