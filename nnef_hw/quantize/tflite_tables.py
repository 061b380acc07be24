"""Tables of functions as TensorFlow Lite's reference kernels compute their codes.

Most of its functions on 8 bits are tables of rounded real numbers, as ours are. Those below are
computed from codes, with its fixed-point multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Node
from nnef_hw.numerics import QType
from nnef_hw.reference import unary_function
from nnef_hw.tables import TABLE_BITS, lowest_code, table_size, unary_table
from nnef_hw.tflite_numerics import tflite_requant

__all__ = ["single_quotient", "tflite_table"]

Codes = NDArray[np.int64]

_Table = Callable[[Node, QType, QType, Codes], Codes]
"""Codes of the result for differences ``code - zero_point`` of the input."""


def single_quotient(*factors: float, divisor: float) -> float:
    """Return a product over a number, as TensorFlow Lite computes it: in single precision."""
    product = np.float32(1.0)
    for factor in factors:
        product *= np.float32(factor)
    return float(product / np.float32(divisor))


def tflite_table(node: Node, source: QType, target: QType) -> Codes:
    """Return the codes of a function at every code of its input, lowest code first.

    Inputs of more than 8 bits have our own interpolated tables.
    """
    table = _TABLES.get(node.op)
    if table is None or source.bits > TABLE_BITS:
        return unary_table(unary_function(node), source, target)
    codes = lowest_code(source) + np.arange(table_size(source.bits))
    return table(node, source, target, codes - source.zero_point)


def _scaled(differences: Codes, factor: float, target: QType) -> Codes:
    return tflite_requant(factor, target).apply(differences.reshape(-1, 1)).reshape(-1)


def _scale(qtype: QType) -> float:
    assert isinstance(qtype.scale, float), "activations have one scale"
    return qtype.scale


def _requantized(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    del node
    return _scaled(differences, _scale(source) / _scale(target), target)


def _leaky(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    scale, divisor = _scale(source), _scale(target)
    above = _scaled(differences, single_quotient(scale, divisor=divisor), target)
    slope = single_quotient(scale, node.attrs["alpha"], divisor=divisor)
    return np.where(differences >= 0, above, _scaled(differences, slope, target))


def _limited(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    factor = single_quotient(_scale(source), divisor=_scale(target))
    lo, hi = node.attrs.get("a", 0.0), node.attrs.get("b", np.inf)
    limits = target.quantize(np.array([lo, min(hi, 1e30)]))
    return np.clip(_scaled(differences, factor, target), *limits)


def _hard_swish(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    """Return ``x * clamp(x / 6 + 1 / 2, 0, 1)`` in 16 bits, 7 of them below the code's point."""
    del node
    fine = differences << _FINE_BITS
    scale = np.float32(_scale(source)) * np.float32(2.0**-_FINE_BITS)
    to_output, output_shift = _short_fraction(float(scale / np.float32(_scale(target))))
    to_gate, gate_shift = _short_fraction(float(scale / np.float32(3.0 / 32768.0)))
    value = _short_product(fine, to_output)
    gate = _saturated(fine << max(gate_shift - 1, 0))
    gate = _short_product(gate, to_gate)
    gate = _saturated(gate << 1) if gate_shift > 0 else _rounded_shift(gate, -gate_shift)
    product = ((gate + (1 << 15)) >> 1) * value
    product = np.sign(product) * (np.abs(product) >> 15)
    result = _rounded_shift(product, -output_shift) + target.zero_point
    return np.asarray(result.clip(target.lo, target.hi))


_FINE_BITS = 7


def _short_fraction(factor: float) -> tuple[int, int]:
    """Return 16 bits of mult, of 32 rounded, and the shift that belongs to them."""
    requant = tflite_requant(factor, QType(8, True, 1.0))
    mult = min((requant.mult[0] + (1 << 15)) >> 16, (1 << 15) - 1)
    return mult, requant.shift[0]


def _short_product(a: Codes, b: int) -> Codes:
    """Return ``a * b / 2**15`` rounded, halves up; saturated."""
    return np.asarray(np.minimum((a * b + (1 << 14)) >> 15, (1 << 15) - 1))


def _saturated(x: Codes) -> Codes:
    return np.asarray(x.clip(-(1 << 15), (1 << 15) - 1))


def _rounded_shift(x: Codes, exponent: int) -> Codes:
    """Return ``x / 2**exponent`` rounded, halves away from 0."""
    half = (1 << exponent) >> 1
    return np.asarray(np.sign(x) * ((np.abs(x) + half) >> exponent))


_TABLES: Mapping[str, _Table] = MappingProxyType({
    "clamp": _limited,
    "hard_swish": _hard_swish,
    "leaky_relu": _leaky,
    "relu": _limited,
    "requantize": _requantized,
})
