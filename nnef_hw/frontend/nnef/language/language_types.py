"""Types of the language's own operations: operators on primitives, subscripts, builtins."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.language.syntax import (
    ArrayType,
    Binary,
    Builtin,
    Literal,
    PrimitiveType,
    Range,
    Subscript,
    TensorType,
    TupleType,
    Type,
    Unary,
)
from nnef_hw.frontend.nnef.language.types import (
    EMPTY,
    INTEGER,
    LOGICAL,
    SCALAR,
    STRING,
    UNKNOWN,
    common_type,
)

__all__ = [
    "binary_type",
    "builtin_type",
    "contained_type",
    "range_type",
    "subscript_type",
    "unary_type",
]

_LOGICAL_OPERATORS = {"&&", "||"}
_EQUALITY_OPERATORS = {"==", "!="}
_COMPARISON_OPERATORS = {"<", "<=", ">", ">="}


def unary_type(unary: Unary, operand: Type) -> Type:
    """Return the type of an operator on a primitive value."""
    allowed = (LOGICAL,) if unary.operator == "!" else (INTEGER, SCALAR)
    if operand in allowed or operand is UNKNOWN:
        return operand
    raise ModelError(
        f"{unary.operator!r} takes {' or '.join(map(str, allowed))}, not {operand}",
        remedy="compare numbers: x == 0" if unary.operator == "!" else "invert it with '!'",
        location=unary.location,
    )


def binary_type(binary: Binary, left: Type, right: Type) -> Type:
    """Return the type of an operator on two values that are not tensors."""
    operator = binary.operator
    result = _primitive_result(operator, left, right) or _joined(operator, left, right)
    if result is None:
        mixed = {left, right} == {INTEGER, SCALAR}
        raise ModelError(
            f"{operator!r} does not take {left} and {right}",
            remedy="convert one: scalar(...) or integer(...)"
            if mixed
            else "see the table of operators in section 3.3.3 of the specification",
            location=binary.location,
        )
    return result


def contained_type(binary: Binary, left: Type, right: Type) -> Type:
    """Return the type of ``left in right``."""
    if not isinstance(right, ArrayType):
        raise ModelError(
            f"'in' takes an array, not {right}",
            remedy="write it in brackets: [...]",
            location=binary.right.location,
        )
    if right is not EMPTY and common_type(left, right.item) is None:
        raise ModelError(
            f"{left} can never be in {right}",
            remedy="both sides need the same type",
            location=binary.location,
        )
    return LOGICAL


def subscript_type(subscript: Subscript, sequence: Type, index: Type) -> Type:
    """Return the type of ``sequence[index]``."""
    if isinstance(sequence, TupleType):
        return _tuple_item(subscript, sequence)
    if index is not UNKNOWN and index != INTEGER:
        raise ModelError(
            f"an index must be integer, not {index}",
            remedy="convert it: integer(...)",
            location=subscript.index.location,
        )
    if sequence is UNKNOWN or sequence is EMPTY:
        return UNKNOWN
    if isinstance(sequence, ArrayType):
        return sequence.item
    if sequence == STRING:
        return STRING
    raise _no_items(sequence, subscript.location)


def range_type(part: Range, sequence: Type, bounds: Sequence[Type | None]) -> Type:
    """Return the type of ``sequence[begin:end]``."""
    for bound, kind in zip((part.begin, part.end), bounds, strict=True):
        if bound is not None and kind is not UNKNOWN and kind != INTEGER:
            raise ModelError(
                f"the bound of a range must be integer, not {kind}",
                remedy="convert it: integer(...)",
                location=bound.location,
            )
    if isinstance(sequence, TupleType):
        raise ModelError(
            "a tuple has no ranges",
            remedy="its items may have different types; unpack it: a, b = ...",
            location=part.location,
        )
    if sequence is UNKNOWN or isinstance(sequence, ArrayType) or sequence == STRING:
        return sequence
    raise _no_items(sequence, part.location)


def builtin_type(builtin: Builtin, kind: Type, *, shape_of: bool) -> Type:
    """Return the type of a builtin function or cast.

    Parameters
    ----------
    kind
        The type of its argument.
    shape_of
        Whether ``shape_of`` may be used.
    """
    function = builtin.function
    if function == "shape_of":
        if not shape_of:
            raise ModelError(
                "shape_of is deprecated: shapes are not known to the language",
                remedy="pass the extents as attributes, or read legacy NNEF with --lenient",
                location=builtin.location,
            )
        return ArrayType(INTEGER)
    if function in {"length_of", "range_of"}:
        if kind is not UNKNOWN and kind != STRING and not isinstance(kind, ArrayType):
            raise ModelError(
                f"{function} takes arrays and strings, not {kind}",
                remedy="the extents of tensors are not known to the language"
                if isinstance(kind, TensorType)
                else "write an array: [...]",
                location=builtin.argument.location,
            )
        return INTEGER if function == "length_of" else ArrayType(INTEGER)
    if not isinstance(kind, PrimitiveType):
        raise ModelError(
            f"{function}() takes a primitive value, not {kind}",
            remedy=f"convert tensors with cast<{function}>(...)"
            if isinstance(kind, TensorType)
            else "convert its items one by one",
            location=builtin.argument.location,
        )
    return PrimitiveType(function)


def _tuple_item(subscript: Subscript, sequence: TupleType) -> Type:
    index = subscript.index
    if not isinstance(index, Literal) or type(index.value) is not int:
        raise ModelError(
            "the index of a tuple must be an integer literal",
            remedy="its items may have different types; unpack it: a, b = ...",
            location=index.location,
        )
    if not 0 <= index.value < len(sequence.items):
        raise ModelError(
            f"the index {index.value} is outside of the {len(sequence.items)} items of the tuple",
            remedy=f"indices are 0 to {len(sequence.items) - 1}",
            location=index.location,
        )
    return sequence.items[index.value]


def _primitive_result(operator: str, left: Type, right: Type) -> Type | None:
    if left != right or not isinstance(left, PrimitiveType):
        return None
    if operator in _LOGICAL_OPERATORS:
        return LOGICAL if left == LOGICAL else None
    if operator in _EQUALITY_OPERATORS:
        return LOGICAL
    if left not in {INTEGER, SCALAR}:
        return None
    return LOGICAL if operator in _COMPARISON_OPERATORS else left


def _joined(operator: str, left: Type, right: Type) -> Type | None:
    """Return the type of arrays and strings that are concatenated or repeated."""
    if operator == "*" and right == INTEGER and (left == STRING or isinstance(left, ArrayType)):
        return left
    if operator == "+" and left == STRING and right == STRING:
        return STRING
    if operator == "+" and isinstance(left, ArrayType) and isinstance(right, ArrayType):
        return common_type(left, right)
    return None


def _no_items(kind: Type, where: Location) -> ModelError:
    is_tensor = isinstance(kind, TensorType)
    return ModelError(
        f"{kind} has no items to take",
        remedy="take parts of a tensor with slice(...) or split(...)"
        if is_tensor
        else "arrays, strings and tuples have items",
        location=where,
    )
