"""Declared shapes of a file's inputs, some of whose extents are open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["PLACES", "OpenShapes"]

PLACES = "window_kv_sdpa.places"
"""A value that stands for the rows of caches to which no symbol of a file belongs."""


@dataclass(frozen=True, slots=True)
class OpenShapes:
    """Declared shapes of a file's inputs.

    Parameters
    ----------
    shapes
        By name: numbers, and texts of what is open.
    caches
        Those of which the file says that they are caches.
    symbols
        What has a value of its own; None if every text is such a symbol, also a sum.
    """

    shapes: Mapping[str, Sequence[int | str]]
    caches: frozenset[str] = frozenset()
    symbols: frozenset[str] | None = None
