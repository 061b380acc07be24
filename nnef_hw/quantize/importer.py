"""Build a fixed graph from given integers and scales, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import ceil, floor, log2, prod

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.normalization import choose_normalize
from nnef_hw.arithmetic.numerics import (
    QType,
    Requant,
    accumulator_range,
    choose_add_requant,
    choose_requant,
    exp_table,
    fold_zero_point,
    signed_bits,
)
from nnef_hw.arithmetic.tables import TABLE_BITS, unary_table
from nnef_hw.arithmetic.tflite.division import tflite_quotient
from nnef_hw.arithmetic.tflite.numerics import (
    TfliteAverage,
    TfliteRequant,
    tflite_add_requant,
    tflite_exp_table,
    tflite_mean_requant,
    tflite_requant,
)
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import (
    Graph,
    Node,
    Stage,
    State,
    Tensor,
    Trait,
    close_states,
    open_states,
    verify,
)
from nnef_hw.ir.activation import activation_limits
from nnef_hw.ir.operators import (
    ContractionAttributes,
    PadAttributes,
    PerOperator,
    PoolAttributes,
)
from nnef_hw.quantize.params import MULT_BITS, FixedParams, index_qtype
from nnef_hw.quantize.tflite.short_arithmetic import short_product, short_sum, short_table
from nnef_hw.quantize.tflite.tables import single_quotient, tflite_table
from nnef_hw.reference import unary_function
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
    builder = _Builder(step, params)
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


class _Builder:
    def __init__(self, graph: Graph, params: FixedParams) -> None:
        self.graph = graph
        self.params = params
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.nodes: list[Node] = []

    def set_qtype(self, name: str, qtype: QType) -> None:
        self.tensors[name] = replace(self.tensors[name], qtype=qtype)

    def qtype(self, name: str) -> QType:
        qtype = self.tensors[name].qtype
        assert qtype is not None, name
        return qtype

    @property
    def is_tflite(self) -> bool:
        return self.params.rounding == "tflite"

    def convert(self, node: Node) -> None:
        self.nodes.append(converts[node.op](self, node))

    def take_format(self, node: Node) -> QType:
        """Give a result the format that was chosen for it; return this."""
        target = self.params.activations[node.name]
        self.set_qtype(node.name, target)
        return target

    def requantized(self, node: Node, name: str, target: QType) -> str:
        """Emit a table of the codes that another format has for the same numbers."""
        result, count = f"{name}_in_{node.name}", 2
        while result in self.tensors:
            result, count = f"{name}_in_{node.name}_{count}", count + 1
        attrs = {"is_joined": True} if self.is_tflite and node.op == "concat" else {}
        table = Node("requantize", (name,), (result,), attrs, node.location)
        self.tensors[result] = replace(self.tensors[name], name=result, quant=None, label=None)
        self.set_qtype(result, target)
        self.nodes.append(table.with_attrs(table=self.table(table, self.qtype(name), target)))
        return result

    def taken_over(self, name: str, state: State) -> str:
        """Return the tensor whose codes are those of a state's next value, in its format."""
        target, result = self.qtype(name), state.result
        if self.qtype(result) == target:
            return result
        return self.requantized(Node("update", (result,), (name,)), result, target)

    def table(self, node: Node, source: QType, target: QType) -> NDArray[np.int64]:
        """Return the codes of a function at every code of its input."""
        if node.attrs.get("is_short"):
            return short_table(node, source)
        if self.is_tflite:
            return tflite_table(node, source, target)
        return unary_table(unary_function(node), source, target)

    def with_operands(self, node: Node) -> Node:
        """Return a node of arithmetic whose constant operands are quantized."""
        inputs = list(node.inputs)
        for position, name in enumerate(inputs):
            data = self.tensors[name].data
            if data is not None:
                qtype = self.params.activations[name]
                inputs[position] = self.constant(node, position, qtype.quantize(data), qtype)
        return replace(node, inputs=tuple(inputs))

    def limits(self, node: Node) -> list[tuple[int, int]]:
        """Return the limits of every operand's codes minus their zero point."""
        formats = map(self.qtype, node.inputs)
        return [(q.lo - q.zero_point, q.hi - q.zero_point) for q in formats]

    def scales(self, node: Node) -> list[float]:
        """Return the scale of every operand."""
        return [_scale(self.qtype(name)) for name in node.inputs]

    def requant(
        self, node: Node, factors: list[float], target: QType, acc_bits: int
    ) -> Requant | TfliteRequant:
        if self.is_tflite:
            is_product = node.attrs.get("is_product") or node.attrs.get("is_short")
            is_linear = not is_product and (node.op == "linear" or "is_linear" in node.attrs)
            is_wide = not is_linear and self._sums_are_wide(node)
            once = is_linear or is_wide
            limits = _limits(node, target)
            return tflite_requant(factors, target, **limits, rounds_once=once, is_wide=is_wide)
        with _located(node):
            return choose_requant(
                factors,
                target,
                mult_bits=self.params.mult_bits.get(node.name, MULT_BITS),
                **_limits(node, target),
                acc_bits=acc_bits,
            )

    def _sums_are_wide(self, node: Node) -> bool:
        """Whether TensorFlow Lite's sums have 64 bits, which it rounds in a third way."""
        is_wide = node.op == "conv" and self.qtype(node.inputs[0]).bits > TABLE_BITS
        return is_wide and not node.attrs.get("is_product", False)

    def constant(self, node: Node, position: int, codes: NDArray[np.int64], qtype: QType) -> str:
        old = self.graph.tensor(node.inputs[position])
        assert codes.shape == old.shape, f"{old.name}: {codes.shape} codes for {old.shape}"
        users = sum(other.inputs.count(old.name) for other in self.graph.nodes)
        name, label = old.name, old.label
        if users > 1:
            name, label = f"{old.name}_{node.name}", f"{label}_{node.name}" if label else None
        self.tensors[name] = replace(
            old, name=name, label=label, dtype="scalar", data=codes, qtype=qtype
        )
        return name


converts = PerOperator[Callable[[_Builder, Node], Node]]("conversion to the fixed stage")
"""Set the format of the result, quantize constants, and return the node of the fixed stage."""


@converts(Trait.KEEPS_FORMAT)
def _keep(builder: _Builder, node: Node) -> Node:
    source = builder.qtype(node.inputs[0])
    builder.set_qtype(node.name, source)
    if node.op == "pad":
        _check_padding(builder.graph, node, source)
    return node


@converts(Trait.INDEX)
def _index(builder: _Builder, node: Node) -> Node:
    builder.set_qtype(node.name, index_qtype(builder.graph.tensor(node.inputs[0]).shape[1]))
    return node


@converts("softmax")
def _softmax(builder: _Builder, node: Node) -> Node:
    source = builder.qtype(node.inputs[0])
    builder.take_format(node)
    _check_table(node, source)
    make_table = tflite_exp_table if builder.is_tflite else exp_table
    masked = {"masked": True} if node.name in builder.params.masked else {}
    return node.with_attrs(table=make_table(_scale(source), 1 << source.bits), **masked)


@converts("normalize")
def _normalize(builder: _Builder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    gamma, beta = (builder.graph.constant(name) for name in node.inputs[1:])
    with _located(node):
        found = choose_normalize(
            source,
            target,
            channels=builder.graph.tensor(node.inputs[0]).shape[1],
            centered=node.attrs["centered"],
            epsilon=node.attrs["epsilon"],
            gamma=gamma,
            beta=beta,
        )
    names = (
        builder.constant(node, 1, found.mult, found.mult_qtype),
        builder.constant(node, 2, found.offset, found.offset_qtype),
    )
    node = replace(node, inputs=(node.inputs[0], *names))
    return node.with_attrs(requant=found.requant)


@converts(Trait.TABLE)
def _function(builder: _Builder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    _check_table(node, source)
    return node.with_attrs(table=builder.table(node, source, target))


@converts(Trait.ONE_FORMAT)
def _in_one_format(builder: _Builder, node: Node) -> Node:
    """Quantize constants and map codes of operands whose format is not the result's."""
    target = builder.take_format(node)
    operands: dict[str, str] = {}
    for position, name in enumerate(node.inputs):
        data = builder.tensors[name].data
        if name in operands:
            continue
        if data is not None:
            operands[name] = builder.constant(node, position, target.quantize(data), target)
        elif builder.qtype(name) == target:
            operands[name] = name
        else:
            operands[name] = builder.requantized(node, name, target)
    return replace(node, inputs=tuple(operands[name] for name in node.inputs))


@converts("mul")
def _product(builder: _Builder, node: Node) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    if node.attrs.get("is_short"):
        factor = prod(builder.scales(node)) / _scale(target)
        return node.with_attrs(requant=short_product(factor, target))
    first, second = builder.limits(node)
    corners = [a * b for a in first for b in second]
    bits = signed_bits(min(corners), max(corners))
    factor = prod(builder.scales(node)) / _scale(target)
    is_squared_difference = target.bits < builder.qtype(node.inputs[0]).bits
    if builder.is_tflite and not is_squared_difference:  # which has its factor in double precision
        factor = single_quotient(*builder.scales(node), divisor=_scale(target))
    return node.with_attrs(requant=builder.requant(node, [factor], target, bits))


@converts(Trait.CONTRACTS)
def _contraction(builder: _Builder, node: Node) -> Node:
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
    gain = 0 if float(steps).is_integer() else max(0, ceil(log2(step / _scale(target))) + _FINER)
    bias = floor(steps * 2.0**gain + 0.5)
    lo, hi = ((count * end << gain) + bias for end in (min(corners), max(corners)))
    factor = step / _scale(target) / 2.0**gain
    if builder.is_tflite:
        # whose product it takes in single precision, and the rest in double
        factor = float(prod(map(np.float32, builder.scales(node)))) / _scale(target)
        node = node.with_attrs(is_product=True)
    requant = builder.requant(node, [factor], target, signed_bits(min(lo, 0), max(hi, 0)))
    return node.with_attrs(requant=requant, gain=gain, bias=bias)


@converts("quotient")
def _quotient(builder: _Builder, node: Node) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    for name in node.inputs:
        _check_table(node, builder.qtype(name))
    first, second = builder.scales(node)
    with _located(node):
        quotient = tflite_quotient(
            (first, second), target, **_limits(node, target), wraps=builder.is_tflite
        )
    return node.with_attrs(requant=quotient)


@converts("add")
def _sum(builder: _Builder, node: Node) -> Node:
    return _weighted_sum(builder, node, 1.0)


@converts("sub")
def _difference(builder: _Builder, node: Node) -> Node:
    return _weighted_sum(builder, node, -1.0)


def _weighted_sum(builder: _Builder, node: Node, sign: float) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    first, second = builder.scales(node)
    if node.attrs.get("is_short"):
        bits = max(signed_bits(*pair) for pair in builder.limits(node))
        exact = short_sum(target, bits, **_limits(node, target))
        return node.with_attrs(requant=exact)
    if builder.is_tflite:
        of_sum = tflite_add_requant(
            (first, second),
            target,
            **_limits(node, target),
            signs=(1, int(sign)),
            operand_bits=max(builder.qtype(name).bits for name in node.inputs),
        )
        return node.with_attrs(requant=of_sum)
    with _located(node):
        exact = choose_add_requant(
            (first / _scale(target), sign * second / _scale(target)),
            target,
            mult_bits=builder.params.mult_bits.get(node.name, MULT_BITS),
            **_limits(node, target),
            operand_bits=max(signed_bits(*pair) for pair in builder.limits(node)),
        )
    return node.with_attrs(requant=exact)


@converts("avg_pool")
def _average(builder: _Builder, node: Node) -> Node:
    taps = node.attributes(PoolAttributes).taps
    if not builder.is_tflite:
        return _requantized_sum(builder, node, taps)
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    if node.attrs.get("is_reduction"):
        mean = tflite_mean_requant(_scale(source) / _scale(target), taps, target)
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
def _window_sum(builder: _Builder, node: Node) -> Node:
    return _requantized_sum(builder, node, 1)


def _requantized_sum(builder: _Builder, node: Node, divisor: int) -> Node:
    """Requantize window sums, divided by a number or by the count of taps in the image."""
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    pool = node.attributes(PoolAttributes)
    top = pool.taps * max(source.hi - source.zero_point, source.zero_point - source.lo)
    counts = [divisor]
    if pool.border == "ignore":
        shape = builder.graph.tensor(node.inputs[0]).shape
        counts = np.unique(pool.counts(shape)).tolist()
    factors = [_scale(source) / (_scale(target) * count) for count in counts]
    return node.with_attrs(requant=builder.requant(node, factors, target, signed_bits(-top, top)))


@converts(Trait.WEIGHTS)
def _layer(builder: _Builder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    layer = builder.params.layers[node.name]
    bias_qtype = layer.bias_qtype(_scale(source))
    factors = (np.atleast_1d(bias_qtype.scale) / _scale(target)).tolist()
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
    return node.with_attrs(requant=requant)


def _weighted_average(weights: QType, target: QType) -> TfliteAverage:
    """Return how an interpolated sum of codes is divided: its weights add up to the divisor."""
    return TfliteAverage(round(1 / _scale(weights)), target.zero_point, target.lo, target.hi)


converts.require_all()


def _limits(node: Node, target: QType) -> dict[str, int]:
    """Return the least and the greatest code of a result, as its activation limits it."""
    lo, hi = target.quantize(activation_limits(node)).tolist()
    return {"lo": lo, "hi": hi}


@contextmanager
def _located(node: Node) -> Iterator[None]:
    """Add a node's location to the error of a factor that no multiplier represents."""
    try:
        yield
    except ValueError as error:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: {error}",
            remedy="calibrate with samples that use the whole range of every layer",
            location=node.location,
        ) from error


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale


def _check_padding(graph: Graph, node: Node, source: QType) -> None:
    """Refuse to put a value around an image that its format does not reach, but results show."""
    lo, hi = source.dequantize([source.lo, source.hi]).tolist()
    value, step = node.attributes(PadAttributes).value, _scale(source)
    shown = hidden_infinities(graph).get(node.name, EVERYTHING)
    if shown.nearest(value) == value and not lo - step < value < hi + step:
        raise UnsupportedError(
            f"pad {node.name!r}: its value {value:g} lies outside of {lo:g}..{hi:g}, the range of "
            "its input's format",
            remedy="quantize the input with a range that has it",
            location=node.location,
        )


def _check_table(node: Node, source: QType) -> None:
    is_exact = node.has(Trait.EXACT_TABLE) or node.has(Trait.SHORT_OPERANDS)
    if is_exact and source.bits > TABLE_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: its input has {source.bits} bits, "
            f"its table has at most {TABLE_BITS}",
            remedy=f"give the input a format of at most {TABLE_BITS} bits",
            location=node.location,
        )
