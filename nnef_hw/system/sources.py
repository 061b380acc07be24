"""Digest of this package's sources: results of an older version are not taken for its own."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from nnef_hw.system.files import digest

__all__ = ["package_digest"]

_PACKAGES = ("nnef_hw", "nnef_hw.rtl", "nnef_hw.sim", "nnef_hw.boards")
_COMPILED = ".pyc"


@cache
def package_digest() -> str:
    """Digest of this package's own sources and data, so that a changed compiler builds anew."""
    specs = [find_spec(package) for package in _PACKAGES]
    folders = [x for spec in specs if spec for x in spec.submodule_search_locations or ()]
    files = {path for folder in folders for path in Path(folder).rglob("*")}
    return digest(*sorted(path for path in files if path.is_file() and path.suffix != _COMPILED))
