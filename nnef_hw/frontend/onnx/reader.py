"""Read an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nnef_hw.errors import NnefHwError, raise_all
from nnef_hw.frontend.building.builder import identifier
from nnef_hw.frontend.onnx import operators, quantization
from nnef_hw.frontend.onnx.file.checks import check_structure
from nnef_hw.frontend.onnx.file.symbols import Symbols, declared_shapes
from nnef_hw.frontend.onnx.lowering.function_bodies import FunctionBodies
from nnef_hw.frontend.onnx.lowering.interface import begin_at, bind_inputs, cut_at
from nnef_hw.frontend.onnx.lowering.lower import lower
from nnef_hw.frontend.onnx.lowering.protobuf import read_model
from nnef_hw.frontend.onnx.lowering.refused import grouped
from nnef_hw.ir import Graph

__all__ = ["load_onnx", "onnx_shapes"]

UNNAMED = {"main_graph", "torch_jit", "torch_jit_export"}
"""What PyTorch's exporters call every network; the file's name says more."""

_OPERATOR_MODULES = operators, quantization


def load_onnx(
    path: Path | str,
    *,
    dims: Mapping[str, int] | None = None,
    lenient: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
) -> Graph:
    """Read an ONNX model.

    Parameters
    ----------
    dims
        Values of the symbols in the shapes of inputs. One that is nothing but the first extent of
        inputs is the batch, which is 1 if it is not given.
    lenient
        Has no effect for ONNX.
    inputs
        Values that the host gives in place of what computes them, by their names in the file.
    outputs
        Values that the graph returns in place of its own results, by their names in the file.
    bind
        Inputs that are constants, filled with one number each.

    Raises
    ------
    UsageError
        If there is no such file, input or value, a symbol has no value, or the ``onnx`` package is
        missing.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    errors: list[NnefHwError] = []
    model, decoder = read_model(Path(path), errors)
    check_structure(model, errors)
    raise_all(grouped(errors))
    if inputs:
        model = begin_at(model, inputs)
    symbols = Symbols(model, dims or {})
    if bind:
        model = bind_inputs(model, bind, symbols)
    if outputs:
        model = cut_at(model, outputs)
    graph = lower(model, FunctionBodies(decoder), symbols, errors)
    return replace(graph, name=identifier(Path(path).stem)) if graph.name in UNNAMED else graph


def onnx_shapes(path: Path | str) -> dict[str, tuple[int | str, ...]]:
    """Return the declared shapes of a model's inputs, by their names in the file.

    Raises
    ------
    UsageError
        If there is no such file, or the ``onnx`` package is missing.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid.
    """
    errors: list[NnefHwError] = []
    model, _ = read_model(Path(path), errors)
    raise_all(grouped(errors))
    return declared_shapes(model)
