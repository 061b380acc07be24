"""The files of a model onto the disk: a tar, a gzipped tar or a folder."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from nnef_hw.errors import UsageError
from nnef_hw.frontend.nnef.archive.archive import GRAPH_FILE, write_archive
from nnef_hw.system.files import output_error

__all__ = ["write_model"]

_MODEL_FILES = {GRAPH_FILE, "graph.quant", "fixed.json"}
_ARCHIVES = (".tgz", ".tar.gz", ".tar")


def write_model(path: Path | str, members: Mapping[str, bytes]) -> None:
    """Write a model: the same members give the same bytes.

    Parameters
    ----------
    path
        ``NAME.tgz``, ``NAME.tar.gz`` or ``NAME.tar``; an existing folder, a name with a slash
        behind it or without a suffix is a folder.

    Raises
    ------
    UsageError
        If the name tells no format, the folder holds other files, or writing fails.
    """
    text, path = str(path), Path(path)
    if path.is_dir() and not text.endswith(_ARCHIVES):
        _write_folder(path, members)
    elif text.endswith(_ARCHIVES):
        write_archive(path, members)
    elif text.endswith("/") or not path.suffix:
        _write_folder(path, members)
    else:
        raise UsageError(
            f"cannot tell from {path.name!r} how to write the model",
            remedy=f"name it NAME.nnef.tgz, NAME.nnef.tar, or {path.name}/ for a folder",
        )


def _write_folder(folder: Path, members: Mapping[str, bytes]) -> None:
    """Replace a model file by file; ``graph.nnef`` is missing until all others are in place."""
    is_new = not folder.exists()
    try:
        stale = _old_members(folder)
        folder.mkdir(exist_ok=True)
        (folder / GRAPH_FILE).unlink(missing_ok=True)
        for name in stale - members.keys():
            (folder / name).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                (folder / name).parent.rmdir()
        for name in sorted(members, key=lambda name: (name == GRAPH_FILE, name)):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
            try:
                partial.write_bytes(members[name])
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
    except OSError as error:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise output_error(error, folder) from None


def _old_members(folder: Path) -> set[str]:
    """Return the files of the model that a folder holds already.

    Raises
    ------
    UsageError
        If the folder holds other files.
    """
    if not folder.exists():
        return set()
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    foreign = sorted(name for name in found - _MODEL_FILES if not name.endswith(".dat"))
    if found and GRAPH_FILE not in found:
        foreign = foreign or sorted(found)
    if foreign:
        raise UsageError(
            f"the folder {str(folder)!r} holds {foreign[0]!r}, which is not part of a model",
            remedy="choose a new folder, so that nothing is overwritten",
        )
    return found
