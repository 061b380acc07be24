"""Conversion of values to the declared type, for dialects without type checks."""

from __future__ import annotations

from nnef_hw.frontend.nnef.language.syntax import (
    ArrayType,
    PrimitiveType,
    TensorType,
    TupleType,
    Type,
)
from nnef_hw.ir import Tensor

__all__ = ["MismatchError", "coerced", "plain"]

_PYTHON = {"integer": int, "scalar": float, "logical": bool, "string": str}


class MismatchError(Exception):
    """A value that cannot be converted to the declared type; the text names the expected type."""


def plain(value: object) -> object:
    """Return the numbers of a constant tensor as Python values; other values as they are."""
    if isinstance(value, Tensor) and value.data is not None:
        return value.data.tolist()
    return value


def coerced(value: object, wanted: Type, dtype: str | None) -> object:
    """Convert an argument to the type of its parameter.

    An integer stands for a scalar, a number for an array of one, a constant tensor for numbers,
    an array for a tuple. An array that stands for a tensor stays one.

    Parameters
    ----------
    dtype
        What ``?`` in the type stands for; None if that is not known yet.

    Raises
    ------
    MismatchError
        If the argument cannot be converted.
    """
    try:
        return _converted(value, wanted, dtype)
    except MismatchError:
        shown = f"the tensor {value.name!r}" if isinstance(value, Tensor) else repr(value)
        raise MismatchError(f"must be {wanted}, not {shown}") from None


def _converted(value: object, wanted: Type, dtype: str | None) -> object:
    if isinstance(wanted, TensorType):
        item = dtype if wanted.item == "?" else wanted.item
        if type(value) is int and item == "scalar":
            return float(value)
        if isinstance(value, str):
            raise MismatchError
        return value
    if isinstance(wanted, ArrayType):
        if not isinstance(wanted.item, TensorType):
            value = plain(value)
        items = list(value) if isinstance(value, list | tuple) else [value]
        return [_converted(item, wanted.item, dtype) for item in items]
    value = plain(value)
    if isinstance(wanted, TupleType):
        if not isinstance(value, list | tuple) or len(value) != len(wanted.items):
            raise MismatchError
        pairs = zip(value, wanted.items, strict=True)
        return tuple(_converted(item, kind, dtype) for item, kind in pairs)
    return _primitive(value, wanted, dtype)


def _primitive(value: object, wanted: PrimitiveType, dtype: str | None) -> object:
    while isinstance(value, list) and len(value) == 1:
        (value,) = value
    name = dtype if wanted.name == "?" else wanted.name
    if name is None or type(value) is _PYTHON[name]:
        if isinstance(value, list | tuple | Tensor):
            raise MismatchError
        return value
    if name == "scalar" and isinstance(value, int):
        return float(value)
    if name == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if name == "integer" and isinstance(value, bool):
        return int(value)
    if name == "logical" and isinstance(value, int):
        return bool(value)
    raise MismatchError
