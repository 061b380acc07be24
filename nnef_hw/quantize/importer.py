"""Build a fixed graph from given integers and scales, wherever they come from."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, log2, prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import (
    QType,
    Requant,
    accumulator_range,
    choose_add_requant,
    fold_zero_point,
    signed_bits,
)
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.arithmetic.tflite.numerics import (
    TfliteAverage,
    tflite_add_requant,
    tflite_mean_requant,
)
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Graph, Node, Stage, Trait, close_states, open_states, verify
from nnef_hw.ir.operators import (
    ContractionAttributes,
    PadAttributes,
    PoolAttributes,
)
from nnef_hw.quantize.fixed_builder import FixedBuilder, converts, limited, located
from nnef_hw.quantize.formats import scale_of
from nnef_hw.quantize.function_rules import check_table
from nnef_hw.quantize.integers import with_rest
from nnef_hw.quantize.params import MULT_BITS, FixedParams, index_qtype
from nnef_hw.quantize.tflite.short_arithmetic import short_product, short_sum
from nnef_hw.quantize.tflite.tables import single_quotient
from nnef_hw.reference.visible import EVERYTHING, hidden_infinities

__all__ = ["build_fixed"]

_FINER = 10
"""An offset of sums misses its real value by less than one of so many halvings of a step."""


def build_fixed(graph: Graph, params: FixedParams) -> Graph:
    """Turn a canonical graph into a fixed one.

    Mult, shift and tables are derived here in float64 and nowhere else.

    Raises
    ------
    UnsupportedError
        If a table that cannot be interpolated would need over 8 bits, or scales differ too much
        for any multiplier.
    KeyError
        If ``params`` lacks a tensor or a layer.
    """
    assert graph.stage == Stage.CANONICAL, graph.stage
    step = open_states(graph)
    builder = FixedBuilder(step, params)
    for name in step.inputs:
        builder.set_qtype(name, params.activations[name])
    for node in step.nodes:
        builder.convert(node)
    taken = [builder.taken_over(name, state) for name, state in graph.states.items()]
    step = step.replaced(
        nodes=tuple(builder.nodes),
        tensors=builder.tensors,
        stage=Stage.FIXED,
        outputs=(*graph.outputs, *taken),
    )
    states = {
        name: replace(state, initial=builder.qtype(name).quantize(state.initial))
        for name, state in graph.states.items()
    }
    fixed = close_states(step, states)
    verify(fixed)
    return fixed


@converts(Trait.KEEPS_FORMAT)
def _keep(builder: FixedBuilder, node: Node) -> Node:
    source = builder.qtype(node.inputs[0])
    builder.set_qtype(node.name, source)
    if node.op == "pad":
        _check_padding(builder.graph, node, source)
    return node


@converts(Trait.INDEX)
def _index(builder: FixedBuilder, node: Node) -> Node:
    builder.set_qtype(node.name, index_qtype(builder.graph.tensor(node.inputs[0]).shape[1]))
    return node


@converts(Trait.TABLE)
def _function(builder: FixedBuilder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    check_table(node, source)
    table = builder.table(node, source, target)
    if node.has(Trait.EXACT_TABLE) and _is_same(table, source, target):
        # the same codes in steps of another size
        attrs = {"shape": list(builder.graph.tensor(node.name).shape), "axis_start": 0}
        return replace(node, op="reshape", attrs={**attrs, "axis_count": -1})
    return node.with_attrs(table=table)


def _is_same(table: NDArray[np.int64], source: QType, target: QType) -> bool:
    """Whether a table gives every code of a format as the same code of another one."""
    codes = np.arange(source.lo, source.hi + 1)
    return (source.lo, source.hi) == (target.lo, target.hi) and np.array_equal(table, codes)


@converts(Trait.ONE_FORMAT)
def _in_one_format(builder: FixedBuilder, node: Node) -> Node:
    """Quantize constants and map codes of operands whose format is not the result's."""
    target = builder.take_format(node)
    operands: dict[str, str] = {}
    for position, name in enumerate(node.numbers):
        data = builder.tensors[name].data
        if name in operands:
            continue
        if data is not None:
            operands[name] = builder.constant(node, position, target.quantize(data), target)
        elif builder.qtype(name) == target:
            operands[name] = name
        else:
            operands[name] = builder.requantized(node, name, target)
    return replace(node, inputs=tuple(operands.get(name, name) for name in node.inputs))


@converts("mul")
def _product(builder: FixedBuilder, node: Node) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    if node.attrs.get("is_short"):
        factor = prod(builder.scales(node)) / scale_of(target)
        return node.with_attrs(requant=short_product(factor, target))
    first, second = builder.limits(node)
    corners = [a * b for a in first for b in second]
    bits = signed_bits(min(corners), max(corners))
    factor = prod(builder.scales(node)) / scale_of(target)
    is_squared_difference = target.bits < builder.qtype(node.inputs[0]).bits
    if builder.is_tflite and not is_squared_difference:  # which has its factor in double precision
        factor = single_quotient(*builder.scales(node), divisor=scale_of(target))
    return node.with_attrs(requant=builder.requant(node, [factor], target, bits))


@converts(Trait.CONTRACTS)
def _contraction(builder: FixedBuilder, node: Node) -> Node:
    """Requantize sums; where an offset is added to them, they are multiplied by a power of two.

    So the offset is a whole number of steps of what is requantized, but for a part of the result's
    step that is too small to be seen.
    """
    target, product = builder.take_format(node), node.attributes(ContractionAttributes)
    first, second = builder.limits(node)
    corners = [a * b for a in first for b in second]
    shapes = [builder.graph.tensor(name).shape for name in node.inputs]
    count = product.sizes(*shapes).inner
    step = product.scale * prod(builder.scales(node))
    steps = product.offset / step
    is_integer = all(map(builder.is_integer, (*node.inputs, node.name)))
    is_whole = is_integer or float(steps).is_integer()
    gain = 0 if is_whole else max(0, ceil(log2(step / scale_of(target))) + _FINER)
    bias = floor(steps * 2.0**gain + 0.5)
    lo, hi = ((count * end << gain) + bias for end in (min(corners), max(corners)))
    factor = step / scale_of(target) / 2.0**gain
    if builder.is_tflite:
        # whose product it takes in single precision, and the rest in double
        factor = float(prod(map(np.float32, builder.scales(node)))) / scale_of(target)
        node = node.with_attrs(is_product=True)
    requant = builder.requant(node, [factor], target, signed_bits(min(lo, 0), max(hi, 0)))
    if is_integer and isinstance(requant, Requant):
        more, requant = with_rest(requant, [factor], np.array([steps - bias]))
        bias += int(more[0])
    return node.with_attrs(requant=requant, gain=gain, bias=bias)


@converts("quotient")
def _quotient(builder: FixedBuilder, node: Node) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    for name in node.inputs:
        check_table(node, builder.qtype(name))
    first, second = builder.scales(node)
    with located(node):
        quotient = tflite_quotient(
            (first, second), target, **limited(node, target), wraps=builder.is_tflite
        )
    return node.with_attrs(requant=quotient)


@converts("add")
def _sum(builder: FixedBuilder, node: Node) -> Node:
    return _weighted_sum(builder, node, 1.0)


@converts("sub")
def _difference(builder: FixedBuilder, node: Node) -> Node:
    return _weighted_sum(builder, node, -1.0)


def _weighted_sum(builder: FixedBuilder, node: Node, sign: float) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    first, second = builder.scales(node)
    if node.attrs.get("is_short"):
        bits = max(signed_bits(*pair) for pair in builder.limits(node))
        exact = short_sum(target, bits, **limited(node, target))
        return node.with_attrs(requant=exact)
    if builder.is_tflite:
        of_sum = tflite_add_requant(
            (first, second),
            target,
            **limited(node, target),
            signs=(1, int(sign)),
            operand_bits=max(builder.qtype(name).bits for name in node.inputs),
        )
        return node.with_attrs(requant=of_sum)
    with located(node):
        exact = choose_add_requant(
            (first / scale_of(target), sign * second / scale_of(target)),
            target,
            mult_bits=builder.params.mult_bits.get(node.name, MULT_BITS),
            **limited(node, target),
            operand_bits=max(signed_bits(*pair) for pair in builder.limits(node)),
        )
    return node.with_attrs(requant=exact)


@converts("avg_pool")
def _average(builder: FixedBuilder, node: Node) -> Node:
    taps = node.attributes(PoolAttributes).taps
    if not builder.is_tflite:
        return _requantized_sum(builder, node, taps)
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    if node.attrs.get("is_reduction"):
        mean = tflite_mean_requant(scale_of(source) / scale_of(target), taps, target)
        return node.with_attrs(requant=mean)
    if source != target:
        raise UnsupportedError(
            f"avg_pool {node.name!r} has another format than its input, which TensorFlow "
            "Lite does not allow",
            remedy="use rounding = 'half_up'",
            location=node.location,
        )
    requant = TfliteAverage(taps, target.zero_point, target.lo, target.hi)
    return node.with_attrs(requant=requant)


@converts("box")
def _window_sum(builder: FixedBuilder, node: Node) -> Node:
    return _requantized_sum(builder, node, 1)


def _requantized_sum(builder: FixedBuilder, node: Node, divisor: int) -> Node:
    """Requantize window sums, divided by a number or by the count of taps in the image."""
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    pool = node.attributes(PoolAttributes)
    top = pool.taps * max(source.hi - source.zero_point, source.zero_point - source.lo)
    counts = [divisor]
    if pool.border == "ignore":
        shape = builder.graph.tensor(node.inputs[0]).shape
        counts = np.unique(pool.counts(shape)).tolist()
    factors = [scale_of(source) / (scale_of(target) * count) for count in counts]
    return node.with_attrs(requant=builder.requant(node, factors, target, signed_bits(-top, top)))


@converts(Trait.WEIGHTS)
def _layer(builder: FixedBuilder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    layer = builder.params.layers[node.name]
    bias_qtype = layer.bias_qtype(scale_of(source))
    factors = (np.atleast_1d(bias_qtype.scale) / scale_of(target)).tolist()
    bias = np.asarray(layer.bias, np.int64).reshape(1, -1)
    weights = np.asarray(layer.weights, np.int64)
    average = None
    if builder.is_tflite and node.attrs.get("is_interpolation"):
        average = _weighted_average(layer.weight_qtype, target)
        bias = bias + average.taps * source.zero_point
    names = (
        builder.constant(node, 1, weights, layer.weight_qtype),
        builder.constant(node, 2, bias, bias_qtype),
    )
    node = replace(node, inputs=(node.inputs[0], *names))
    if average is not None:
        return node.with_attrs(requant=average.as_requant())
    folded = fold_zero_point(bias, weights, source.zero_point)
    limits = accumulator_range(weights, folded, source.lo, source.hi)
    requant = builder.requant(node, factors, target, signed_bits(*limits))
    if layer.bias_rest is not None and isinstance(requant, Requant):
        steps, requant = with_rest(requant, factors, layer.bias_rest.reshape(-1))
        builder.constant(node, 2, bias + steps, bias_qtype)
    return node.with_attrs(requant=requant)


def _weighted_average(weights: QType, target: QType) -> TfliteAverage:
    """Return how an interpolated sum of codes is divided: its weights add up to the divisor."""
    return TfliteAverage(round(1 / scale_of(weights)), target.zero_point, target.lo, target.hi)


converts.require_all()


def _check_padding(graph: Graph, node: Node, source: QType) -> None:
    """Refuse to put a value around an image that its format does not reach, but results show."""
    lo, hi = source.dequantize([source.lo, source.hi]).tolist()
    value, step = node.attributes(PadAttributes).value, scale_of(source)
    shown = hidden_infinities(graph).get(node.name, EVERYTHING)
    if shown.nearest(value) == value and not lo - step < value < hi + step:
        raise UnsupportedError(
            f"pad {node.name!r}: its value {value:g} lies outside of {lo:g}..{hi:g}, the range of "
            "its input's format",
            remedy="quantize the input with a range that has it",
            location=node.location,
        )
