"""Integers of functions of channels, and of front ends of audio: tables, constants, mults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nnef_hw.arithmetic.audio.log_mel import choose_log_mel
from nnef_hw.arithmetic.integer_functions import IntegerNormalizeRequant
from nnef_hw.arithmetic.normalization import choose_normalize
from nnef_hw.arithmetic.numerics import QType, choose_requant
from nnef_hw.arithmetic.softmax import exp_table
from nnef_hw.arithmetic.tables import TABLE_BITS
from nnef_hw.arithmetic.tflite.numerics import tflite_exp_table
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Node, Trait
from nnef_hw.ir.operators import LogSpectrumAttributes, MicroFrontendAttributes
from nnef_hw.quantize.fixed_builder import FixedBuilder, converts, located
from nnef_hw.quantize.formats import scale_of
from nnef_hw.quantize.params import AUDIO

__all__ = ["check_table"]

_FEATURE_MULT_BITS = 24
"""Bits of the mult of integers that are features already: their steps are far from codes'."""


@converts("softmax")
def _softmax(builder: FixedBuilder, node: Node) -> Node:
    source = builder.qtype(node.inputs[0])
    builder.take_format(node)
    check_table(node, source)
    make_table = tflite_exp_table if builder.is_tflite else exp_table
    masked = {"masked": True} if node.name in builder.params.masked else {}
    return node.with_attrs(table=make_table(scale_of(source), 1 << source.bits), **masked)


@converts("lookup")
def _lookup(builder: FixedBuilder, node: Node) -> Node:
    target = builder.take_format(node)
    data = builder.graph.constant(node.inputs[0])
    table = builder.constant(node, 0, target.quantize(data), target)
    return replace(node, inputs=(table, node.inputs[1]))


@converts("normalize")
def _normalize(builder: FixedBuilder, node: Node) -> Node:
    source, target = builder.qtype(node.inputs[0]), builder.take_format(node)
    gamma, beta = (builder.graph.constant(name) for name in node.inputs[1:])
    with located(node):
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


@converts("integer_softmax")
def _integer_softmax(builder: FixedBuilder, node: Node) -> Node:
    source = builder.qtype(node.inputs[0])
    builder.take_format(node)
    check_table(node, source)
    node = builder.with_operands(node)
    given = np.asarray(builder.tensors[node.inputs[1]].data, np.int64).reshape(-1)
    return node.with_attrs(table=given[np.minimum(np.arange(1 << source.bits), given.size - 1)])


@converts("integer_normalize")
def _integer_normalize(builder: FixedBuilder, node: Node) -> Node:
    target, node = builder.take_format(node), builder.with_operands(node)
    with located(node):
        requant = IntegerNormalizeRequant(
            channels=builder.graph.tensor(node.inputs[0]).shape[1],
            centered=node.attrs["centered"],
            shift=node.attrs["shift"],
            lo=target.lo,
            hi=target.hi,
        )
    return node.with_attrs(requant=requant)


@converts("log_mel", "log_bands")
def _log_mel(builder: FixedBuilder, node: Node) -> Node:
    source, target = _audio(builder, node), builder.take_format(node)
    front = node.attributes(LogSpectrumAttributes).front
    with located(node):
        return node.with_attrs(requant=choose_log_mel(front, target, scale_of(source)))


@converts("micro_frontend", "micro_frontend_step")
def _micro_frontend(builder: FixedBuilder, node: Node) -> Node:
    source, target = _audio(builder, node), builder.take_format(node)
    if source != AUDIO:
        raise UnsupportedError(
            f"micro_frontend {node.name!r}: its samples have {source.bits} bits and steps of "
            f"{scale_of(source):g}, and it computes with integers of 16 bits, of which 32768 is 1",
            remedy="give its input that format in graph.quant",
            location=node.location,
        )
    factor = node.attributes(MicroFrontendAttributes).scale / scale_of(target)
    with located(node):
        requant = choose_requant([factor], target, mult_bits=_FEATURE_MULT_BITS)
    return node.with_attrs(requant=requant)


@converts("micro_noise")
def _micro_noise(builder: FixedBuilder, node: Node) -> Node:
    builder.take_format(node)
    return node


def _audio(builder: FixedBuilder, node: Node) -> QType:
    """Return the format of samples of audio."""
    source = builder.qtype(node.inputs[0])
    if not source.signed or source.zero_point or source.bits > AUDIO.bits:
        sign = "" if source.signed else "without a sign, "
        raise UnsupportedError(
            f"{node.op} {node.name!r}: its samples have {source.bits} bits, {sign}with a zero "
            f"point of {source.zero_point}; audio has 16 bits with a sign, 0 for silence",
            remedy="let --front FILE.toml put it in front of the network, or give its input that "
            "format in graph.quant",
            location=node.location,
        )
    return source


def check_table(node: Node, source: QType) -> None:
    """Refuse an input of more bits than a whole table takes."""
    is_exact = node.has(Trait.EXACT_TABLE) or node.has(Trait.SHORT_OPERANDS)
    if is_exact and source.bits > TABLE_BITS:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: its input has {source.bits} bits, "
            f"its table has at most {TABLE_BITS}",
            remedy=f"give the input a format of at most {TABLE_BITS} bits",
            location=node.location,
        )
