"""The files of a model: a folder, a tar, a gzipped tar, or a graph.nnef alone."""

from __future__ import annotations

import contextlib
import gzip
import io
import mmap
import os
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Self

from nnef_hw.errors import Location, ModelError, UnsupportedError, UsageError
from nnef_hw.system.files import output_error

__all__ = ["GRAPH_FILE", "MAX_ARCHIVE_BYTES", "Archive", "open_archive", "write_archive"]

GRAPH_FILE = "graph.nnef"
MAX_ARCHIVE_BYTES = 8 << 30
"""Largest archive that is read, unpacked."""

_MAX_MEMBERS = 1 << 16
_BLOCK = 512
_TAR_MAGIC, _TAR_MAGIC_AT = b"ustar", 257
_TAR_TYPE_AT, _TAR_NAME_BYTES = 156, 100
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_SUFFIXES = (".tgz", ".tar.gz", ".tar")
_CHUNK = 1 << 16
_FREE_BYTES, _MAX_RATIO = 1 << 28, 100
"""An archive that unpacks to more bytes than this, and to so many times its size, is refused."""
_MAPPED_BYTES = 1 << 23
"""Smaller files are copied: each mapped one costs a file descriptor while its data is used."""


class Archive:
    """Read-only files by their path inside the model.

    Parameters
    ----------
    path
        Path that the user named; shown in messages.
    members
        Contents by normalised path; None reads from the folder ``path`` when asked.
    graph_file
        Name of the graph's file (differs from ``graph.nnef`` only if the user named it).
    """

    def __init__(
        self, path: Path, members: Mapping[str, memoryview] | None, graph_file: str = GRAPH_FILE
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

    def names(self, suffix: str) -> list[str]:
        """Return the sorted names of the top-level files with this suffix."""
        found = self._members
        names = [path.name for path in self.path.iterdir()] if found is None else [*found]
        return sorted(name for name in names if name.endswith(suffix) and "/" not in name)

    def read(self, name: str) -> bytes:
        """Return a copy of a file's bytes; see :meth:`view`."""
        return bytes(self.view(name))

    def view(self, name: str) -> memoryview:
        """Return a file's bytes; large ones are mapped into memory, not copied.

        Raises
        ------
        ModelError
            If the file is missing or too large.
        UsageError
            If it cannot be read.
        """
        if name not in self:
            raise ModelError(
                f"the model has no file {name!r}",
                remedy="is the archive complete?",
                location=self.location(""),
            )
        if self._members is not None:
            return self._members[name]
        with _opened(self.path / name) as file:
            return _contents(file, self.location(name))


def open_archive(path: Path) -> Archive:
    """Open a model, whatever its form; compression is told by the contents, not by the name.

    A member with a path part that begins with a dot is ignored.

    Raises
    ------
    UsageError
        If the path does not exist or cannot be read.
    ModelError
        If it is no NNEF model, or the archive is damaged or hostile.
    """
    if path.is_dir():
        return _with_graph(Archive(path, None))
    where = Location(str(path))
    with _opened(path) as file:
        begin = file.read(_BLOCK)
        file.seek(0)
        if begin.startswith(_GZIP_MAGIC):
            data = _unzip(file, where)
        elif path.suffix == ".nnef" and begin[_TAR_MAGIC_AT:][: len(_TAR_MAGIC)] != _TAR_MAGIC:
            return Archive(path.parent, None, path.name)
        else:
            data = _contents(file, where)
    return _with_graph(Archive(path, _rooted(_members(data, where))))


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write a tar (gzipped if the name says so): same members, same bytes.

    The file appears under its name only when it is complete.

    Raises
    ------
    UsageError
        If the name is not that of a tar.
    OutputError
        If the file cannot be written.
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
        raise output_error(error, path) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _too_large(where: Location) -> UnsupportedError:
    return UnsupportedError(
        f"the model is larger than {MAX_ARCHIVE_BYTES >> 20} MiB",
        remedy="split it, or quantize its weights",
        location=where,
    )


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", remedy="check the model's path") from None
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}", remedy="check its permissions"
        ) from None


def _contents(file: BinaryIO, where: Location) -> memoryview:
    size = os.fstat(file.fileno()).st_size
    if size > MAX_ARCHIVE_BYTES:
        raise _too_large(where)
    if size < _MAPPED_BYTES:
        return memoryview(file.read(size))
    return memoryview(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ))


def _unzip(file: BinaryIO, where: Location) -> memoryview:
    """Inflate chunk by chunk into one buffer; stop as soon as it is too large."""
    out = io.BytesIO()
    inflater = zlib.decompressobj(_GZIP_WINDOW)
    packed = file.read(_CHUNK)
    try:
        while packed:
            out.write(inflater.decompress(packed))  # at most 1032 times as much
            if out.tell() > MAX_ARCHIVE_BYTES:
                raise _too_large(where)
            if out.tell() > max(_FREE_BYTES, _MAX_RATIO * file.tell()):
                raise ModelError(
                    f"the archive unpacks to more than {_MAX_RATIO} times its size",
                    remedy="do not trust it; no trained model does so",
                    location=where,
                )
            packed = inflater.unused_data or file.read(_CHUNK)
            if inflater.eof and packed.strip(b"\0"):  # another gzip file behind this one
                inflater = zlib.decompressobj(_GZIP_WINDOW)
            elif inflater.eof:  # zeros that fill up a block of a tape
                packed = file.read(_CHUNK)
    except zlib.error as error:
        raise ModelError(
            f"the gzip file is damaged: {error}", remedy="get it again", location=where
        ) from None
    if not inflater.eof:
        raise ModelError("the gzip file is truncated", remedy="get it again", location=where)
    return out.getbuffer()


class _Reader(io.RawIOBase):
    """A file over bytes that are not copied."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._place = 0

    def read(self, size: int = -1) -> bytes:
        begin = self._place
        self._place = len(self._data) if size < 0 else min(begin + size, len(self._data))
        return bytes(self._data[begin : self._place])

    def seek(self, offset: int, _: int = 0) -> int:
        self._place = offset
        return offset

    def tell(self) -> int:
        return self._place


class _Member(tarfile.TarInfo):
    """A member of a tar whose name may have been cut behind a slash.

    ``tarfile`` takes a file of the oldest type for a folder if its name ends so, and then its
    data for the next header. In a name that fills its field the slash is where GNU tar cut it.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Read a header."""
        info = super().frombuf(buf, encoding, errors)
        is_old = buf[_TAR_TYPE_AT : _TAR_TYPE_AT + 1] == tarfile.AREGTYPE
        if is_old and info.isdir() and buf[_TAR_NAME_BYTES - 1 : _TAR_NAME_BYTES] == b"/":
            info.type = tarfile.AREGTYPE
        return info


def _members(data: memoryview, where: Location) -> dict[str, memoryview]:
    members: dict[str, memoryview] = {}
    spellings: dict[str, str] = {}
    end = count = 0
    try:
        with tarfile.open(fileobj=_Reader(data), mode="r:", tarinfo=_Member) as tar:
            for count, info in enumerate(tar, 1):
                if info.size < 0 or info.offset_data + info.size > len(data):
                    raise _truncated(where)
                name = _safe_name(info, where)
                if info.isfile() and not _is_hidden(name):
                    _check_unique(name, spellings.setdefault(name.lower(), name), members, where)
                    members[name] = data[info.offset_data : info.offset_data + info.size]
                end = info.offset_data + -(-info.size // _BLOCK) * _BLOCK
                if count > _MAX_MEMBERS:
                    raise ModelError(
                        f"the archive has more than {_MAX_MEMBERS} members",
                        remedy="do not trust it; no NNEF model has so many",
                        location=where,
                    )
    except tarfile.ReadError as error:
        if not end and "unexpected end" not in str(error):
            raise ModelError(
                "the file is not an NNEF model",
                remedy="give a folder with graph.nnef, a .tar or a .tgz of it, or an .onnx or "
                ".tflite file",
                location=where,
            ) from None
        raise _truncated(where) from None
    except (tarfile.TarError, ValueError, OverflowError, RecursionError, OSError) as error:
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


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts)


def _check_unique(
    name: str, spelling: str, members: Mapping[str, memoryview], where: Location
) -> None:
    if name in members:
        raise ModelError(
            f"the archive holds {name!r} twice", remedy="keep one of them", location=where
        )
    if name != spelling:
        raise ModelError(
            f"the archive holds {spelling!r} and {name!r}, which NNEF takes for the same name",
            remedy="rename one of them, and its label",
            location=where,
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


def _rooted(members: dict[str, memoryview]) -> dict[str, memoryview]:
    """Strip the top-level folder that all members of an archive share.

    Graphs further down belong to submodels.
    """
    graphs = [name for name in members if PurePosixPath(name).name == GRAPH_FILE]
    least = min((name.count("/") for name in graphs), default=0)
    roots = [name.removesuffix(GRAPH_FILE) for name in graphs if name.count("/") == least]
    if len(roots) != 1:
        return members
    return {
        name.removeprefix(roots[0]): data
        for name, data in members.items()
        if name.startswith(roots[0])
    }


def _with_graph(archive: Archive) -> Archive:
    if GRAPH_FILE not in archive:
        raise ModelError(
            f"the model has no {GRAPH_FILE}",
            remedy="give a folder or an archive that holds one",
            location=archive.location(""),
        )
    return archive
