"""Arithmetic of TensorFlow Lite's integer LSTM: its gates and its cell have 16 bits.

Nodes that the front end marked with ``is_short`` are computed so.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import AddRequant, QType, choose_add_requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.arithmetic.tflite.short_functions import short_logistic, short_tanh
from nnef_hw.ir import Node

__all__ = ["short_product", "short_sum", "short_table"]

_CODE_BITS = 16
_MULT = (1 << 30) + 1
"""Exceeds a power of two by so little that only halves are moved, to the side away from 0."""


def short_sum(target: QType, operand_bits: int, *, lo: int, hi: int) -> AddRequant:
    """Return the sum of two operands with the steps of the result, which is limited."""
    return choose_add_requant((1.0, 1.0), target, operand_bits=operand_bits, lo=lo, hi=hi)


def short_product(factor: float, target: QType) -> TfliteRequant:
    """Return the product of two 16-bit operands, times a power of two, halves away from 0."""
    exponent = -round(math.log2(factor))
    assert math.isclose(factor, 2.0**-exponent), f"{factor} is no power of two"
    return TfliteRequant(
        (_MULT,), (1 - exponent,), target.zero_point, target.lo, target.hi, rounds_once=True
    )


def short_table(node: Node, source: QType) -> NDArray[np.int64]:
    """Return the codes of ``sigmoid`` or ``tanh`` at every code of 16 bits, lowest code first."""
    assert isinstance(source.scale, float), "activations have one scale"
    assert source.bits == _CODE_BITS, source
    codes = np.arange(source.lo, source.hi + 1)
    function = {"sigmoid": short_logistic, "tanh": short_tanh}[node.op]
    return function(codes, round(math.log2(source.scale)) + _CODE_BITS - 1)
