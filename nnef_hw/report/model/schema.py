"""JSON Schemas of ``report.json`` and of results, made of classes and what they say of fields."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeAlias, get_args, get_type_hints

import msgspec

from nnef_hw.report.model.report import Report

__all__ = ["classes_of", "described_classes", "described_fields", "report_schema"]


Schema: TypeAlias = dict[str, Any]
"""A JSON Schema, as msgspec makes it."""


def report_schema() -> Schema:
    """Return the schema of a report, with a description of every key."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "report.json of nnef-hw",
        "$ref": f"#/$defs/{Report.__name__}",
        "$defs": described_classes(Report),
    }


def described_classes(*roots: type) -> dict[str, Schema]:
    """Return the schemas of classes and of their parts by name, with a description of every key."""
    _, found = msgspec.json.schema_components(roots, ref_template="#/$defs/{name}")
    for kind in classes_of(*roots):
        known = found[kind.__name__]
        known["description"] = summary(kind)
        _state_defaults(kind, known["properties"])
        for name, text in described_fields(kind).items():
            known["properties"][name]["description"] = text
    return found


def _state_defaults(kind: type, properties: dict[str, Schema]) -> None:
    """State made defaults as well: releases of msgspec differ in which of them they state."""
    for field in fields(kind):
        if field.default_factory is not MISSING:
            properties[field.name]["default"] = msgspec.to_builtins(field.default_factory())


def classes_of(*roots: type) -> list[type]:
    """Return classes and those of their fields, each behind the first one that has it."""
    found: dict[type, None] = {}

    def visit(kind: type) -> None:
        if kind not in found:
            found[kind] = None
            for hint in get_type_hints(kind).values():
                for part in _parts(hint):
                    visit(part)

    for root in roots:
        visit(root)
    return list(found)


def summary(kind: type) -> str:
    """Return the first sentence of a class."""
    return " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())


def described_fields(kind: type) -> dict[str, str]:
    """Return descriptions of a class's fields, from its docstring and those of its bases."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        said |= _parameters(base.__doc__ or "")
    names = [field.name for field in fields(kind)] if is_dataclass(kind) else []
    return {name: said[name] for name in names if name in said}


def _parameters(doc: str) -> Mapping[str, str]:
    """Return the texts of a docstring's parameters by their names; names may share a text."""
    _, _, section = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    entries = re.findall(r"^(\S.*)\n((?:^(?: +.*)?\n?)+)", section, re.MULTILINE)
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def _parts(hint: object) -> Iterator[type]:
    """Yield the dataclasses that a type is made of."""
    if is_dataclass(hint) and isinstance(hint, type):
        yield hint
    for part in get_args(hint):
        yield from _parts(part)
