"""Read a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.frontend.nnef.archive import open_archive
from nnef_hw.frontend.nnef.fixed import FIXED_FILE, read_fixed
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.frontend.nnef.parser import parse_document
from nnef_hw.ir import Graph

__all__ = ["load_nnef"]

_QUANT_FILE = "graph.quant"


def load_nnef(
    path: Path | str, *, dims: Mapping[str, int] | None = None, lenient: bool = False
) -> Graph:
    """Read an NNEF model: a folder, a tar, a gzipped tar, or a ``graph.nnef``.

    A model that :func:`save_nnef` wrote from a later stage comes back in that stage.

    Parameters
    ----------
    dims
        Values of the symbols in the model's shapes.
    lenient
        Whether legacy NNEF is taken: what 1.0 and drafts allowed and 1.0.5 does not.

    Raises
    ------
    UsageError
        If there is no such file, or a symbol has no value.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled.
    """
    archive = open_archive(Path(path))
    if FIXED_FILE in archive:
        return read_fixed(archive)
    where = archive.location(archive.graph_file)
    try:
        text = archive.read(archive.graph_file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"byte {error.start} is not UTF-8 text",
            remedy="is it a graph.nnef?",
            location=where,
        ) from None
    document = parse_document(text.removeprefix("\ufeff"), where.file)
    if _QUANT_FILE in archive:
        raise UnsupportedError(
            "models quantized by other tools cannot be read yet",
            remedy=f"load the float model, or remove {_QUANT_FILE} if the weights are floats",
            location=archive.location(_QUANT_FILE),
        )
    return lower(document, archive)
