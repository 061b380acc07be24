"""Files of models in any format: how large they may be, and how they are read."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

from nnef_hw.errors import Location, ModelError, UsageError

__all__ = ["MAX_VOLUME", "read_model_file", "similar_names"]

MAX_VOLUME = 1 << 28
"""Elements of a tensor; no supported device holds more."""

_MAX_BYTES = 1 << 31


def read_model_file(path: Path, remedy: str) -> bytes:
    """Return the content of a model that is one binary file.

    Parameters
    ----------
    remedy
        What to do about a file that is too large.

    Raises
    ------
    UsageError
        If there is no such file, or it cannot be read.
    ModelError
        If it has 2 GiB or more.
    """
    if not path.exists():
        raise UsageError(f"there is no model {str(path)!r}")
    try:
        if path.stat().st_size >= _MAX_BYTES:
            raise ModelError(
                "the file is larger than 2 GiB", remedy=remedy, location=Location(str(path))
            )
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None


def similar_names(name: str, names: Iterable[str]) -> str:
    """Return a remedy for a name that a model does not have: those that are most similar."""
    listed = list(names)
    near = difflib.get_close_matches(name, listed, 3, 0.5) or listed[-3:]
    return f"use one of its names, such as {', '.join(map(repr, near))}" if near else "it has none"
