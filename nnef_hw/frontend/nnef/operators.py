"""The table of standard operators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from types import MappingProxyType

from nnef_hw.frontend.nnef.parser import parse_library
from nnef_hw.frontend.nnef.stdlib import STANDARD_OPERATORS
from nnef_hw.frontend.nnef.syntax import Declaration

__all__ = ["nearest", "standard_operators"]


@cache
def standard_operators() -> Mapping[str, Declaration]:
    """Return the declarations of NNEF 1.0.5 by name."""
    declarations = parse_library(STANDARD_OPERATORS, "stdlib")
    return MappingProxyType({declaration.name: declaration for declaration in declarations})


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a remedy that names the most similar known name, None if nothing is similar."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {matches[0]!r}?" if matches else None
