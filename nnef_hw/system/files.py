"""Files that others see complete or not at all, and errors of disks as errors of the user's."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nnef_hw.errors import Location, OutputError

__all__ = [
    "STORAGE",
    "atomic_file",
    "digest",
    "locked",
    "output_error",
    "publish_directory",
    "remove",
    "write_atomic",
    "writing",
]

if sys.platform != "win32":
    import fcntl

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

SEAL = ".contents.json"
"""File with the digests of all others in a folder of :func:`publish_directory`."""


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


def digest(*parts: str | bytes | Path) -> str:
    """Hash of texts, bytes and the contents of files; where one part ends matters."""
    state = hashlib.sha256()
    for part in parts:
        if isinstance(part, Path):
            part = part.read_bytes()
        elif isinstance(part, str):
            part = part.encode()
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.hexdigest()


@contextmanager
def locked(path: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Keep other processes out; without file locks they may do the same work twice.

    Parameters
    ----------
    path
        File to lock; it is made, and its folder.
    waiting
        Called before waiting for another process.
    """
    with contextlib.ExitStack() as stack:
        while True:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(path.open("w"))
            if sys.platform == "win32":
                break
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(file, fcntl.LOCK_EX)
            # Who had it may have removed it: then others lock another file of this name.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    break
        yield


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that can be done."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes left of folders like this one, which the caller has locked."""
    for path in target.parent.glob(f".{target.name}.*"):
        remove(path)
    if sys.platform == "win32":
        return
    for path in target.parent.glob(".*"):
        lock = target.with_name(f"{path.name[1:].rpartition('.')[0]}.lock")
        with contextlib.suppress(OSError), lock.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)


@functools.lru_cache(4096)
def _content(path: Path, *_stamp: int) -> str:
    """Digest of a file's content, which is read again when the file was touched."""
    return digest(path)


def _contents(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the digests of files in a folder, by name."""
    found = {}
    for name in names:
        path = folder / name
        known = path.stat()
        stamp = known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns
        found[name] = _content(path, *stamp)
    return found


def _seal(folder: Path) -> None:
    """Write down the digests of all files in a folder."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    (folder / SEAL).write_text(json.dumps(_contents(folder, names), indent=1) + "\n")


def _is_whole(folder: Path) -> bool:
    """Whether all files of a folder are what they were when it was sealed."""
    try:
        sealed = json.loads((folder / SEAL).read_bytes())
        return isinstance(sealed, dict) and _contents(folder, sealed) == sealed
    except (OSError, ValueError):
        return False


def publish_directory(target: Path, produce: Callable[[Path], object]) -> Path:
    """Make a folder whose name says what is in it, unless it exists.

    ``produce`` fills a temporary folder, which then becomes ``target`` in one step. Safe when
    several processes want the same folder; what killed ones left in the parent is removed. So is a
    folder whose files are not what they were: the digest of each is kept with them.

    Raises
    ------
    OutputError
        If the disk is full, or cannot be written there.
    """
    if _is_whole(target):
        return target
    with writing(target.parent), locked(target.with_name(target.name + ".lock")):
        if _is_whole(target):
            return target
        remove(target)
        _remove_abandoned(target)
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            produce(scratch)
            _seal(scratch)
            scratch.chmod(0o755)
            scratch.rename(target)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
    return target
