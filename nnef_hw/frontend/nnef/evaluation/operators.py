"""The table of standard operators."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from nnef_hw.frontend.nnef.evaluation.library import load_library
from nnef_hw.frontend.nnef.language.syntax import Declaration

__all__ = ["nearest", "standard_operators"]


def standard_operators() -> Mapping[str, Declaration]:
    """Return the declarations of NNEF 1.0.5 by name, with the bodies of compounds."""
    return load_library("standard")


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return a remedy that names the most similar known name, None if nothing is similar."""
    matches = difflib.get_close_matches(name, list(choices), n=1, cutoff=0.6)
    return f"did you mean {matches[0]!r}?" if matches else None
