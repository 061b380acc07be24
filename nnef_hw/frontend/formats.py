"""The file formats that models are read from: a row for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nnef_hw.frontend.building.open_shapes import OpenShapes
from nnef_hw.frontend.cuts import load_nnef_part
from nnef_hw.frontend.foreign import refuse_foreign
from nnef_hw.frontend.nnef import detect_dialect, load_nnef, nnef_shapes, save_nnef
from nnef_hw.frontend.onnx import load_onnx, onnx_shapes
from nnef_hw.frontend.tflite import load_tflite
from nnef_hw.ir import Graph

__all__ = ["FORMATS", "Format", "find_format"]


class _Load(Protocol):
    def __call__(
        self, path: Path | str, *, dims: Mapping[str, int] | None = None, lenient: bool = False
    ) -> Graph:
        """Read a model."""


class _LoadPart(Protocol):
    def __call__(
        self,
        path: Path | str,
        *,
        dims: Mapping[str, int] | None = None,
        lenient: bool = False,
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        bind: Mapping[str, float] | None = None,
    ) -> Graph:
        """Read a part of a model."""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    Parameters
    ----------
    name
        Name of the format, as users know it.
    suffix
        Suffix of its files; empty for the format whose files may have any name.
    load
        Reads a model: path, values of symbols, whether legacy files are accepted.
    dialect
        Returns the dialect of a file: path, whether legacy files are accepted.
    save
        Writes a graph; None if models are not written in this format.
    load_part
        Reads a model between some of its values, or with inputs that are constants.
    shapes
        Returns the declared shapes of a file's inputs; None if no cache of this format grows.
    rounding
        How its float quantization differs from the reference's, for users; empty if it does not.
    """

    name: str
    suffix: str
    load: _Load
    dialect: Callable[[Path, bool], str]
    save: Callable[[Graph, Path | str], None] | None
    load_part: _LoadPart
    shapes: Callable[[Path | str], OpenShapes] | None = None
    rounding: str = ""


FORMATS = (
    Format(
        name="ONNX", suffix=".onnx", load=load_onnx, dialect=lambda path, lenient: "ONNX",
        save=None, rounding="exact halves to even, as ONNX says; in fixed point up",
        load_part=load_onnx, shapes=lambda path: OpenShapes(onnx_shapes(path)),
    ),
    Format(
        name="TensorFlow Lite", suffix=".tflite", load=load_tflite,
        dialect=lambda path, lenient: "TensorFlow Lite", save=None,
        rounding="in fixed point as TensorFlow Lite's reference kernels; real numbers, halves up",
        load_part=load_tflite,
    ),
    Format(
        name="NNEF", suffix="", load=load_nnef,
        dialect=lambda path, lenient: detect_dialect(path, lenient=lenient),
        save=save_nnef, load_part=load_nnef_part, shapes=nnef_shapes,
    ),
)  # fmt: skip


def find_format(path: Path | str) -> Format:
    """Return the format of a file, by its name.

    Raises
    ------
    UnsupportedError
        If the name is that of a model of a known other format.
    """
    path = Path(path)
    refuse_foreign(path)
    return next(row for row in FORMATS if row.suffix in {"", path.suffix})
