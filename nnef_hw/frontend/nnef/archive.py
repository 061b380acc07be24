"""The files of a model: a folder, a tar, a gzipped tar, or a graph.nnef alone."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from nnef_hw.errors import Location, ModelError, UnsupportedError, UsageError

__all__ = ["GRAPH_FILE", "MAX_ARCHIVE_BYTES", "Archive", "open_archive", "write_archive"]

GRAPH_FILE = "graph.nnef"
MAX_ARCHIVE_BYTES = 1 << 30
"""Largest archive that is read, unpacked."""

_BLOCK = 512
_GZIP_MAGIC = b"\x1f\x8b"
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_SUFFIXES = (".tgz", ".tar.gz", ".tar")


class Archive:
    """Read-only files by their path inside the model.

    Parameters
    ----------
    path
        What the user named; shown in messages.
    members
        Contents by normalised path; None reads from the folder ``path`` when asked.
    graph_file
        Name of the graph's file (differs from ``graph.nnef`` only if the user named it).
    """

    def __init__(
        self, path: Path, members: Mapping[str, bytes] | None, graph_file: str = GRAPH_FILE
    ) -> None:
        self.path = path
        self.graph_file = graph_file
        self._members = members

    def __contains__(self, name: str) -> bool:
        if self._members is not None:
            return name in self._members
        return _is_inside(name) and (self.path / name).is_file()

    def location(self, name: str) -> Location:
        """Return the whole file as a location."""
        return Location(str(self.path / name))

    def read(self, name: str) -> bytes:
        """Return a file's bytes.

        Raises
        ------
        ModelError
            If the file is missing, too large or not readable.
        """
        if name not in self:
            raise ModelError(
                f"the model has no file {name!r}",
                remedy="is the archive complete?",
                location=self.location(""),
            )
        if self._members is not None:
            return self._members[name]
        path = self.path / name
        try:
            if path.stat().st_size > MAX_ARCHIVE_BYTES:
                raise _too_large(self.location(name))
            return path.read_bytes()
        except OSError as error:
            raise UsageError(
                f"cannot read {path}: {error.strerror or error}", remedy="check its permissions"
            ) from None


def open_archive(path: Path) -> Archive:
    """Open a model, whatever its form; compression is told by the contents, not by the name.

    Raises
    ------
    UsageError
        If the path does not exist or cannot be read.
    ModelError
        If it is no NNEF model, or the archive is damaged or hostile.
    """
    if path.is_dir():
        return _with_graph(Archive(path, None))
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ARCHIVE_BYTES + 1)
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", remedy="check the model's path") from None
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", remedy="check its permissions"
        ) from None
    where = Location(str(path))
    if data.startswith(_GZIP_MAGIC):
        data = _unzip(data, where)
    elif path.suffix == ".nnef" and data[_TAR_MAGIC_AT:][: len(_TAR_MAGIC)] != _TAR_MAGIC:
        return Archive(path.parent, None, path.name)
    if len(data) > MAX_ARCHIVE_BYTES:
        raise _too_large(where)
    return _with_graph(Archive(path, _rooted(_members(data, where))))


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a tar (gzipped if the name says so): same members, same bytes.

    The file appears under its name only when it is complete.

    Raises
    ------
    UsageError
        If the name is not that of a tar, or the file cannot be written.
    """
    if not path.name.endswith(_SUFFIXES):
        raise UsageError(
            f"cannot tell from {path.name!r} how to write the model",
            remedy="name it NAME.nnef.tgz or NAME.nnef.tar",
        )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in sorted(members):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(members[name]), 0o644
            tar.addfile(info, io.BytesIO(members[name]))
    data = buffer.getvalue()
    if not path.name.endswith(".tar"):
        data = gzip.compress(data, 6, mtime=0)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise UsageError(
            f"cannot write {path}: {error.strerror or error}", remedy="choose another place"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _too_large(where: Location) -> UnsupportedError:
    return UnsupportedError(
        f"the model is larger than {MAX_ARCHIVE_BYTES >> 20} MiB",
        remedy="no supported device holds such a model",
        location=where,
    )


def _unzip(data: bytes, where: Location) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return file.read(MAX_ARCHIVE_BYTES + 1)
    except EOFError:
        raise ModelError(
            "the gzip file is truncated", remedy="get it again", location=where
        ) from None
    except (OSError, zlib.error) as error:
        raise ModelError(
            f"the gzip file is damaged: {error}", remedy="get it again", location=where
        ) from None


def _members(data: bytes, where: Location) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    end = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for info in tar:
                if info.size < 0:
                    raise _truncated(where)
                name = _safe_name(info, where)
                if info.isfile():
                    if name in members:
                        raise ModelError(
                            f"the archive holds {name!r} twice",
                            remedy="keep one of them",
                            location=where,
                        )
                    file = tar.extractfile(info)
                    members[name] = file.read() if file else b""
                end = info.offset_data + -(-info.size // _BLOCK) * _BLOCK
    except tarfile.ReadError as error:
        if not end and "unexpected end" not in str(error):
            raise ModelError(
                "the file is no NNEF model",
                remedy="give a folder with graph.nnef, a .tar or a .tgz",
                location=where,
            ) from None
        raise _truncated(where) from None
    except (tarfile.TarError, ValueError, OverflowError, OSError) as error:
        raise ModelError(
            f"the tar archive is damaged: {error}", remedy="get it again", location=where
        ) from None
    # tarfile takes a cut or garbled header for the end; the real end is a block of zeros.
    if data[end : end + _BLOCK] != bytes(_BLOCK):
        raise _truncated(where)
    return members


def _truncated(where: Location) -> ModelError:
    return ModelError(
        "the tar archive is truncated or damaged", remedy="get it again", location=where
    )


def _safe_name(info: tarfile.TarInfo, where: Location) -> str:
    kind = ""
    if not _is_inside(info.name):
        kind = "a path outside the archive"
    elif info.issym() or info.islnk():
        kind = "a link"
    elif not (info.isfile() or info.isdir()) or info.issparse():
        kind = "a special file"
    if kind:
        raise ModelError(
            f"the archive member {info.name!r} is {kind}, which NNEF models never hold",
            remedy="do not trust this archive; pack the plain files again",
            location=where,
        )
    return str(PurePosixPath(info.name))


def _rooted(members: dict[str, bytes]) -> dict[str, bytes]:
    """Strip the one folder that an archive of a folder begins with."""
    graphs = [name for name in members if PurePosixPath(name).name == GRAPH_FILE]
    if GRAPH_FILE in members or len(graphs) != 1:
        return members
    root = graphs[0].removesuffix(GRAPH_FILE)
    return {
        name.removeprefix(root): data for name, data in members.items() if name.startswith(root)
    }


def _with_graph(archive: Archive) -> Archive:
    if GRAPH_FILE not in archive:
        raise ModelError(
            f"the model has no {GRAPH_FILE}",
            remedy="give a folder or an archive that holds one",
            location=archive.location(""),
        )
    return archive
