"""New Python files of a user's own."""

from __future__ import annotations

from pathlib import Path

from nnef_hw.errors import UsageError
from nnef_hw.system.files import write_atomic

__all__ = ["write_module"]


def write_module(path: Path, text: str) -> None:
    """Write a module that is not there yet.

    Raises
    ------
    UsageError
        If the file exists, or its name is none of a Python module.
    """
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise UsageError(
            f"{str(path)!r} is no name for a Python file", remedy="take one like my_own.py"
        )
    if path.exists():
        raise UsageError(f"{str(path)!r} exists", remedy="choose another name, or remove it")
    write_atomic(path, text)
