"""Read a TensorFlow Lite model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnef_hw.frontend.tflite import operators
from nnef_hw.frontend.tflite.flatbuffer import read_model
from nnef_hw.frontend.tflite.lower import lower
from nnef_hw.ir import Graph

__all__ = ["load_tflite"]

_OPERATOR_MODULES = operators


def load_tflite(
    path: Path | str, *, dims: Mapping[str, int] | None = None, lenient: bool = False
) -> Graph:
    """Read a TensorFlow Lite model.

    Parameters
    ----------
    dims
        Extents of inputs that the file leaves open, by input and dimension: ``x.0``. They are 1 if
        nothing is said.
    lenient
        Has no effect for TensorFlow Lite.

    Raises
    ------
    UsageError
        If there is no such file, there is no such open extent, or the ``tflite`` package is
        missing.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    return lower(read_model(Path(path)), dims or {})
