"""Build a fixed graph from given integers and scales, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Graph, Node, Stage, Tensor, verify
from nnef_hw.ir.verify import ARITHMETIC_OPS, EXACT_TABLE_OPS, ONE_FORMAT_OPS, TABLE_OPS
from nnef_hw.numerics import (
    SOFTMAX_QTYPE,
    QType,
    Requant,
    accumulator_range,
    choose_add_requant,
    choose_requant,
    exp_table,
    fold_zero_point,
    signed_bits,
)
from nnef_hw.quantize.one_format import KEEPS_QTYPE
from nnef_hw.reference import unary_function
from nnef_hw.reference.windows import pool_counts
from nnef_hw.tables import TABLE_BITS, unary_table
from nnef_hw.tflite_numerics import (
    TFLITE_SOFTMAX_QTYPE,
    TfliteAverage,
    TfliteRequant,
    tflite_add_requant,
    tflite_exp_table,
    tflite_requant,
)

__all__ = ["FixedParams", "LayerParams", "argmax_qtype", "build_fixed", "softmax_qtype"]

MULT_BITS = 16
_TFLITE_OPS = KEEPS_QTYPE | {"add", "argmax_reduce", "avg_pool", "conv", "linear", "softmax"}


@dataclass(frozen=True, slots=True, eq=False)
class LayerParams:
    """Integers of a ``conv`` or ``linear``.

    Parameters
    ----------
    weights
        Codes of the filter, [outC, ...] as in the canonical graph.
    bias
        int32 codes at ``input scale * weight scale``, one per channel, no zero point folded in.
    weight_qtype
        Format of the filter with one scale, or one per output channel; zero point 0.
    """

    weights: NDArray[np.int64]
    bias: NDArray[np.int64]
    weight_qtype: QType

    def bias_qtype(self, source_scale: float) -> QType:
        """Return the format of the bias behind activations of this scale."""
        scale = self.weight_qtype.scale
        if isinstance(scale, tuple):
            return QType(32, signed=True, scale=tuple(source_scale * s for s in scale))
        return QType(32, signed=True, scale=source_scale * scale)

    def real(self, source_scale: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the weights and the bias [1, outC] that the codes stand for."""
        bias = self.bias_qtype(source_scale).dequantize(self.bias.reshape(1, -1), axis=1)
        return self.weight_qtype.dequantize(self.weights), bias


@dataclass(frozen=True, slots=True, eq=False)
class FixedParams:
    """Everything that a canonical graph lacks to be a fixed one.

    Parameters
    ----------
    activations
        Format of graph inputs, of results and of constant operands of ``add``, ``sub`` and
        ``mul`` by tensor name. Some follow: ``softmax`` and ``argmax_reduce`` have formats of
        their own, ``max_pool`` and operators that move elements keep their input's. Where operands
        of ``max``, ``min`` and ``concat`` have another format than the result, they are
        requantized.
    layers
        Integers of each ``conv`` and ``linear`` by node name.
    mult_bits
        Width of requantization multipliers by node name, 16 if nothing is said.
    rounding
        How sums become codes: ``half_up`` or ``tflite``.
    """

    activations: Mapping[str, QType]
    layers: Mapping[str, LayerParams]
    mult_bits: Mapping[str, int] = field(default_factory=dict)
    rounding: str = "half_up"


def softmax_qtype(rounding: str) -> QType:
    """Format of the results of a softmax."""
    return TFLITE_SOFTMAX_QTYPE if rounding == "tflite" else SOFTMAX_QTYPE


def argmax_qtype(channels: int) -> QType:
    """Format of indices below ``channels``."""
    return QType(bits=max(1, (channels - 1).bit_length()), signed=False, scale=1.0)


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
    builder = _Builder(graph, params)
    for name in graph.inputs:
        builder.set_qtype(name, params.activations[name])
    for node in graph.nodes:
        builder.convert(node)
    fixed = graph.replaced(nodes=tuple(builder.nodes), tensors=builder.tensors, stage=Stage.FIXED)
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
    def _tflite(self) -> bool:
        return self.params.rounding == "tflite"

    def convert(self, node: Node) -> None:
        if self._tflite and node.op not in _TFLITE_OPS:
            raise UnsupportedError(
                f"{node.op} {node.name!r} has no TensorFlow Lite rounding",
                remedy="use rounding = 'half_up'",
                location=node.location,
            )
        if node.op in ONE_FORMAT_OPS:
            node = self._in_one_format(node)
        elif node.op in ARITHMETIC_OPS:
            node = self._arithmetic(node)
        else:
            node = self._of_one_activation(node, self.qtype(node.inputs[0]))
        self.nodes.append(node)

    def _of_one_activation(self, node: Node, source: QType) -> Node:
        if node.op in KEEPS_QTYPE:
            self.set_qtype(node.name, source)
            if node.op == "pad":
                _check_padding(node, source)
        elif node.op == "argmax_reduce":
            self.set_qtype(node.name, argmax_qtype(self.graph.tensor(node.inputs[0]).shape[1]))
        elif node.op == "softmax":
            self.set_qtype(node.name, softmax_qtype(self.params.rounding))
            _check_table(node, source)
            make_table = tflite_exp_table if self._tflite else exp_table
            node = node.with_attrs(table=make_table(_scale(source), 1 << source.bits))
        else:
            target = self.params.activations[node.name]
            self.set_qtype(node.name, target)
            if node.op in TABLE_OPS:
                _check_table(node, source)
                node = node.with_attrs(table=unary_table(unary_function(node), source, target))
            elif node.op in {"avg_pool", "box"}:
                node = self._average(node, source, target)
            else:
                node = self._layer(node, source, target)
        return node

    def _in_one_format(self, node: Node) -> Node:
        """Quantize constants and map codes of operands whose format is not the result's."""
        target = self.params.activations[node.name]
        self.set_qtype(node.name, target)
        operands: dict[str, str] = {}
        for position, name in enumerate(node.inputs):
            data = self.tensors[name].data
            if name in operands:
                continue
            if data is not None:
                operands[name] = self._constant(node, position, target.quantize(data), target)
            elif self.qtype(name) == target:
                operands[name] = name
            else:
                operands[name] = self._requantized(node, name, target)
        return replace(node, inputs=tuple(operands[name] for name in node.inputs))

    def _requantized(self, node: Node, name: str, target: QType) -> str:
        """Emit a table of the codes that another format has for the same numbers."""
        result, count = f"{name}_in_{node.name}", 2
        while result in self.tensors:
            result, count = f"{name}_in_{node.name}_{count}", count + 1
        table = Node("requantize", (name,), (result,), {}, node.location)
        self.tensors[result] = replace(self.tensors[name], name=result, quant=None, label=None)
        self.set_qtype(result, target)
        entries = unary_table(unary_function(table), self.qtype(name), target)
        self.nodes.append(table.with_attrs(table=entries))
        return result

    def _arithmetic(self, node: Node) -> Node:
        target = self.params.activations[node.name]
        self.set_qtype(node.name, target)
        inputs = [self._operand(node, position) for position in (0, 1)]
        node = replace(node, inputs=tuple(inputs))
        formats = [self.qtype(name) for name in inputs]
        first, second = (_scale(qtype) for qtype in formats)
        limits = [(q.lo - q.zero_point, q.hi - q.zero_point) for q in formats]
        if node.op == "mul":
            corners = [a * b for a in limits[0] for b in limits[1]]
            bits = signed_bits(min(corners), max(corners))
            factor = first * second / _scale(target)
            return node.with_attrs(requant=self._requant(node, [factor], target, bits))
        if self._tflite:
            requant = tflite_add_requant((first, second), target, lo=_relu_limit(node, target))
            return node.with_attrs(requant=requant)
        sign = 1.0 if node.op == "add" else -1.0
        with _located(node):
            exact = choose_add_requant(
                (first / _scale(target), sign * second / _scale(target)),
                target,
                mult_bits=self.params.mult_bits.get(node.name, MULT_BITS),
                lo=_relu_limit(node, target),
                operand_bits=max(signed_bits(*pair) for pair in limits),
            )
        return node.with_attrs(requant=exact)

    def _operand(self, node: Node, position: int) -> str:
        name = node.inputs[position]
        data = self.tensors[name].data
        if data is None:
            return name
        qtype = self.params.activations[name]
        return self._constant(node, position, qtype.quantize(data), qtype)

    def _average(self, node: Node, source: QType, target: QType) -> Node:
        taps = int(np.prod(node.attrs["size"]))
        if self._tflite:
            if source != target:
                raise UnsupportedError(
                    f"avg_pool {node.name!r} has another format than its input, which TensorFlow "
                    "Lite does not allow",
                    remedy="use rounding = 'half_up'",
                    location=node.location,
                )
            requant = TfliteAverage(taps, target.zero_point, target.lo, target.hi)
            return node.with_attrs(requant=requant)
        top = taps * max(source.hi - source.zero_point, source.zero_point - source.lo)
        counts = [taps if node.op == "avg_pool" else 1]
        if node.attrs["border"] == "ignore":
            shape = self.graph.tensor(node.inputs[0]).shape
            counts = np.unique(pool_counts(node.attrs, shape)).tolist()
        factors = [_scale(source) / (_scale(target) * count) for count in counts]
        return node.with_attrs(requant=self._requant(node, factors, target, signed_bits(-top, top)))

    def _layer(self, node: Node, source: QType, target: QType) -> Node:
        layer = self.params.layers[node.name]
        bias_qtype = layer.bias_qtype(_scale(source))
        factors = (np.atleast_1d(bias_qtype.scale) / _scale(target)).tolist()
        bias = np.asarray(layer.bias, np.int64).reshape(1, -1)
        weights = np.asarray(layer.weights, np.int64)
        names = (
            self._constant(node, 1, weights, layer.weight_qtype),
            self._constant(node, 2, bias, bias_qtype),
        )
        folded = fold_zero_point(bias, weights, source.zero_point)
        limits = accumulator_range(weights, folded, source.lo, source.hi)
        requant = self._requant(node, factors, target, signed_bits(*limits))
        node = replace(node, inputs=(node.inputs[0], *names))
        return node.with_attrs(requant=requant)

    def _requant(
        self, node: Node, factors: list[float], target: QType, acc_bits: int
    ) -> Requant | TfliteRequant:
        if self._tflite:
            lo, once = _relu_limit(node, target), node.op == "linear"
            return tflite_requant(factors, target, lo=lo, rounds_once=once)
        with _located(node):
            return choose_requant(
                factors,
                target,
                mult_bits=self.params.mult_bits.get(node.name, MULT_BITS),
                lo=_relu_limit(node, target),
                acc_bits=acc_bits,
            )

    def _constant(self, node: Node, position: int, codes: NDArray[np.int64], qtype: QType) -> str:
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


def _relu_limit(node: Node, target: QType) -> int | None:
    """Return the least code of a result behind a fused ReLU, None without one."""
    if node.attrs.get("activation") != "relu":
        return None
    return max(target.lo, target.zero_point)


@contextmanager
def _located(node: Node) -> Iterator[None]:
    """Give a node's location to what no multiplier can do."""
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


def _check_padding(node: Node, source: QType) -> None:
    """Refuse to put a value around an image that its format does not reach."""
    lo, hi = source.dequantize([source.lo, source.hi]).tolist()
    value, step = float(node.attrs["value"]), _scale(source)
    if not lo - step < value < hi + step:
        raise UnsupportedError(
            f"pad {node.name!r}: its value {value:g} lies outside of {lo:g}..{hi:g}, the range of "
            "its input's format",
            remedy="quantize the input with a range that has it",
            location=node.location,
        )


def _check_table(node: Node, source: QType) -> None:
    if node.op in EXACT_TABLE_OPS and source.bits > TABLE_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: its input has {source.bits} bits, "
            f"its table has at most {TABLE_BITS}",
            remedy=f"give the input a format of at most {TABLE_BITS} bits",
            location=node.location,
        )
