"""The fixed-point reference: the integers that the hardware computes, bit for bit."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.places import check_places
from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node
from nnef_hw.ir.batch import join_batch
from nnef_hw.ir.input_readers import index_count
from nnef_hw.ir.layers import Codes, format_of, layers_of
from nnef_hw.reference.float import check_inputs
from nnef_hw.reference.running.loops import run_schedule, schedule
from nnef_hw.reference.running.sequences import Sequences
from nnef_hw.reference.visible import EVERYTHING, Interval, hidden_infinities

__all__ = [
    "dequantize_outputs",
    "iterate_fixed",
    "quantize_inputs",
    "run_fixed",
    "trace_fixed",
]

_log = logging.getLogger(__name__)

SATURATION_LIMIT = 0.05
"""Share of saturated input values that is logged."""

CHUNK = 16
"""Samples computed at a time: activations of small networks then stay in the cache."""


def run_fixed(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Codes]:
    """Compute a fixed graph's output codes for a batch of input codes.

    Parameters
    ----------
    graph
        Graph of the fixed stage.
    inputs
        Integer codes [N, ...] for every graph input, see :func:`quantize_inputs`. Of a graph with
        states, [T, ...] are the steps of one sequence and [N, T, ...] those of several; each
        begins with the initial states.

    Raises
    ------
    SampleError
        If an input is missing, of another shape, not of integers, or not within its format.
    """
    return _arranged(graph, inputs, iterate_fixed(graph, inputs, graph.outputs))


def trace_fixed(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Codes]:
    """Return the codes of every activation by name, inputs and states included."""
    return _arranged(graph, inputs, iterate_fixed(graph, inputs))


def _arranged(
    graph: Graph, inputs: Mapping[str, Array], found: Iterator[dict[str, Codes]]
) -> dict[str, Codes]:
    """Join chunks, in the form in which the inputs were given."""
    if graph.is_sequential:
        return Sequences.of(graph, check_inputs(graph, inputs)).arrange(found)
    chunks = list(found)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def quantize_inputs(
    graph: Graph, inputs: Mapping[str, Array], *, warns: bool = True
) -> dict[str, Codes]:
    """Codes of real inputs in the formats of a fixed graph's inputs.

    Inputs far outside of a format's range saturate; many of them are worth a warning in the log,
    unless they are so far outside that nothing in the network could tell, or ``warns`` is false.
    """
    codes: dict[str, Codes] = {}
    for name, x in check_inputs(graph, inputs).items():
        tensor = graph.tensor(name)
        qtype, scales = format_of(tensor), graph.features.get(name)
        if count := index_count(graph, name):
            check_places(name, x, count)
        step: object = qtype.scale
        lo, hi = qtype.dequantize([qtype.lo, qtype.hi]).tolist()
        if scales is None:
            codes[name] = qtype.quantize(x)
            span = f"{lo:.4g}..{hi:.4g}, the range"
        else:
            codes[name] = scales.quantize(x, tensor.shape, qtype)
            step, span = scales.arrays(tensor.shape)[0], "the ranges of their features"
        real = dequantize_outputs(graph, {name: codes[name]})[name]
        is_outside = np.abs(real - x) > step
        if not warns or is_outside.mean() <= SATURATION_LIMIT:
            continue
        shown = EVERYTHING
        if scales is None:
            shown = hidden_infinities(graph).get(name, EVERYTHING).with_all(Interval(lo, hi))
        outside = float((is_outside & (x >= shown.lo) & (x <= shown.hi)).mean())
        if outside > SATURATION_LIMIT:
            _log.warning(
                "input %r: %.0f%% of the values are outside of %s seen in calibration; calibrate "
                "with samples in random order",
                name,
                100 * outside,
                span,
            )
    return codes


def dequantize_outputs(graph: Graph, codes: Mapping[str, Array]) -> dict[str, NDArray[np.float64]]:
    """Real numbers of the codes of a fixed graph's activations, such as its outputs."""
    return {
        name: graph.features[name].dequantize(q, graph.tensor(name).shape)
        if name in graph.features
        else format_of(graph.tensor(name)).dequantize(q)
        for name, q in codes.items()
    }


def iterate_fixed(
    graph: Graph, inputs: Mapping[str, Array], names: Collection[str] | None = None
) -> Iterator[dict[str, Codes]]:
    """Yield activations' codes, a few samples at a time; see :func:`run_fixed`.

    Of a graph with states, these are the steps of whole sequences, one sequence after the other.
    ``names`` are those of the activations that are wanted: all of them by default.
    """
    arrays = {name: _check_codes(graph, name, np.asarray(x)) for name, x in inputs.items()}
    arrays = {name: x.astype(np.int64) for name, x in check_inputs(graph, arrays).items()}
    sequences = Sequences.of(graph, arrays) if graph.is_sequential else None
    count = sequences.extents[0] if sequences else len(next(iter(arrays.values())))
    initial = {
        name: join_batch(state.initial[np.newaxis], state.initial.shape)
        for name, state in graph.states.items()
    }
    lasting = {name: initial[name] for name, state in graph.states.items() if state.goes_on}

    order, layers = schedule(graph), layers_of(graph)

    def compute_one(node: Node, values: Mapping[str, Codes], count: int) -> dict[str, Codes]:
        del count
        return {node.name: layers[node.name].run(values)}

    def step(values: dict[str, Codes]) -> dict[str, Codes]:
        return run_schedule(order, values, initial, compute_one, _samples(values))

    def compute(start: int) -> dict[str, Codes]:
        if sequences:
            return sequences.run(step, lasting, start, min(start + CHUNK, count), names)
        found = step({name: x[start : start + CHUNK] for name, x in arrays.items()})
        return found if names is None else {name: found[name] for name in names}

    workers = os.cpu_count() or 1
    starts = range(0, count, CHUNK)
    with ThreadPoolExecutor(workers) as pool:
        # no more at a time than there are workers: whoever takes the results may be slower
        for first in range(0, len(starts), workers):
            yield from pool.map(compute, starts[first : first + workers])


def _samples(values: Mapping[str, Codes]) -> int:
    return len(next(iter(values.values()), (0,)))


def _check_codes(graph: Graph, name: str, codes: Array) -> Array:
    if name not in graph.inputs:
        return codes
    qtype = format_of(graph.tensor(name))
    if not np.issubdtype(codes.dtype, np.integer):
        raise SampleError(
            f"input {name!r} of the fixed model takes integer codes, not {codes.dtype}",
            remedy="quantize the inputs first",
        )
    if codes.size and (codes.min() < qtype.lo or codes.max() > qtype.hi):
        raise SampleError(
            f"input {name!r} takes codes {qtype.lo}..{qtype.hi}, "
            f"not {int(codes.min())}..{int(codes.max())}"
        )
    return codes
