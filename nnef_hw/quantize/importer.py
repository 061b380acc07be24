"""Build a fixed graph from given integers and scales, wherever they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Graph, Node, Stage, Tensor, verify
from nnef_hw.ir.verify import TABLE_OPS
from nnef_hw.numerics import (
    SOFTMAX_QTYPE,
    QType,
    Requant,
    accumulator_range,
    choose_requant,
    exp_table,
    fold_zero_point,
    signed_bits,
    unary_table,
)
from nnef_hw.reference import unary_function

__all__ = ["KEEPS_QTYPE", "FixedParams", "LayerParams", "argmax_qtype", "build_fixed"]

KEEPS_QTYPE = frozenset({"max_pool", "reshape"})
"""Operators whose result has their input's format."""

MAX_TABLE_BITS = 8


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


@dataclass(frozen=True, slots=True, eq=False)
class FixedParams:
    """Everything that a canonical graph lacks to be a fixed one.

    Parameters
    ----------
    activations
        Format of graph inputs and of results of ``conv``, ``linear``, ``avg_pool`` and table
        operators by tensor name. Others follow: ``softmax`` and ``argmax_reduce`` have formats of
        their own, ``max_pool`` and ``reshape`` keep their input's.
    layers
        Integers of each ``conv`` and ``linear`` by node name.
    mult_bits
        Width of requantization multipliers.
    """

    activations: Mapping[str, QType]
    layers: Mapping[str, LayerParams]
    mult_bits: int = 16


def argmax_qtype(channels: int) -> QType:
    """Format of indices below ``channels``."""
    return QType(bits=max(1, (channels - 1).bit_length()), signed=False, scale=1.0)


def build_fixed(graph: Graph, params: FixedParams) -> Graph:
    """Turn a canonical graph into a fixed one.

    Mult, shift and tables are derived here in float64 and nowhere else.

    Raises
    ------
    UnsupportedError
        If a table would need over 8 bits, or scales differ too much for any multiplier.
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

    def convert(self, node: Node) -> None:
        source = self.qtype(node.inputs[0])
        if node.op in KEEPS_QTYPE:
            self.set_qtype(node.name, source)
        elif node.op == "argmax_reduce":
            self.set_qtype(node.name, argmax_qtype(self.graph.tensor(node.inputs[0]).shape[1]))
        elif node.op == "softmax":
            self.set_qtype(node.name, SOFTMAX_QTYPE)
            _check_table(node, source)
            node = node.with_attrs(table=exp_table(_scale(source), 1 << source.bits))
        else:
            target = self.params.activations[node.name]
            self.set_qtype(node.name, target)
            if node.op in TABLE_OPS:
                _check_table(node, source)
                node = node.with_attrs(table=unary_table(unary_function(node), source, target))
            elif node.op == "avg_pool":
                node = self._average(node, source, target)
            else:
                node = self._layer(node, source, target)
        self.nodes.append(node)

    def _average(self, node: Node, source: QType, target: QType) -> Node:
        taps = int(np.prod(node.attrs["size"]))
        top = taps * max(source.hi - source.zero_point, source.zero_point - source.lo)
        factor = _scale(source) / (_scale(target) * taps)
        return node.with_attrs(
            requant=self._requant(node, [factor], target, signed_bits(-top, top))
        )

    def _layer(self, node: Node, source: QType, target: QType) -> Node:
        layer = self.params.layers[node.name]
        scale = layer.weight_qtype.scale
        bias_scale: Any
        if isinstance(scale, tuple):
            bias_scale = tuple(_scale(source) * s for s in scale)
            factors = [s / _scale(target) for s in bias_scale]
        else:
            bias_scale = _scale(source) * scale
            factors = [bias_scale / _scale(target)]
        bias_qtype = QType(bits=32, signed=True, scale=bias_scale)
        bias = np.asarray(layer.bias, np.int64).reshape(1, -1)
        weights = np.asarray(layer.weights, np.int64)
        names = (
            self._constant(node, 1, weights, layer.weight_qtype),
            self._constant(node, 2, bias, bias_qtype),
        )
        folded = fold_zero_point(bias, weights, source.zero_point)
        limits = accumulator_range(weights, folded, source.lo, source.hi)
        relu = node.attrs.get("activation") == "relu"
        requant = self._requant(node, factors, target, signed_bits(*limits), relu=relu)
        node = replace(node, inputs=(node.inputs[0], *names))
        return node.with_attrs(requant=requant)

    def _requant(
        self,
        node: Node,
        factors: list[float],
        target: QType,
        acc_bits: int,
        *,
        relu: bool = False,
    ) -> Requant:
        try:
            return choose_requant(
                factors,
                target,
                mult_bits=self.params.mult_bits,
                lo=max(target.lo, target.zero_point) if relu else None,
                acc_bits=acc_bits,
            )
        except ValueError as error:
            raise UnsupportedError(
                f"{node.op} {node.name!r}: {error}",
                remedy="calibrate with samples that use the whole range of every layer",
                location=node.location,
            ) from error

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


def _scale(qtype: QType) -> float:
    assert not isinstance(qtype.scale, tuple), "activations have one scale"
    return qtype.scale


def _check_table(node: Node, source: QType) -> None:
    if source.bits > MAX_TABLE_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: its input has {source.bits} bits, "
            f"tables have at most {MAX_TABLE_BITS}",
            remedy=f"use activations of at most {MAX_TABLE_BITS} bits",
            location=node.location,
        )
