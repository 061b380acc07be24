"""Read an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nnef_hw.errors import NnefHwError, raise_all
from nnef_hw.frontend.onnx import operators
from nnef_hw.frontend.onnx.checks import check_structure
from nnef_hw.frontend.onnx.function_bodies import FunctionBodies
from nnef_hw.frontend.onnx.lower import lower
from nnef_hw.frontend.onnx.protobuf import read_model
from nnef_hw.ir import Graph

__all__ = ["load_onnx"]

_OPERATOR_MODULES = operators


def load_onnx(
    path: Path | str, *, dims: Mapping[str, int] | None = None, lenient: bool = False
) -> Graph:
    """Read an ONNX model.

    Parameters
    ----------
    dims
        Values of the symbols in the shapes of inputs. One that is nothing but the first extent of
        inputs is the batch, which is 1 if it is not given.
    lenient
        Has no effect for ONNX.

    Raises
    ------
    UsageError
        If there is no such file, a symbol has no value, or the ``onnx`` package is missing.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    errors: list[NnefHwError] = []
    model, decoder = read_model(Path(path), errors)
    check_structure(model, errors)
    raise_all(errors)
    return lower(model, FunctionBodies(decoder), dims or {}, errors)
