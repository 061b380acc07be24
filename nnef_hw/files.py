"""Files that others see complete or not at all, and errors of disks as errors of the user's."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nnef_hw.errors import Location, OutputError

__all__ = ["STORAGE", "atomic_file", "output_error", "write_atomic", "writing"]

STORAGE = {
    errno.ENOSPC: "free some space there, or choose another place",
    errno.EDQUOT: "free some of your quota there, or choose another place",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another place",
    errno.EROFS: "choose a place that can be written",
    errno.EACCES: "choose a place that can be written",
    errno.EPERM: "choose a place that can be written",
    errno.EIO: "check the disk, or choose another place",
}
"""What to do about the errors of a disk, which no program is to blame for."""


def output_error(error: OSError, path: Path) -> OutputError:
    """Return an error of the system in writing ``path`` as the user's."""
    remedy = STORAGE.get(error.errno or 0, "choose another place")
    reason = f"cannot be written: {error.strerror or error}"
    return OutputError(reason, remedy=remedy, location=Location(str(path)))


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Blame a disk for what fails while files are written to a place: a file, or below a folder.

    Errors of the system that have nothing to do with the place or with storage stay what they are.

    Raises
    ------
    OutputError
        Located at the place, whatever the name of the temporary file was.
    """
    try:
        yield
    except OutputError as error:
        # of a temporary file
        if error.location is None or not _is_below(error.location.file, place):
            raise
        raise OutputError(
            error.reason, remedy=error.remedy, location=Location(str(place))
        ) from error
    except OSError as error:
        # numpy says by words alone that a disk is full
        is_storage = error.errno is None or error.errno in STORAGE
        named = error.filename is not None and _is_below(os.fsdecode(error.filename), place)
        if not is_storage and not named:
            raise
        raise output_error(error, place) from error


def _is_below(name: str, place: Path) -> bool:
    path, whole = Path(name).absolute(), place.absolute()
    return whole in {path, *path.parents}


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to, which becomes ``path`` at the end; without an error only.

    Raises
    ------
    OutputError
        If that place cannot be written; it is as it was before.
    """
    partial = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        partial = Path(name)
        with os.fdopen(handle, "wb") as file:
            yield file
        partial.chmod(0o644)
        partial.replace(path)
    except OSError as error:
        raise output_error(error, path) from error
    finally:
        if partial is not None:
            partial.unlink(missing_ok=True)


def write_atomic(path: Path, content: str | bytes) -> None:
    """Write a file, text in UTF-8, see :func:`atomic_file`."""
    with atomic_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
