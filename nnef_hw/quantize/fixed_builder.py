"""A fixed graph in the making: tensors with their formats, nodes with their integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType, Requant, choose_division, choose_requant
from nnef_hw.arithmetic.tables import TABLE_BITS, unary_table
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant, tflite_requant
from nnef_hw.errors import UnsupportedError
from nnef_hw.ir import Graph, Node, State, Tensor
from nnef_hw.ir.activation import activation_limits
from nnef_hw.ir.operators import PerOperator
from nnef_hw.quantize.formats import scale_of
from nnef_hw.quantize.integers import bits_of_fractions, divisor
from nnef_hw.quantize.params import MULT_BITS, FixedParams
from nnef_hw.quantize.tflite.short_arithmetic import short_table
from nnef_hw.quantize.tflite.tables import tflite_table
from nnef_hw.reference import unary_function

__all__ = ["FixedBuilder", "converts", "limited", "located"]


class FixedBuilder:
    """Converts nodes of a canonical graph one after the other.

    Attributes
    ----------
    tensors : dict
        Tensors by name, those of the fixed stage and those that are still to be converted.
    nodes : list
        Nodes of the fixed stage so far.
    """

    def __init__(self, graph: Graph, params: FixedParams) -> None:
        self.graph = graph
        self.params = params
        self.tensors: dict[str, Tensor] = dict(graph.tensors)
        self.nodes: list[Node] = []

    def set_qtype(self, name: str, qtype: QType) -> None:
        """Give a tensor a format."""
        self.tensors[name] = replace(self.tensors[name], qtype=qtype)

    def qtype(self, name: str) -> QType:
        """Return the format of a tensor that has one."""
        qtype = self.tensors[name].qtype
        assert qtype is not None, name
        return qtype

    def is_integer(self, name: str) -> bool:
        """Whether the codes of an activation stand for themselves, as in an integer network."""
        qtype = self.qtype(name)
        return qtype.scale == 1 and qtype.zero_point == 0

    @property
    def is_tflite(self) -> bool:
        """Whether sums are rounded as TensorFlow Lite rounds them."""
        return self.params.rounding == "tflite"

    def convert(self, node: Node) -> None:
        """Convert a node whose operands are converted."""
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
        return [scale_of(self.qtype(name)) for name in node.inputs]

    def requant(
        self, node: Node, factors: list[float], target: QType, acc_bits: int
    ) -> Requant | TfliteRequant:
        """Choose how sums become codes of a result.

        Parameters
        ----------
        factors
            Steps of the result per step of the sums; one, or one for each channel.
        target
            Format of the result.
        acc_bits
            Width of the sums.
        """
        if self.is_tflite:
            is_product = node.attrs.get("is_product") or node.attrs.get("is_short")
            is_linear = not is_product and (node.op == "linear" or "is_linear" in node.attrs)
            is_wide = not is_linear and self._sums_are_wide(node)
            once = is_linear or is_wide
            limits = limited(node, target)
            return tflite_requant(factors, target, **limits, rounds_once=once, is_wide=is_wide)
        mult_bits = self.params.mult_bits.get(node.name, MULT_BITS)
        limits = limited(node, target)
        is_integer = self.is_integer(node.inputs[0]) and self.is_integer(node.name)
        with located(node):
            count = divisor(factors) if is_integer else 0
            if count:
                return choose_division(count, target, acc_bits=acc_bits, **limits)
            if is_integer:
                mult_bits = max(mult_bits, bits_of_fractions(factors))
            return choose_requant(factors, target, mult_bits=mult_bits, **limits, acc_bits=acc_bits)

    def _sums_are_wide(self, node: Node) -> bool:
        """Whether TensorFlow Lite's sums have 64 bits, which it rounds in a third way."""
        is_wide = node.op == "conv" and self.qtype(node.inputs[0]).bits > TABLE_BITS
        return is_wide and not node.attrs.get("is_product", False)

    def constant(self, node: Node, position: int, codes: NDArray[np.int64], qtype: QType) -> str:
        """Store the codes of a constant operand; return the name of their tensor."""
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


converts = PerOperator[Callable[[FixedBuilder, Node], Node]]("conversion to the fixed stage")
"""Set the format of the result, quantize constants, and return the node of the fixed stage."""


def limited(node: Node, target: QType) -> dict[str, int]:
    """Return the least and the greatest code of a result, as its activation limits it."""
    lo, hi = target.quantize(activation_limits(node)).tolist()
    return {"lo": lo, "hi": hi}


@contextmanager
def located(node: Node) -> Iterator[None]:
    """Add a node's location to the error of a factor that no multiplier represents."""
    try:
        yield
    except ValueError as error:
        raise UnsupportedError(
            f"{node.op} {node.name!r}: {error}",
            remedy="calibrate with samples that use the whole range of every layer",
            location=node.location,
        ) from error
