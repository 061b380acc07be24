"""Choices made for an engine, as a plan keeps them: attributes that say so themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, field, fields
from typing import Any

from nnef_hw.arithmetic.records import Fields, JsonObject

__all__ = ["MEMORY", "chosen", "restored", "saved"]

MEMORY = "memory"
"""Section of a plan that is there only where the program comes from a memory."""


def chosen(default: Any, name: str, *, section: str = "", positional: bool = False) -> Any:
    """Return an attribute that a plan keeps if it is not the default.

    Parameters
    ----------
    name, section
        What the plan calls it, and where.
    positional
        Whether it need not be named.
    """
    return field(
        default=default, kw_only=not positional, metadata={"plan": name, "section": section}
    )


def _of_section(kind: Any, section: str) -> Mapping[str, Field[Any]]:
    own = (x for x in fields(kind) if "plan" in x.metadata)
    return {x.metadata["plan"]: x for x in own if x.metadata["section"] == section}


def saved(design: Any, section: str = "") -> Fields:
    """Return the choices as plain JSON values."""
    found = {}
    for name, own in _of_section(design, section).items():
        value = getattr(design, own.name)
        if value != own.default:
            found[name] = _listed(value)
    return found


def restored(kind: Any, value: JsonObject, section: str = "") -> Fields:
    """Return the attributes of a class that a plan has."""
    known = _of_section(kind, section)
    return {own.name: _tupled(value[name]) for name, own in known.items() if name in value}


def _listed(value: Any) -> Any:
    return list(map(_listed, value)) if isinstance(value, tuple) else value


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
