"""The real-valued reference: every operator in vectorised NumPy float64."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

import numpy as np

from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node, Tensor, Trait, open_states
from nnef_hw.ir.batch import (
    join_batch,
    join_steps,
    sample_extents,
    samples_shape,
    sequences_shape,
    split_samples,
    split_sequences,
)
from nnef_hw.reference.batching import is_batchable
from nnef_hw.reference.real import (
    audio,
    extended_algebra,
    extended_elementwise,
    extended_indexing,
    resize,
    scan,
)
from nnef_hw.reference.real import (
    conv as float_conv,
)
from nnef_hw.reference.real import (
    elementwise as float_elementwise,
)
from nnef_hw.reference.real import (
    matmul as float_matmul,
)
from nnef_hw.reference.real import (
    places as float_places,
)
from nnef_hw.reference.real import (
    pool as float_pool,
)
from nnef_hw.reference.real import (
    reduce as float_reduce,
)
from nnef_hw.reference.real import (
    regions as float_regions,
)
from nnef_hw.reference.real import (
    shape as float_shape,
)
from nnef_hw.reference.real.program import RealProgram, Step, as_array
from nnef_hw.reference.real.quantize import fake_quantize
from nnef_hw.reference.real.registry import Array
from nnef_hw.reference.running.loops import run_schedule, schedule
from nnef_hw.reference.running.sequences import Sequences

__all__ = ["check_inputs", "evaluate_constant", "iterate_float", "run_float", "trace_float"]

CHUNK = 64
"""Samples computed at a time: activations of small networks then stay in the cache."""

_OPERATOR_MODULES = (
    audio,
    extended_algebra,
    extended_elementwise,
    extended_indexing,
    resize,
    float_conv,
    float_elementwise,
    float_matmul,
    float_places,
    float_pool,
    float_reduce,
    float_regions,
    float_shape,
    scan,
)


def run_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Compute a graph's outputs for a batch of real inputs.

    Samples of a graph with states are sequences, each of which begins with the initial states.

    Parameters
    ----------
    graph
        Graph of the float or canonical stage.
    inputs
        One array per graph input: [N, *shape]; or [N, ...] if its batch extent is 1; or one
        sample of exactly its shape. Of a graph with states, [T, ...] are the steps of one sequence
        and [N, T, ...] those of several.

    Returns
    -------
    dict
        One array per graph output. If an input is [N, *shape]: [N, *shape]. Else, if all have
        batch extent 1: [N, ...], the batch extent of the output being 1, and [N, *shape] of
        others. Else of exactly the output's shape. Of a graph with states, [T, ...] or [N, T, ...].

    Raises
    ------
    SampleError
        If an input is missing or has another shape.
    UnsupportedError
        If an operator cannot be evaluated.
    """
    return _arranged(graph, inputs, iterate_float(graph, inputs, names=graph.outputs))


def trace_float(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return every activation by name, inputs and states included; see :func:`run_float`."""
    return _arranged(graph, inputs, iterate_float(graph, inputs))


def iterate_float(
    graph: Graph,
    inputs: Mapping[str, Array],
    chunk: int = CHUNK,
    names: Collection[str] | None = None,
) -> Iterator[dict[str, Array]]:
    """Yield activations of a chunk of samples after the other; see :func:`run_float`.

    Those of batch extent 1 are [n, ...], the others [n, *shape]. Of a graph with states, the
    samples of a chunk are the steps of whole sequences, one sequence after the other. ``names`` are
    those of the activations that are wanted: all of them by default.
    """
    arrays = check_inputs(graph, inputs)
    is_batchable_step = bool(graph.inputs) and is_batchable(open_states(graph))
    compute = _compute(graph, batched=is_batchable_step)
    if graph.is_sequential:
        sequences = Sequences.of(graph, arrays)
        count, steps = sequences.extents
        initial = {name: x for name, x in _initial(graph).items() if graph.states[name].goes_on}
        taken = max(1, chunk // steps) if is_batchable_step else 1
        for start in range(0, count, taken):
            yield sequences.run(compute, initial, start, min(start + taken, count), names)
        return
    each = {name: graph.steps(name) for name in arrays}
    count = next((len(x) // each[name] for name, x in arrays.items()), 1)
    step = chunk if is_batchable_step else 1
    for start in range(0, count, step):
        end = start + step
        found = compute({n: x[start * each[n] : end * each[n]] for n, x in arrays.items()})
        yield found if names is None else {name: found[name] for name in names}


def _initial(graph: Graph) -> dict[str, Array]:
    """Return the values [1, ...] with which states begin."""
    return {
        name: join_batch(
            as_array(state.initial, graph.tensor(name).dtype)[None], state.initial.shape
        )
        for name, state in graph.states.items()
    }


def _compute(graph: Graph, *, batched: bool) -> Callable[[Mapping[str, Array]], dict[str, Array]]:
    """Return a function from inputs and states to activations [n, ...]; n is 1 unless batched."""
    given = (*graph.inputs, *graph.states)
    program = RealProgram(graph, given)
    run = _runner(graph, program, batched=batched)
    constant = {*graph.outputs, *(state.result for state in graph.states.values())}
    constant -= graph.dependents(given)

    def compute(arrays: Mapping[str, Array]) -> dict[str, Array]:
        batch = next((len(x) // graph.steps(name) for name, x in arrays.items()), 1)
        values = {
            name: _prepared(graph.tensor(name), x) if name in graph.inputs else x
            for name, x in arrays.items()
        }
        values = run(values, batch)
        for name in constant:
            x = program.constants[name]
            repeated = np.broadcast_to(x, (batch, *x.shape))
            values[name] = join_batch(repeated, x.shape)
        return values

    return compute


def _runner(
    graph: Graph, program: RealProgram, *, batched: bool
) -> Callable[[dict[str, Array], int], dict[str, Array]]:
    """Return a function from given activations to all others, for so many samples."""
    if any(node.has(Trait.ENTERS_LOOP) for node in graph.nodes):
        return _loop_runner(graph, program, batched=batched)
    if batched:
        return lambda values, batch: program.run(values, batch=batch)

    def run_one(values: dict[str, Array], batch: int) -> dict[str, Array]:
        del batch
        arguments = {name: x.reshape(graph.tensor(name).shape) for name, x in values.items()}
        return {
            name: join_batch(x[np.newaxis], graph.tensor(name).shape)
            for name, x in program.run(arguments).items()
        }

    return run_one


def _loop_runner(
    graph: Graph, program: RealProgram, *, batched: bool
) -> Callable[[dict[str, Array], int], dict[str, Array]]:
    """Return the same for a graph with loops; without batches node by node and step by step."""
    order, initial = schedule(graph), _initial(graph)
    nodes = {node.name: Step.of(graph, node) for node in graph.nodes}

    def compute(node: Node, values: Mapping[str, Array], count: int) -> dict[str, Array]:
        del count
        if node.name in program.constants:
            return {}
        known = {
            name: values[name] if name in values else program.constants[name]
            for name in node.inputs
        }
        of_steps = node.has(Trait.ENTERS_LOOP) or node.has(Trait.LEAVES_LOOP)
        varying = [name for name in known if name in values]
        samples = len(values[varying[0]])
        if batched or of_steps:
            return nodes[node.name].run(known, samples)
        found = []
        for n in range(samples):
            args = {
                name: x[n].reshape(graph.tensor(name).shape) if name in values else x
                for name, x in known.items()
            }
            found.append(nodes[node.name].run(args))
        return {
            name: join_batch(np.stack([x[name] for x in found]), graph.tensor(name).shape)
            for name in node.outputs
        }

    def run(values: dict[str, Array], batch: int) -> dict[str, Array]:
        return run_schedule(order, dict(values), initial, compute, batch)

    return run


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
        [N, ...] of inputs with batch extent 1, [N, *shape] of others; of a graph with states
        [T, ...] for one sequence, and [N, T, ...] for several. Numbers for ``scalar``
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
        samples = _split(graph, x, tensor.shape)
        if samples is None:
            expected = (sequences_shape if graph.is_sequential else samples_shape)(tensor.shape)
            raise SampleError(f"input {name!r} has shape {list(x.shape)}, not {expected}")
        if tensor.dtype != "scalar":
            samples = _whole(tensor, samples)
        arrays[name] = samples
    extents = {
        name: x.shape[: x.ndim - len(sample_extents(graph.tensor(name).shape))]
        for name, x in arrays.items()
    }
    for name in graph.repeated.keys() & extents.keys():
        extents[name] = (extents[name][0] // graph.repeated[name],)
    counts = {count[0] if len(count) == 1 else count for count in extents.values()}
    if len(counts) > 1:
        what = "sequences and steps" if graph.is_sequential else "samples"
        raise SampleError(f"inputs have different numbers of {what}: {sorted(counts, key=str)}")
    if any(0 in count for count in extents.values()):
        raise SampleError("there are no samples")
    return arrays


def _split(graph: Graph, x: Array, shape: tuple[int, ...]) -> Array | None:
    """Return samples [N, ...], steps of one sequence [T, ...] or of several [N, T, ...]."""
    steps = split_samples(x, shape)
    if steps is not None:
        return join_batch(steps, shape)
    sequences = split_sequences(x, shape) if graph.is_sequential else None
    return None if sequences is None else join_steps(sequences, shape)


def _whole(tensor: Tensor, samples: Array) -> Array:
    """Return samples of an integer or logical input in its type."""
    with np.errstate(invalid="ignore"):
        converted = as_array(samples, tensor.dtype)
    if not (converted == samples).all():
        odd = samples[converted != samples].flat[0]
        raise SampleError(f"input {tensor.name!r} takes {tensor.dtype} values, not {odd}")
    return converted


def _arranged(
    graph: Graph, inputs: Mapping[str, Array], found: Iterator[dict[str, Array]]
) -> dict[str, Array]:
    """Join chunks, in the form in which the inputs were given."""
    if graph.is_sequential:
        sequences = Sequences.of(graph, check_inputs(graph, inputs))
        joined = sequences.arrange(found)
        if not sequences.is_lone:
            return joined
    else:
        chunks = list(found)
        joined = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}
    shapes = {name: graph.tensor(name).shape for name in (*graph.inputs, *joined)}
    if any(np.ndim(inputs[name]) > len(shapes[name]) for name in graph.inputs):
        return {name: x.reshape(len(x), *shapes[name]) for name, x in joined.items()}
    if graph.inputs and all(shapes[name][:1] == (1,) for name in graph.inputs):
        return joined
    return {name: x.reshape(shapes[name]) for name, x in joined.items()}
