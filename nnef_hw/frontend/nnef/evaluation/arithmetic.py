"""Operators and casts on primitive values: 64-bit integers, doubles, logicals and strings.

What the specification leaves to common sense is decided here: an integer division drops the
fraction, an integer power needs an exponent of at least 0, and an integer that does not fit into
64 bits or a scalar that is not finite is an error.
"""

from __future__ import annotations

import math
import re
from typing import Any

from nnef_hw.errors import Location, ModelError

__all__ = ["binary", "cast", "unary"]

_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")
_LIMIT = 1 << 63
_MAX_POWER = 1 << 10
_MAX_LENGTH = 1 << 20
_ARTICLES = {"integer": "an", "scalar": "a"}


def unary(operator: str, value: Any, location: Location) -> Any:
    """Return ``-value``, ``+value`` or ``!value``."""
    if operator == "!":
        return not value
    return _checked(-value, operator, (value,), location) if operator == "-" else value


def binary(operator: str, left: Any, right: Any, location: Location) -> Any:
    """Return ``left operator right``.

    The values have one type, or are an array or a string and how often to repeat it.

    Raises
    ------
    ModelError
        If the result is not a number: an overflow or a division by zero.
    """
    match operator:
        case "==":
            return left == right
        case "!=":
            return left != right
        case "<":
            return left < right
        case "<=":
            return left <= right
        case ">":
            return left > right
        case ">=":
            return left >= right
        case "&&":
            return left and right
        case "||":
            return left or right
    if isinstance(left, list | str):
        return _joined(operator, left, right, location)
    try:
        result = _number(operator, left, right)
    except ZeroDivisionError:
        raise ModelError(
            f"{_shown(left)} {operator} {_shown(right)} divides by zero",
            remedy="check the divisor: a / b if b != 0 else ...",
            location=location,
        ) from None
    except OverflowError:
        result = math.inf
    return _checked(result, operator, (left, right), location)


def _number(operator: str, left: Any, right: Any) -> Any:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" if isinstance(left, int):
            quotient = abs(left) // abs(right)
            return quotient if (left < 0) == (right < 0) else -quotient
        case "/":
            return left / right
    assert operator == "^", operator
    if isinstance(left, int) and (right < 0 or (abs(left) > 1 and right > _MAX_POWER)):
        return math.nan if right < 0 and abs(left) != 1 else _power_of_unit(left, right)
    return left**right


def _power_of_unit(left: int, right: int) -> float | int:
    """Return a power of 1 or -1 exactly; everything else is too large."""
    if abs(left) == 1:
        return left if right % 2 else 1
    return math.inf


def _joined(operator: str, left: Any, right: Any, location: Location) -> Any:
    if operator == "+":
        if len(left) + len(right) > _MAX_LENGTH:
            raise ModelError(
                f"{len(left)} and {len(right)} items are more than {_MAX_LENGTH}",
                location=location,
            )
        result = left + right
    else:
        if right < 0:
            raise ModelError(
                f"{'a string' if isinstance(left, str) else 'an array'} cannot be repeated "
                f"{right} times",
                location=location,
            )
        if len(left) * right > _MAX_LENGTH:
            raise ModelError(
                f"{len(left)} items {right} times are more than {_MAX_LENGTH}", location=location
            )
        result = left * right
    return result


def _checked(result: Any, operator: str, values: tuple[Any, ...], location: Location) -> Any:
    shown = f" {operator} ".join(map(_shown, values))
    if len(values) == 1:
        shown = f"{operator}{shown}"
    if isinstance(result, complex) or (isinstance(result, float) and math.isnan(result)):
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            return result
        kind = "an integer" if isinstance(values[0], int) else "a real number"
        raise ModelError(
            f"{shown} is not {kind}",
            remedy="write it with scalars" if isinstance(values[0], int) else None,
            location=location,
        )
    if isinstance(values[0], int) and abs(result) >= _LIMIT and result != -_LIMIT:
        raise ModelError(
            f"{shown} does not fit into 64 bits", remedy="write it with scalars", location=location
        )
    if isinstance(result, float) and math.isinf(result) and all(map(math.isfinite, values)):
        raise ModelError(
            f"{shown} is too large for a scalar", remedy="scale it down", location=location
        )
    return result


def cast(function: str, value: Any, location: Location) -> Any:
    """Return ``integer(value)``, ``scalar(value)``, ``logical(value)`` or ``string(value)``.

    ``integer`` of a scalar is the closest smaller integer: ``integer(-3.7)`` is -4.

    Raises
    ------
    ModelError
        If a string is not a literal of the wanted type, or a scalar not a 64-bit integer.
    """
    if function == "string":
        return value if isinstance(value, str) else _shown(value)
    if function == "logical":
        return bool(value)
    if isinstance(value, str):
        pattern = _INTEGER if function == "integer" else _NUMBER
        if not pattern.fullmatch(value):
            raise ModelError(
                f"the string {value!r} is not {_ARTICLES[function]} {function}",
                remedy=f"{function}() takes strings that are {function} literals",
                location=location,
            )
        result = int(value) if function == "integer" else float(value)
    elif function == "scalar":
        result = float(value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ModelError(f"{value} is not an integer", location=location)
    else:
        result = math.floor(value)
    if isinstance(result, int) and not -_LIMIT <= result < _LIMIT:
        raise ModelError(f"{_shown(value)} does not fit into 64 bits", location=location)
    return result


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
