"""The identifiers of a body under evaluation, and the names for its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nnef_hw.errors import Location

__all__ = ["Names", "Scope", "first_name"]

Names: TypeAlias = "str | Sequence[Names] | None"
"""The wanted names of a value's tensors: one name, the names of its items, or None for any."""


@dataclass(slots=True)
class Scope:
    """The identifiers of a body while it is evaluated.

    Parameters
    ----------
    values
        Tensors (:class:`~nnef_hw.ir.Tensor`), numbers, strings, logicals, lists and tuples.
    location
        The statement of the graph that is evaluated: where nodes come from.
    prefix
        Prefix of the names of its own tensors; empty in the graph.
    results
        Names for the results of the fragment.
    dtype
        What ``?`` stands for.
    root
        Prefix of the names of tensors without an identifier.
    library
        Whether the body is a library's: the document's fragments are not known there.
    """

    values: dict[str, object]
    location: Location | None = None
    prefix: str = ""
    results: Mapping[str, Names] = field(default_factory=dict)
    dtype: str | None = None
    root: str = ""
    depth: int = 0
    library: bool = False


def first_name(names: Names) -> str | None:
    """Return the first of the wanted names; None if there is none."""
    while names is not None and not isinstance(names, str):
        names = names[0] if names else None
    return names
