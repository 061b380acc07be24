"""Checks of arguments and targets against declarations, and their error messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.language.syntax import (
    Array,
    ArrayType,
    Declaration,
    Expression,
    Identifier,
    Literal,
    PrimitiveType,
    TensorType,
    Tuple,
    TupleType,
    Type,
)
from nnef_hw.frontend.nnef.language.types import (
    EMPTY,
    INTEGER,
    PRIMITIVES,
    SCALAR,
    UNKNOWN,
    fits,
    has_tensor,
    is_generic,
)

__all__ = ["conversion", "deduced_dtype", "mismatch", "unpacked"]


def deduced_dtype(
    declaration: Declaration,
    types: Mapping[str, Type],
    title: str,
    location: Location,
) -> str:
    """Return the data-type of ``?`` in an invocation, ``unknown`` if that cannot be told.

    Raises
    ------
    ModelError
        If it could be several data-types, or no argument tells.
    """
    found: dict[str, str] = {}
    for parameter in declaration.parameters:
        if parameter.name in types and is_generic(parameter.type):
            for dtype in _candidates(parameter.type, types[parameter.name]):
                found.setdefault(dtype, parameter.name)
    if len(found) == 1:
        return next(iter(found))
    if "unknown" in found:
        return next((dtype for dtype in found if dtype != "unknown"), "unknown")
    if not found and any(map(is_generic, _declared(declaration, types))):
        return "unknown"
    if not found:
        raise ModelError(
            f"{title}: the data-type of the result is not known",
            remedy=f"write {declaration.name}<scalar>(...)",
            location=location,
        )
    shown = " and ".join(f"{dtype} ({name!r})" for dtype, name in found.items())
    raise ModelError(
        f"{title}: '?' stands for one data-type, but the arguments are {shown}",
        remedy="convert one with cast<...>(...)",
        location=location,
    )


def unpacked(
    target: Expression, value: Type, *, tuples: bool = False
) -> Iterator[tuple[str, Type]]:
    """Yield the identifiers of a target with their types.

    Parameters
    ----------
    tuples
        Whether a tuple of identifiers may take the items of an array.

    Raises
    ------
    ModelError
        If the target has another structure than the value.
    """
    if isinstance(target, Identifier):
        yield target.name, value
        return
    assert isinstance(target, Array | Tuple)
    if value is UNKNOWN:
        for item in target.items:
            yield from unpacked(item, UNKNOWN, tuples=tuples)
    elif isinstance(value, ArrayType) and (tuples or isinstance(target, Array)):
        for item in target.items:
            yield from unpacked(item, value.item, tuples=tuples)
    elif (
        isinstance(target, Tuple)
        and isinstance(value, TupleType)
        and len(target.items) == len(value.items)
    ):
        for item, kind in zip(target.items, value.items, strict=True):
            yield from unpacked(item, kind, tuples=tuples)
    else:
        raise _structure(target, value)


def _structure(target: Array | Tuple, value: Type) -> ModelError:
    if isinstance(value, ArrayType):
        reason = "the result is an array, so its items are listed"
        remedy = "write [a, b] = ..."
    elif isinstance(value, TupleType):
        count, assigned = len(value.items), len(target.items)
        if isinstance(target, Array):
            reason, remedy = (
                f"the {count} results are not an array",
                "leave out the brackets: a, b =",
            )
        else:
            reason = f"there are {count} results, but {assigned} are assigned"
            remedy = "name each of them"
    elif isinstance(target, Array):
        reason, remedy = "the result is not an array", "write a = ... without brackets"
    else:
        reason = f"there is 1 result, but {len(target.items)} are assigned"
        remedy = "write a = ..."
    return ModelError(reason, remedy=remedy, location=target.location)


def _declared(declaration: Declaration, types: Mapping[str, Type]) -> Iterator[Type]:
    """Yield the types of the parameters with arguments that are not empty arrays."""
    for parameter in declaration.parameters:
        if types.get(parameter.name, EMPTY) is not EMPTY:
            yield parameter.type


def _candidates(wanted: Type, actual: Type) -> Iterator[str]:
    """Yield the data-types that ``?`` would have to stand for."""
    if actual is UNKNOWN:
        if is_generic(wanted):
            yield "unknown"
    elif isinstance(wanted, TensorType):
        if wanted.item == "?" and isinstance(actual, TensorType) and actual.item is not None:
            yield actual.item
        elif wanted.item == "?" and isinstance(actual, PrimitiveType):
            yield actual.name
    elif isinstance(wanted, PrimitiveType):
        if wanted.name == "?" and isinstance(actual, PrimitiveType):
            yield actual.name
    elif isinstance(wanted, ArrayType):
        if isinstance(actual, ArrayType) and actual is not EMPTY:
            yield from _candidates(wanted.item, actual.item)
    elif isinstance(actual, TupleType) and len(actual.items) == len(wanted.items):
        for pair in zip(wanted.items, actual.items, strict=True):
            yield from _candidates(*pair)


def mismatch(title: str, what: str, value: Expression, actual: Type, wanted: Type) -> ModelError:
    """Return the error of an argument that does not fit, at its innermost wrong part.

    Parameters
    ----------
    title, what
        Names of the invocation and the parameter in the message.
    """
    if isinstance(value, Array) and isinstance(wanted, ArrayType) and isinstance(actual, ArrayType):
        for item in value.items:
            if isinstance(item, Literal) and not fits(PRIMITIVES[type(item.value)], wanted.item):
                kind = PRIMITIVES[type(item.value)]
                return mismatch(title, what, item, kind, wanted.item)
    shown = str(actual)
    if isinstance(value, Literal):
        text = str(value.value).lower() if isinstance(value.value, bool) else repr(value.value)
        shown = f"the {actual} {text}"
    elif isinstance(value, Identifier):
        shown = f"the {actual} {value.name!r}"
    return ModelError(
        f"{title}: {what} must be {wanted}, not {shown}",
        remedy=conversion(actual, wanted, value),
        location=value.location,
    )


def conversion(actual: Type, wanted: Type, value: Expression | None = None) -> str | None:
    """Return how a value of one type is written as another; None if there is no way."""
    if actual == INTEGER and wanted in {SCALAR, TensorType("scalar")}:
        literal = value.value if isinstance(value, Literal) else None
        return (
            f"write {literal}.0 instead of {literal}"
            if literal is not None
            else ("convert it: scalar(...)")
        )
    if actual == SCALAR and wanted == INTEGER:
        return "write it without a point, or convert it: integer(...)"
    if isinstance(actual, TensorType) and isinstance(wanted, TensorType):
        return f"convert it: cast<{wanted.item}>(...)"
    if isinstance(actual, TensorType) and not has_tensor(wanted):
        remedy = "attributes are known before the graph runs, tensors are not"
        is_number = isinstance(wanted, PrimitiveType) and actual.item == wanted.name
        return f"{remedy}; constants are read with --lenient" if is_number else remedy
    if isinstance(wanted, ArrayType) and fits(actual, wanted.item):
        return "write it in brackets: [...]"
    return None
