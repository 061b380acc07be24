"""The real-valued reference: every operator in vectorised NumPy float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node
from nnef_hw.reference import float_elementwise, float_shape, float_windows
from nnef_hw.reference.registry import Array, Call, evaluate

__all__ = ["evaluate_constant", "iterate_float", "run_float", "trace_float"]

CHUNK = 64
"""Samples computed at a time: activations of small networks then stay in the cache."""

_BATCH_AXES = {
    "argmax_reduce", "argmin_reduce", "concat", "gather", "l1_normalization", "l2_normalization",
    "max_reduce", "mean_reduce", "min_reduce", "moments", "slice", "softmax", "split", "squeeze",
    "stack", "sum_reduce", "any_reduce", "all_reduce", "unsqueeze", "unstack",
}  # fmt: skip
_OPERATOR_MODULES = (float_elementwise, float_shape, float_windows)


def run_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute a graph's outputs for a batch of real inputs.

    Parameters
    ----------
    graph
        Of the float or canonical stage; its static batch extent is 1.
    inputs
        One array [N, ...] per graph input.

    Returns
    -------
    dict
        One array [N, ...] per graph output.

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
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in graph.outputs}


def trace_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return every activation [N, ...] by name, graph inputs included; see :func:`run_float`."""
    chunks = list(iterate_float(graph, inputs))
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def iterate_float(
    graph: Graph, inputs: Mapping[str, Array], chunk: int = CHUNK
) -> Iterator[dict[str, Array]]:
    """Yield every activation of a chunk of samples after the other; see :func:`run_float`."""
    arrays = check_inputs(graph, inputs)
    count = next((len(x) for x in arrays.values()), 1)
    fixed_batch = any(graph.tensor(name).shape[:1] not in {(1,), ()} for name in graph.inputs)
    varying = _varying(graph)
    step = count if fixed_batch else chunk if _is_batchable(graph, varying) else 1
    constants = {
        name: _as_array(tensor.data, tensor.dtype)
        for name, tensor in graph.tensors.items()
        if tensor.data is not None
    }
    for node in graph.nodes:
        if varying.isdisjoint(node.outputs):
            constants.update(
                zip(node.outputs, evaluate(_call(graph, node, constants, 1)), strict=True)
            )
    for start in range(0, count, step):
        values = {name: x[start : start + step] for name, x in arrays.items()}
        batch = 1 if fixed_batch else next((len(x) for x in values.values()), 1)
        for node in graph.nodes:
            if not varying.isdisjoint(node.outputs):
                results = evaluate(_call(graph, node, {**constants, **values}, batch))
                values.update(zip(node.outputs, results, strict=True))
        for name in set(graph.outputs) - varying:
            values[name] = np.repeat(constants[name], batch, axis=0)
        yield values


def evaluate_constant(graph: Graph, node: Node) -> tuple[Array, ...]:
    """Compute a node all of whose arguments are constants."""
    values = {
        name: _as_array(graph.constant(name), graph.tensor(name).dtype) for name in node.inputs
    }
    return evaluate(_call(graph, node, values, 1))


def check_inputs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the graph's inputs as arrays in declaration order.

    Raises
    ------
    SampleError
        If one is missing, or its shape is not N + the model's shape without its batch.
    """
    arrays: dict[str, Array] = {}
    counts = set()
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if name not in inputs:
            raise SampleError(
                f"no samples for input {name!r}", remedy=f"the inputs are {', '.join(graph.inputs)}"
            )
        x = np.asarray(inputs[name])
        if x.ndim != max(len(tensor.shape), 1) or x.shape[1:] != tensor.shape[1:]:
            expected = ", ".join(["N", *map(str, tensor.shape[1:])])
            raise SampleError(f"input {name!r} has shape {list(x.shape)}, not [{expected}]")
        if tensor.shape and tensor.shape[0] != 1 and len(x) != tensor.shape[0]:
            raise SampleError(f"input {name!r} takes a batch of {tensor.shape[0]}, not {len(x)}")
        counts.add(len(x))
        arrays[name] = x.astype(np.float64) if tensor.dtype == "scalar" else x
    if len(counts) > 1:
        raise SampleError(f"inputs have different numbers of samples: {sorted(counts)}")
    if counts == {0}:
        raise SampleError("there are no samples")
    return arrays


def _as_array(data: Array | None, dtype: str) -> Array:
    assert data is not None
    return data.astype(np.float64) if dtype == "scalar" else data


def _call(graph: Graph, node: Node, values: Mapping[str, Array], batch: int) -> Call:
    return Call(
        node=node,
        args=tuple(values[name] for name in node.inputs),
        shapes=tuple(graph.tensor(name).shape for name in node.outputs),
        batch=batch,
    )


def _varying(graph: Graph) -> set[str]:
    """Names of the tensors that depend on an input."""
    varying = set(graph.inputs)
    for node in graph.nodes:
        if not varying.isdisjoint(node.inputs):
            varying.update(node.outputs)
    return varying


def _is_batchable(graph: Graph, varying: set[str]) -> bool:
    """Whether axis 0 of every activation is nothing but the batch."""
    if any(graph.tensor(name).shape[:1] != (1,) for name in varying):
        return False
    return not any(_touches_batch(graph, node, varying) for node in graph.nodes)


def _touches_batch(graph: Graph, node: Node, varying: set[str]) -> bool:
    if varying.isdisjoint(node.inputs):
        return False
    if node.op in _BATCH_AXES:
        mixed = node.op in {"concat", "stack", "gather"} and not varying.issuperset(node.inputs)
        return mixed or 0 in node.attrs.get("axes", [node.attrs.get("axis", 1)])
    if node.op == "transpose":
        return list(node.attrs["axes"])[:1] not in ([], [0])
    if node.op == "pad":
        return tuple(node.attrs["padding"][0]) != (0, 0)
    if node.op == "tile":
        return bool(node.attrs["repeats"][0] != 1)
    if node.op in {"max_pool", "avg_pool", "box"}:
        return bool(node.attrs["size"][0] != 1)
    if node.op in {"linear", "conv", "deconv"}:
        return not varying.isdisjoint(node.inputs[1:])
    if node.op == "matmul" and len(graph.tensor(node.inputs[0]).shape) < 3:
        a, b = node.inputs
        return b in varying or bool(node.attrs.get("transposeA", False)) or a not in varying
    return False
