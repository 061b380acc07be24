"""Build steps that are done once, and again only if their inputs changed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from nnef_hw.system.files import digest, remove, write_atomic

__all__ = [
    "cached_step",
    "discard_steps",
    "finished_step",
    "is_build",
    "remove_leftovers",
]

_STEPS = ".steps"


def remove_leftovers(directory: Path) -> None:
    """Remove what killed builds left of their steps; the caller keeps living ones out."""
    for path in (directory / _STEPS).glob(".*"):
        remove(path)


def cached_step(
    directory: Path, name: str, key: str, produce: Callable[[Path], object]
) -> tuple[object, bool]:
    """Run one step of a build, unless its result is there already.

    A record below ``directory`` holds the key, the digests of the files and what was returned. It
    is without a key from before the first file changes until after the last one, so an interrupted
    step is done again, and so is one whose files or record were touched. No new file stands beside
    an old one of the same step.

    Parameters
    ----------
    directory
        The build's folder.
    name
        The step's name, unique in the build.
    key
        Digest of all inputs and tool versions, see :func:`digest`.
    produce
        Writes the step's files into the folder it is given, which has the layout of
        ``directory``, and returns something JSON can hold.

    Returns
    -------
    tuple
        What ``produce`` returned (after a round trip through JSON), and whether it ran now.
    """
    record = directory / _STEPS / f"{name}.json"
    previous = _read_record(record)
    if previous and previous.key == key and _is_intact(directory, previous.files):
        return previous.value, False
    old = previous.files if previous else {}

    scratch = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=_made(directory / _STEPS)))
    try:
        value = produce(scratch)
        files = {
            path.relative_to(scratch).as_posix(): digest(path)
            for path in sorted(scratch.rglob("*"))
            if path.is_file()
        }
        text = _Record(key, files, value).sealed()
        write_atomic(record, _Record("", {**old, **files}, None).sealed())
        for file in {**old, **files}:
            (directory / file).unlink(missing_ok=True)
        for file in files:
            _made((directory / file).parent)
            (scratch / file).replace(directory / file)
        write_atomic(record, text)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return json.loads(text)["value"], True


def finished_step(directory: Path, name: str) -> tuple[object, list[str]] | None:
    """Return the value and the files of a step; None if it was not done, or they were touched."""
    record = _read_record(directory / _STEPS / f"{name}.json")
    if record is None or not record.key or not _is_intact(directory, record.files):
        return None
    return record.value, list(record.files)


def is_build(directory: Path) -> bool:
    """Whether steps were run in a folder, finished or not."""
    return (directory / _STEPS).is_dir()


def discard_steps(directory: Path, names: Sequence[str]) -> None:
    """Remove the records and files of steps whose inputs have changed.

    A stale bitstream beside new Verilog would be flashed sooner or later.
    """
    for name in names:
        record = directory / _STEPS / f"{name}.json"
        previous = _read_record(record)
        for file in previous.files if previous else ():
            (directory / file).unlink(missing_ok=True)
        # Last: it is what names them.
        record.unlink(missing_ok=True)


def _made(directory: Path) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@dataclass(frozen=True, slots=True)
class _Record:
    """A step that was done: digest of its inputs, digests of its files, and what it returned."""

    key: str
    files: Mapping[str, str]
    value: object

    @property
    def digest(self) -> str:
        return digest(json.dumps(asdict(self)))

    def sealed(self) -> str:
        """Return the text of the record, with the digest of all that is in it."""
        return json.dumps({**asdict(self), "digest": self.digest}, indent=1) + "\n"


def _read_record(path: Path) -> _Record | None:
    """Return a step's record; None if there is none, or it is damaged."""
    try:
        found = json.loads(path.read_text())
        sealed = found.pop("digest")
        record = _Record(**found)
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return None
    return record if sealed == record.digest else None


def _is_intact(directory: Path, files: Mapping[str, str]) -> bool:
    paths = {directory / name: expected for name, expected in files.items()}
    return all(path.is_file() and digest(path) == expected for path, expected in paths.items())
