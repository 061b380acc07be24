"""Read a TensorFlow Lite model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nnef_hw.frontend.tflite import operators
from nnef_hw.frontend.tflite.file.flatbuffer import read_model
from nnef_hw.frontend.tflite.interface import begin_at, bind_inputs, cut_at
from nnef_hw.frontend.tflite.lower import lower
from nnef_hw.frontend.tflite.lowering.calls import identifier
from nnef_hw.frontend.tflite.lowering.integer_inputs import bind_shapes
from nnef_hw.ir import Graph

__all__ = ["UNNAMED", "load_tflite"]

UNNAMED = "main"
"""Name that converters give every graph; the name of its file tells more."""

_OPERATOR_MODULES = operators


def load_tflite(
    path: Path | str,
    *,
    dims: Mapping[str, int] | None = None,
    lenient: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
) -> Graph:
    """Read a TensorFlow Lite model.

    Parameters
    ----------
    dims
        Extents of inputs that the file leaves open, by input and dimension: ``x.0``. They are 1 if
        nothing is said.
    lenient
        Has no effect for TensorFlow Lite.
    inputs
        Values that the host gives in place of what computes them, by their names in the file.
    outputs
        Values that the graph returns in place of the file's results, by their names.
    bind
        Inputs that are constants, filled with one number each.

    Raises
    ------
    UsageError
        If there is no such file, open extent, input or value, or the ``tflite`` package is
        missing.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    model = read_model(Path(path))
    if inputs:
        model = begin_at(model, inputs)
    if outputs:
        model = cut_at(model, outputs)
    graph = lower(bind_shapes(bind_inputs(model, bind or {})), dims or {})
    return replace(graph, name=identifier(Path(path).stem)) if graph.name == UNNAMED else graph
