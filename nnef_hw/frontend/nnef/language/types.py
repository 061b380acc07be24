"""Types of expressions and which may stand for which (specification, section 3.3.1)."""

from __future__ import annotations

from collections.abc import Iterator

from nnef_hw.frontend.nnef.language.syntax import (
    ArrayType,
    PrimitiveType,
    TensorType,
    TupleType,
    Type,
)

__all__ = [
    "EMPTY",
    "INTEGER",
    "LOGICAL",
    "PRIMITIVES",
    "SCALAR",
    "STRING",
    "UNKNOWN",
    "common_type",
    "fits",
    "fits_inside",
    "has_tensor",
    "is_generic",
    "substituted",
    "type_parts",
]

INTEGER = PrimitiveType("integer")
SCALAR = PrimitiveType("scalar")
LOGICAL = PrimitiveType("logical")
STRING = PrimitiveType("string")
EMPTY = ArrayType(PrimitiveType("nothing"))
"""Type of the literal ``[]``: it stands for every array."""
UNKNOWN = PrimitiveType("unknown")
"""Type of an expression that is wrong and was reported: it fits everywhere."""

_OPAQUE = "opaque"

PRIMITIVES: dict[type, PrimitiveType] = {
    bool: LOGICAL,
    int: INTEGER,
    float: SCALAR,
    str: STRING,
}
"""NNEF type by the Python type of a literal."""


def fits(actual: Type, wanted: Type) -> bool:
    """Whether an expression of one type may stand where another type is declared.

    A primitive stands for a tensor of its data-type, any primitive for ``?`` and any tensor for
    ``tensor<?>`` and ``tensor<>``, ``[]`` for every array; arrays and tuples item by item. An
    integer does not stand for a scalar.
    """
    if actual is wanted or actual is UNKNOWN or wanted is UNKNOWN:
        return True
    if isinstance(wanted, TensorType):
        if isinstance(actual, TensorType):
            return wanted.item in {None, actual.item} or (
                wanted.item == "?" and actual.item is not None
            )
        return isinstance(actual, PrimitiveType) and (
            actual.name == wanted.item or (wanted.item in {"?", None} and actual != STRING)
        )
    if isinstance(wanted, PrimitiveType):
        return isinstance(actual, PrimitiveType) and wanted.name in {actual.name, "?"}
    if isinstance(wanted, ArrayType):
        return actual is EMPTY or (isinstance(actual, ArrayType) and fits(actual.item, wanted.item))
    return (
        isinstance(actual, TupleType)
        and len(actual.items) == len(wanted.items)
        and all(map(fits, actual.items, wanted.items))
    )


def fits_inside(actual: Type, wanted: Type) -> bool:
    """Whether :func:`fits` holds in the body of a generic fragment.

    There ``?`` is one data-type, though an unknown one: only what is of type ``?`` itself fits.
    """
    return fits(substituted(actual, _OPAQUE), substituted(wanted, _OPAQUE))


def common_type(left: Type, right: Type) -> Type | None:
    """Return the type that both can stand for: one of the two; None if there is none."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        if left is EMPTY or right is EMPTY:
            return right if left is EMPTY else left
        item = common_type(left.item, right.item)
        return None if item is None else ArrayType(item)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        if len(left.items) != len(right.items):
            return None
        items = [common_type(*pair) for pair in zip(left.items, right.items, strict=True)]
        common = tuple(item for item in items if item is not None)
        return TupleType(common) if len(common) == len(items) else None
    if fits(left, right):
        return right
    return left if fits(right, left) else None


def type_parts(kind: Type) -> Iterator[Type]:
    """Yield a type and the types it is built from; the data-type of a tensor is none of them."""
    yield kind
    if isinstance(kind, ArrayType):
        yield from type_parts(kind.item)
    elif isinstance(kind, TupleType):
        for item in kind.items:
            yield from type_parts(item)


def has_tensor(kind: Type) -> bool:
    """Whether a type contains tensors, and so cannot be the type of an attribute."""
    return any(isinstance(part, TensorType) for part in type_parts(kind))


def is_generic(kind: Type) -> bool:
    """Whether ``?`` is a part of a type."""
    if isinstance(kind, PrimitiveType):
        return kind.name == "?"
    if isinstance(kind, TensorType):
        return kind.item == "?"
    if isinstance(kind, ArrayType):
        return is_generic(kind.item)
    return any(map(is_generic, kind.items))


def substituted(kind: Type, dtype: str) -> Type:
    """Return a type with a data-type in place of ``?``."""
    if kind is EMPTY:
        return kind
    if isinstance(kind, PrimitiveType):
        return PrimitiveType(dtype) if kind.name == "?" else kind
    if isinstance(kind, TensorType):
        return TensorType(dtype) if kind.item == "?" else kind
    if isinstance(kind, ArrayType):
        return ArrayType(substituted(kind.item, dtype))
    return TupleType(tuple(substituted(item, dtype) for item in kind.items))
