"""JSON of reports: every class converts by the types of its fields."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

__all__ = ["from_json", "to_json"]

T = TypeVar("T")


def to_json(value: object) -> Any:
    """Return plain values: of a dataclass a dict of its fields, without those that are unset.

    Raises
    ------
    ValueError
        If a number is not finite.
    """
    return json.loads(json.dumps(msgspec.to_builtins(value), allow_nan=False))


def from_json(value: object, kind: type[T]) -> T:
    """Return a value of a type of plain values.

    Keys that the type does not have are passed over, as an older version reads a newer report.

    Raises
    ------
    ValueError
        If something is missing or of another type: what, and where.
    """
    return msgspec.convert(value, kind)
