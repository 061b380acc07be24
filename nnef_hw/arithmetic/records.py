"""Names for values whose types only the one who reads them knows: JSON, attributes, keywords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

__all__ = ["AttributeMap", "AttributeValue", "Fields", "JsonObject", "JsonView"]

AttributeValue: TypeAlias = Any
"""A value of an attribute or of JSON: number, text, truth value, array, or a list of these."""
AttributeMap: TypeAlias = Mapping[str, AttributeValue]
"""Values by name, which are only read."""
Fields: TypeAlias = dict[str, AttributeValue]
"""Keyword arguments of a class, gathered before it is made."""
JsonObject: TypeAlias = dict[str, AttributeValue]
"""An object of JSON: its values by key."""
JsonView: TypeAlias = Mapping[str, AttributeValue]
"""An object of JSON that is only read."""
