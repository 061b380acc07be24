"""The real-valued reference: every operator in vectorised NumPy float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.ir.batch import join_batch, samples_shape, split_samples
from nnef_hw.reference import (
    extended_algebra,
    extended_elementwise,
    extended_indexing,
    extended_resize,
    float_conv,
    float_elementwise,
    float_matmul,
    float_pool,
    float_reduce,
    float_regions,
    float_resample,
    float_shape,
    scan,
)
from nnef_hw.reference.batching import dependents, is_batchable
from nnef_hw.reference.float_quantize import fake_quantize
from nnef_hw.reference.program import Program, Step, as_array
from nnef_hw.reference.registry import Array

__all__ = ["check_inputs", "evaluate_constant", "iterate_float", "run_float", "trace_float"]

CHUNK = 64
"""Samples computed at a time: activations of small networks then stay in the cache."""

_OPERATOR_MODULES = (
    extended_algebra,
    extended_elementwise,
    extended_indexing,
    extended_resize,
    float_conv,
    float_elementwise,
    float_matmul,
    float_pool,
    float_reduce,
    float_regions,
    float_resample,
    float_shape,
    scan,
)


def run_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute a graph's outputs for a batch of real inputs.

    States begin with their initial value and are kept from sample to sample.

    Parameters
    ----------
    graph
        Graph of the float or canonical stage.
    inputs
        One array per graph input: [N, *shape]; or [N, ...] if its batch extent is 1; or one
        sample of exactly its shape.

    Returns
    -------
    dict
        One array per graph output. If an input is [N, *shape]: [N, *shape]. Else, if all have
        batch extent 1: [N, ...], the batch extent of the output being 1, and [N, *shape] of
        others. Else of exactly the output's shape.

    Raises
    ------
    SampleError
        If an input is missing or has another shape.
    UnsupportedError
        If an operator cannot be evaluated.
    """
    chunks = [
        {name: values[name] for name in graph.outputs} for values in iterate_float(graph, inputs)
    ]
    return _arranged(graph, inputs, chunks)


def trace_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return every activation by name, graph inputs included; see :func:`run_float`."""
    return _arranged(graph, inputs, list(iterate_float(graph, inputs)))


def iterate_float(
    graph: Graph, inputs: Mapping[str, Array], chunk: int = CHUNK
) -> Iterator[dict[str, Array]]:
    """Yield every activation of a chunk of samples after the other; see :func:`run_float`.

    Those of batch extent 1 are [n, ...], the others [n, *shape].
    """
    arrays = check_inputs(graph, inputs)
    count = next((len(x) for x in arrays.values()), 1)
    program = Program(graph, (*graph.inputs, *graph.states))
    constant = set(graph.outputs) - dependents(graph, (*graph.inputs, *graph.states))
    batchable = bool(graph.inputs) and is_batchable(graph)
    states = {
        name: as_array(state.initial, graph.tensor(name).dtype)
        for name, state in graph.states.items()
    }
    step = chunk if batchable else 1
    for start in range(0, count, step):
        values = {
            name: _prepared(graph.tensor(name), x[start : start + step])
            for name, x in arrays.items()
        }
        batch = min(step, count - start)
        if batchable:
            values = program.run(values, batch=batch)
        else:
            arguments = {name: x.reshape(graph.tensor(name).shape) for name, x in values.items()}
            found = program.run({**arguments, **states})
            computed = {**program.constants, **found}
            states = {name: computed[state.result] for name, state in graph.states.items()}
            values = {
                name: join_batch(x[np.newaxis], graph.tensor(name).shape)
                for name, x in found.items()
            }
        for name in constant:
            x = program.constants[name]
            repeated = np.broadcast_to(x, (batch, *x.shape))
            values[name] = join_batch(repeated, x.shape)
        yield values


def _prepared(tensor: Tensor, x: Array) -> Array:
    """Return samples of an input in its computation type, quantized like the input."""
    values = as_array(x, tensor.dtype)
    return fake_quantize(values, tensor.quant) if tensor.quant else values


def evaluate_constant(graph: Graph, node: Node) -> tuple[Array, ...]:
    """Compute a node all of whose arguments are constants."""
    arguments = [graph.tensor(name) for name in node.inputs]
    values = {x.name: as_array(x.data, x.dtype) for x in arguments}
    return tuple(Step.of(graph, node).run(values).values())


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the samples of graph inputs in declaration order.

    Returns
    -------
    dict
        [N, ...] of inputs with batch extent 1, [N, *shape] of others. Numbers for ``scalar``
        inputs have the type in which they were given: a copy of all may be too large.

    Raises
    ------
    SampleError
        If one is missing, or its shape or its numbers do not fit.
    """
    arrays: dict[str, Array] = {}
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if name not in inputs:
            raise SampleError(
                f"no samples for input {name!r}", remedy=f"the inputs are {', '.join(graph.inputs)}"
            )
        x = np.asarray(inputs[name])
        samples = split_samples(x, tensor.shape)
        if samples is None:
            expected = samples_shape(tensor.shape)
            raise SampleError(f"input {name!r} has shape {list(x.shape)}, not {expected}")
        if tensor.dtype != "scalar":
            samples = _whole(tensor, samples)
        arrays[name] = join_batch(samples, tensor.shape)
    counts = {len(x) for x in arrays.values()}
    if len(counts) > 1:
        raise SampleError(f"inputs have different numbers of samples: {sorted(counts)}")
    if counts == {0}:
        raise SampleError("there are no samples")
    return arrays


def _whole(tensor: Tensor, samples: Array) -> Array:
    """Return samples of an integer or logical input in its type."""
    with np.errstate(invalid="ignore"):
        converted = as_array(samples, tensor.dtype)
    if not (converted == samples).all():
        odd = samples[converted != samples].flat[0]
        raise SampleError(f"input {tensor.name!r} takes {tensor.dtype} values, not {odd}")
    return converted


def _arranged(
    graph: Graph, inputs: Mapping[str, Array], chunks: list[dict[str, Array]]
) -> dict[str, Array]:
    """Join chunks, in the form in which the inputs were given."""
    shapes = {name: graph.tensor(name).shape for name in (*graph.inputs, *chunks[0])}
    joined = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    if any(np.ndim(inputs[name]) > len(shapes[name]) for name in graph.inputs):
        return {name: x.reshape(len(x), *shapes[name]) for name, x in joined.items()}
    if graph.inputs and all(shapes[name][:1] == (1,) for name in graph.inputs):
        return joined
    return {name: x.reshape(shapes[name]) for name, x in joined.items()}
