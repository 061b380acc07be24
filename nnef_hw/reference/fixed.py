"""The fixed-point reference: the integers that the hardware computes, bit for bit."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.images.rearrange import (
    begin_steps,
    depth_to_space,
    join_steps,
    last_step,
    repeat_pixels,
    reverse_steps,
    split_steps,
    take_slice,
)
from nnef_hw.arithmetic.images.windows import convolve, gather_taps, pad_border
from nnef_hw.arithmetic.interpolation import interpolate_codes
from nnef_hw.arithmetic.numerics import (
    AddRequant,
    QType,
    Requant,
    argmax_codes,
    argmin_codes,
    fold_zero_point,
    softmax_codes,
)
from nnef_hw.arithmetic.tables import look_up
from nnef_hw.arithmetic.tflite.division import TfliteQuotient
from nnef_hw.arithmetic.tflite.numerics import (
    TFLITE_SOFTMAX_QTYPE,
    TfliteAddRequant,
    TfliteAverage,
    TfliteRequant,
    tflite_softmax_codes,
)
from nnef_hw.errors import SampleError
from nnef_hw.ir import Graph, Node, Tensor, Trait
from nnef_hw.ir.batch import join_batch, sample_extents
from nnef_hw.ir.operators import (
    ConvAttributes,
    FactorAttributes,
    InterpolateAttributes,
    PadAttributes,
    PerOperator,
    PoolAttributes,
    SliceAttributes,
)
from nnef_hw.reference.float import check_inputs
from nnef_hw.reference.running.loops import run_schedule, schedule
from nnef_hw.reference.running.sequences import Sequences
from nnef_hw.reference.visible import EVERYTHING, Interval, hidden_infinities

__all__ = [
    "compute_node",
    "dequantize_outputs",
    "iterate_fixed",
    "qtype_of",
    "quantize_inputs",
    "run_fixed",
    "trace_fixed",
]

_log = logging.getLogger(__name__)

Codes = NDArray[np.int64]

SATURATION_LIMIT = 0.05
"""Share of saturated input values that is logged."""

_EXACT_IN_SINGLE = 1 << 24
"""Integers up to here are float32 numbers."""

CHUNK = 16
"""Samples computed at a time: activations of small networks then stay in the cache."""


@dataclass(frozen=True, slots=True)
class _Call:
    graph: Graph
    node: Node
    args: tuple[Codes, ...]

    @property
    def x(self) -> Codes:
        return self.args[0]

    def attr(self, name: str) -> Any:
        return self.node.attrs[name]

    @property
    def source(self) -> QType:
        return qtype_of(self.graph.tensor(self.node.inputs[0]))

    def operands(self) -> list[Codes]:
        """Return all arguments with the result's rank: NNEF broadcasts from the left."""
        rank = len(self.target.shape)
        return [x.reshape(x.shape + (1,) * (rank - x.ndim)) for x in self.args]

    def differences(self) -> list[Codes]:
        """Return the operands minus their zero points."""
        return [
            x.astype(np.int64) - qtype_of(self.graph.tensor(name)).zero_point
            for name, x in zip(self.node.inputs, self.operands(), strict=True)
        ]

    @property
    def target(self) -> Tensor:
        return self.graph.tensor(self.node.outputs[0])


fixed = PerOperator[Callable[[_Call], Codes]]("fixed reference")
"""What hardware computes of codes."""


def run_fixed(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> dict[str, Codes]:
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
    chunks = ({name: v[name] for name in graph.outputs} for v in iterate_fixed(graph, inputs))
    return _arranged(graph, inputs, chunks)


def trace_fixed(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> dict[str, Codes]:
    """Return the codes of every activation by name, inputs and states included."""
    return _arranged(graph, inputs, iterate_fixed(graph, inputs))


def _arranged(
    graph: Graph, inputs: Mapping[str, NDArray[Any]], found: Iterator[dict[str, Codes]]
) -> dict[str, Codes]:
    """Join chunks, in the form in which the inputs were given."""
    if graph.is_sequential:
        return Sequences.of(graph, check_inputs(graph, inputs)).arrange(found)
    chunks = list(found)
    return {name: np.concatenate([chunk[name] for chunk in chunks]) for name in chunks[0]}


def quantize_inputs(
    graph: Graph, inputs: Mapping[str, NDArray[Any]], *, warns: bool = True
) -> dict[str, Codes]:
    """Codes of real inputs in the formats of a fixed graph's inputs.

    Inputs far outside of a format's range saturate; many of them are worth a warning in the log,
    unless they are so far outside that nothing in the network could tell, or ``warns`` is false.
    """
    codes: dict[str, Codes] = {}
    for name, x in check_inputs(graph, inputs).items():
        tensor = graph.tensor(name)
        qtype, scales = qtype_of(tensor), graph.features.get(name)
        step: Any = qtype.scale
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


def dequantize_outputs(
    graph: Graph, codes: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[np.float64]]:
    """Real numbers of the codes of a fixed graph's activations, such as its outputs."""
    return {
        name: graph.features[name].dequantize(q, graph.tensor(name).shape)
        if name in graph.features
        else qtype_of(graph.tensor(name)).dequantize(q)
        for name, q in codes.items()
    }


def qtype_of(tensor: Tensor) -> QType:
    """Return the format of a tensor of a fixed graph."""
    assert tensor.qtype is not None, f"{tensor.name}: no QType in a fixed graph"
    return tensor.qtype


def iterate_fixed(graph: Graph, inputs: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Codes]]:
    """Yield every activation's codes, a few samples at a time; see :func:`run_fixed`.

    Of a graph with states, these are the steps of whole sequences, one sequence after the other.
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

    order = schedule(graph)

    def compute_one(node: Node, values: Mapping[str, Codes], count: int) -> dict[str, Codes]:
        del count
        return {node.name: compute_node(graph, node, values)}

    def step(values: dict[str, Codes]) -> dict[str, Codes]:
        return run_schedule(order, values, initial, compute_one, _samples(values))

    def compute(start: int) -> dict[str, Codes]:
        if sequences:
            return sequences.run(step, lasting, start, min(start + CHUNK, count))
        return step({name: x[start : start + CHUNK] for name, x in arrays.items()})

    workers = os.cpu_count() or 1
    starts = range(0, count, CHUNK)
    with ThreadPoolExecutor(workers) as pool:
        # no more at a time than there are workers: whoever takes the results may be slower
        for first in range(0, len(starts), workers):
            yield from pool.map(compute, starts[first : first + workers])


def _samples(values: Mapping[str, Codes]) -> int:
    return len(next(iter(values.values()), (0,)))


def compute_node(graph: Graph, node: Node, values: Mapping[str, Codes]) -> Codes:
    """Return the codes of one node's result from those of the activations it reads."""
    args = tuple(values[name] if name in values else graph.constant(name) for name in node.inputs)
    return fixed[node.op](_Call(graph, node, args))


def _check_codes(graph: Graph, name: str, codes: NDArray[Any]) -> NDArray[Any]:
    if name not in graph.inputs:
        return codes
    qtype = qtype_of(graph.tensor(name))
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


@fixed("conv")
def _conv(call: _Call) -> Codes:
    weights, bias = _weights(call)
    zero_point = call.source.zero_point
    dtype = _exact_type(weights, call.source)
    conv = call.node.attributes(ConvAttributes)
    padded = pad_border(call.x, conv.padding, conv.border, zero_point)
    sums = convolve(
        padded.astype(dtype), weights.astype(dtype), conv.stride, conv.dilation, conv.groups
    )
    folded = fold_zero_point(bias, weights, zero_point)
    acc = sums.astype(np.int64)
    acc += folded.reshape(1, -1, *[1] * (sums.ndim - 2))
    return _requantize(call, acc)


def _weights(call: _Call) -> tuple[Codes, Codes]:
    """Return a layer's weights less their zero point (imported ones may have one), and its bias."""
    _, weights, bias = (x.astype(np.int64) for x in call.args)
    return weights - qtype_of(call.graph.tensor(call.node.inputs[1])).zero_point, bias


def _exact_type(weights: Codes, source: QType) -> type[np.floating[Any]]:
    """Return the fastest float type that holds all sums of products with codes exactly."""
    magnitude = np.abs(weights).reshape(len(weights), -1).sum(axis=1).max()
    is_small = int(magnitude) * max(-source.lo, source.hi) <= _EXACT_IN_SINGLE
    return np.float32 if is_small else np.float64


@fixed("linear")
def _linear(call: _Call) -> Codes:
    weights, bias = _weights(call)
    dtype = _exact_type(weights, call.source)
    sums = call.x.astype(dtype) @ weights.astype(dtype).T
    folded = fold_zero_point(bias, weights, call.source.zero_point)
    return _requantize(call, sums.astype(np.int64) + folded)


@fixed("add", "sub")
def _add(call: _Call) -> Codes:
    requant: AddRequant | TfliteAddRequant = call.attr("requant")
    return requant.apply(*call.differences())


@fixed("mul")
def _mul(call: _Call) -> Codes:
    first, second = call.differences()
    return _requantize(call, first * second)


@fixed("quotient")
def _quotient(call: _Call) -> Codes:
    quotient: TfliteQuotient = call.attr("requant")
    return quotient.apply(*call.differences())


@fixed("max")
def _maximum(call: _Call) -> Codes:
    return np.asarray(np.maximum(*call.operands()))


@fixed("min")
def _minimum(call: _Call) -> Codes:
    return np.asarray(np.minimum(*call.operands()))


@fixed("concat")
def _concat(call: _Call) -> Codes:
    count = max(map(len, call.args))
    parts = [np.broadcast_to(x, (count, *x.shape[1:])) for x in call.args]
    return np.concatenate(parts, axis=call.attr("axis"))


def _requantize(call: _Call, acc: Codes) -> Codes:
    requant: Requant | TfliteRequant = call.attr("requant")
    return requant.apply(acc)


def _taps(call: _Call, pool: PoolAttributes, value: int) -> tuple[Codes, ...]:
    padded = pad_border(call.x, pool.padding, pool.border, value)
    return gather_taps(padded, pool.size, pool.stride, pool.dilation)


@fixed("max_pool")
def _max_pool(call: _Call) -> Codes:
    source, pool = call.source, call.node.attributes(PoolAttributes)
    value = source.lo if pool.border == "ignore" else source.zero_point
    return np.asarray(np.maximum.reduce(_taps(call, pool, value)))


@fixed("avg_pool", "box")
def _sum_pool(call: _Call) -> Codes:
    zero_point, pool = call.source.zero_point, call.node.attributes(PoolAttributes)
    taps = _taps(call, pool, zero_point)
    total = np.zeros(taps[0].shape, np.int64)
    for tap in taps:
        total += tap
    total -= len(taps) * zero_point
    if pool.border != "ignore":
        return _requantize(call, total)
    counts = pool.counts(call.x.shape)
    requant: Requant | TfliteAverage = call.attr("requant")
    if isinstance(requant, TfliteAverage):
        return requant.apply(total, counts)
    which = np.searchsorted(np.unique(counts), counts).reshape(-1)
    of_position = replace(requant, mult=tuple(requant.mult[n] for n in which))
    return of_position.apply(total.reshape(*total.shape[:2], -1), axis=2).reshape(total.shape)


@fixed(Trait.TABLE)
def _table(call: _Call) -> Codes:
    return look_up(call.attr("table"), call.x, call.source)


@fixed("softmax")
def _softmax(call: _Call) -> Codes:
    is_tflite = call.target.qtype == TFLITE_SOFTMAX_QTYPE
    function = tflite_softmax_codes if is_tflite else softmax_codes
    return function(call.x, call.attr("table"))


@fixed("argmax_reduce")
def _argmax(call: _Call) -> Codes:
    return argmax_codes(call.x)


@fixed("argmin_reduce")
def _argmin(call: _Call) -> Codes:
    return argmin_codes(call.x)


@fixed("pad")
def _pad(call: _Call) -> Codes:
    pad = call.node.attributes(PadAttributes)
    return pad_border(call.x, pad.padding, value=int(call.source.quantize(pad.value)))


@fixed("nearest_upsample")
def _upsample(call: _Call) -> Codes:
    return repeat_pixels(call.x, call.node.attributes(FactorAttributes).factor)


@fixed("interpolate")
def _interpolate(call: _Call) -> Codes:
    places = call.node.attributes(InterpolateAttributes).places(call.x.shape)
    return interpolate_codes(call.x, *places)


@fixed("depth_to_space")
def _depth_to_space(call: _Call) -> Codes:
    return depth_to_space(call.x, call.node.attributes(FactorAttributes).factor)


@fixed("slice")
def _slice(call: _Call) -> Codes:
    part = call.node.attributes(SliceAttributes)
    return take_slice(call.x, part.axis, part.begin, part.end)


@fixed("reshape")
def _reshape(call: _Call) -> Codes:
    return call.x.reshape(len(call.x), *sample_extents(call.target.shape))


@fixed("transpose")
def _transpose(call: _Call) -> Codes:
    """Move axes of samples; what stands in front of them need not be a batch extent of 1."""
    shape = call.graph.tensor(call.node.inputs[0]).shape
    axes = [axis + 1 for axis in call.attr("axes")]
    moved = call.x.reshape(len(call.x), *shape).transpose(0, *axes)
    return join_batch(moved, call.target.shape)


@fixed("split_steps")
def _split_steps(call: _Call) -> Codes:
    return split_steps(call.x, call.attr("steps"))


@fixed("join_steps")
def _join_steps(call: _Call) -> Codes:
    return join_steps(call.x, call.attr("steps"))


@fixed("last_step")
def _last_step(call: _Call) -> Codes:
    return last_step(call.x, call.attr("steps"))


@fixed("reverse_steps")
def _reverse_steps(call: _Call) -> Codes:
    return reverse_steps(call.x, call.attr("steps"))


@fixed("begin_steps")
def _begin_steps(call: _Call) -> Codes:
    return begin_steps(*call.args)


fixed.require_all()
