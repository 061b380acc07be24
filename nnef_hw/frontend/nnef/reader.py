"""Read a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnef_hw.errors import ErrorGroup, ModelError, NnefHwError, UsageError, raise_all
from nnef_hw.frontend.building.open_shapes import OpenShapes
from nnef_hw.frontend.nnef.archive.archive import Archive, open_archive
from nnef_hw.frontend.nnef.archive.integer_bias import scale_integer_biases
from nnef_hw.frontend.nnef.evaluation.quant_file import QuantizationLine, read_quantization
from nnef_hw.frontend.nnef.evaluation.rules import LENIENT, STRICT, Rules
from nnef_hw.frontend.nnef.evaluation.variable_data import NoData, VariableData
from nnef_hw.frontend.nnef.evaluation.variables import VariableReader
from nnef_hw.frontend.nnef.language.parser import parse_document
from nnef_hw.frontend.nnef.language.syntax import Document
from nnef_hw.frontend.nnef.lower import lower
from nnef_hw.frontend.nnef.tract import open_shapes, rendered, tract_rules
from nnef_hw.frontend.nnef.writing.fixed import FIXED_FILE, read_fixed
from nnef_hw.ir import Graph

__all__ = ["detect_dialect", "load_nnef", "nnef_shapes"]


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
        Whether to accept legacy NNEF, which 1.0 and its drafts allowed but 1.0.5 does not.

    Raises
    ------
    UsageError
        If there is no such file, or a symbol has no value.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    archive = open_archive(Path(path))
    if FIXED_FILE in archive:
        if dims:
            raise UsageError(
                f"the quantized model has no symbol {next(iter(dims))!r}", remedy="leave out --dim"
            )
        return read_fixed(archive)
    document = _read_document(archive, lenient=lenient)
    rules = _rules_of(document, lenient=lenient)
    errors: list[NnefHwError] = []
    lines: Mapping[str, QuantizationLine] = {}
    data: VariableData = NoData()
    try:
        lines = read_quantization(archive, tract=rules.tract_data)
        data = VariableReader(archive, lines, tract=rules.tract_data)
    except NnefHwError as error:
        errors.append(error)
    graph = None
    try:
        graph = lower(document, data, rules=rules, dims=dims, lines=lines)
    except NnefHwError as error:
        errors.append(error)
    raise_all([part for error in errors for part in _parts(error)])
    assert graph is not None
    return scale_integer_biases(graph) if rules.tract_data else graph


def nnef_shapes(path: Path | str) -> OpenShapes:
    """Return the declared shapes of a model's inputs and caches, by their names in the file.

    Raises
    ------
    UsageError
        If there is no such file, or the model is quantized.
    ModelError, ErrorGroup
        If the model cannot be read far enough to tell.
    """
    archive = open_archive(Path(path))
    if FIXED_FILE in archive:
        raise UsageError(
            f"{path}: the caches of a quantized model have their length already",
            remedy="give --context N when it is quantized",
        )
    return open_shapes(_read_document(archive))


def detect_dialect(path: Path | str, *, lenient: bool = False) -> str:
    """Return the name of the dialect a model is written in.

    Parameters
    ----------
    lenient
        Whether to accept legacy NNEF, see :func:`load_nnef`.

    Raises
    ------
    UsageError, ModelError, ErrorGroup
        If the model cannot be read far enough to tell.
    """
    document = _read_document(open_archive(Path(path)), lenient=lenient)
    return _rules_of(document, lenient=lenient).name


def _read_document(archive: Archive, *, lenient: bool = False) -> Document:
    where = archive.location(archive.graph_file)
    try:
        text = archive.read(archive.graph_file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"byte {error.start} is not UTF-8 text",
            remedy="is it a graph.nnef?",
            location=where,
        ) from None
    text = rendered(text.removeprefix("\ufeff"), archive, where)
    return parse_document(text, where.file, lenient=lenient)


def _rules_of(document: Document, *, lenient: bool = False) -> Rules:
    return tract_rules(document) or (LENIENT if lenient else STRICT)


def _parts(error: NnefHwError) -> tuple[NnefHwError, ...]:
    return error.errors if isinstance(error, ErrorGroup) else (error,)
