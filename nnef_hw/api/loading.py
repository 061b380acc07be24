"""Models of the API, from files and from objects of other libraries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from nnef_hw.api.model import Model
from nnef_hw.api.sources import as_file
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load as load_file
from nnef_hw.frontend.front import Front
from nnef_hw.frontend.named_states import FixedContext, NamedStates
from nnef_hw.ir import Graph

__all__ = ["load"]

UNNAMED = {"main_graph", "model"}
"""What exporters call a network that has no name."""


def load(
    source: object,
    *,
    example: object = None,
    dims: Mapping[str, int] | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    bind: Mapping[str, float] | None = None,
    states: NamedStates | None = None,
    context: int | None = None,
    front: Front | None = None,
    lenient: bool = False,
) -> Model:
    """Read a model.

    Parameters
    ----------
    source
        A file or folder (NNEF, ONNX, TensorFlow Lite), the bytes of such a file, an
        ``onnx.ModelProto``, a ``torch.nn.Module`` with an ``example``, or a Keras model.
    example
        Inputs with which a module of PyTorch can be run: a tensor or array, or a tuple. Its batch
        extent becomes the model's, so it is usually 1.
    dims, inputs, outputs, bind, states, lenient
        See :func:`nnef_hw.frontend.load`.
    context
        Rows of caches that grow by a row in each step; ``states`` may name them.
    front
        What computes its input of samples of audio, see :mod:`nnef_hw.features`.

    Raises
    ------
    UsageError
        If there is no such file or value, or the source is no model.
    ModelError, UnsupportedError, ErrorGroup
        If the model is invalid or cannot be handled; every problem is listed.
    """
    if context is not None:
        if isinstance(states, str | FixedContext):
            raise UsageError(
                f"a context of {context} is for caches, which states={states!r} does not name",
                remedy="omit states, or name pairs",
            )
        states = FixedContext(context, states or {})

    def read(path: Path) -> Graph:
        return load_file(
            path,
            dims=dims,
            lenient=lenient,
            inputs=inputs,
            outputs=outputs,
            bind=bind,
            states=states,
            front=front,
        )

    if isinstance(source, str | Path):
        return Model(read(Path(source)))
    graph = as_file(source, example, read)
    if graph.name in UNNAMED:
        graph = replace(graph, name=type(source).__name__)
    return Model(graph)
