"""Tables of functions as TensorFlow Lite's reference kernels compute their codes.

Some of its functions on 8 bits are computed from codes, with fixed-point multipliers; others are
tables of real numbers in single precision. The rest are as ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.tables import TABLE_BITS, lowest_code, unary_table
from nnef_hw.arithmetic.tflite.numerics import halves_away, tflite_requant
from nnef_hw.ir import Node
from nnef_hw.quantize.tflite.wide_tables import has_wide_table, wide_table
from nnef_hw.reference import unary_function

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

    What a kernel computes of more than 8 bits has a result for every code of these, too; other
    functions have our own interpolated tables.
    """
    if has_wide_table(node, source, target):
        return wide_table(node, source)
    table = _TABLES.get(node.op)
    if table is None or (source.bits > TABLE_BITS and table is _looked_up):
        return unary_table(unary_function(node), source, target)
    codes = lowest_code(source) + np.arange(1 << source.bits)
    return table(node, source, target, codes - source.zero_point)


def _scaled(differences: Codes, factor: float, target: QType) -> Codes:
    return tflite_requant(factor, target).apply(differences.reshape(-1, 1)).reshape(-1)


def _scale(qtype: QType) -> float:
    assert isinstance(qtype.scale, float), "activations have one scale"
    return qtype.scale


def _requantized(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    if node.attrs.get("is_joined"):
        return _joined(source, target, differences)
    return _scaled(differences, _scale(source) / _scale(target), target)


def _joined(source: QType, target: QType, differences: Codes) -> Codes:
    """Return the codes of ``ConcatenationWithScaling``, in single precision."""
    factor = np.float32(_scale(source)) * (np.float32(1.0) / np.float32(_scale(target)))
    codes = (differences + source.zero_point).astype(np.float32)
    steps = codes * factor - np.float32(source.zero_point) * factor
    nearest = halves_away(steps).astype(np.int64)
    return np.asarray((nearest + target.zero_point).clip(target.lo, target.hi))


def _leaky(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    scale, divisor = _scale(source), _scale(target)
    above = _scaled(differences, single_quotient(scale, divisor=divisor), target)
    alpha, step = node.attrs["alpha"], node.attrs.get("alpha_step")
    code = 1
    if step is not None:  # PRELU multiplies codes
        alpha, code = step, round(alpha / step)
    slope = single_quotient(scale, alpha, divisor=divisor)
    return np.where(differences >= 0, above, _scaled(differences * code, slope, target))


def _limited(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    factor = single_quotient(_scale(source), divisor=_scale(target))
    lo, hi = node.attrs.get("a", 0.0), node.attrs.get("b", np.inf)
    limits = target.quantize(np.array([lo, min(hi, 1e30)]))
    return np.clip(_scaled(differences, factor, target), *limits)


def _looked_up(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    """Fill a table in single precision, halves away from 0 (``LUTPopulate``)."""
    real = np.float32(_scale(source)) * differences.astype(np.float32)
    with np.errstate(all="ignore"):
        results = np.asarray(unary_function(node)(real.astype(np.float64)), np.float32)
    steps = results * (np.float32(1.0) / np.float32(_scale(target)))
    nearest = halves_away(steps) + target.zero_point
    limited = np.nan_to_num(nearest, nan=target.lo).clip(target.lo, target.hi)
    return np.asarray(limited.astype(np.int64))


def _absolute(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    del node
    factor = single_quotient(_scale(source), divisor=_scale(target))
    return _scaled(np.abs(differences), factor, target)


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


def _root(node: Node, source: QType, target: QType, differences: Codes) -> Codes:
    """Return square roots in single precision, rounded down; those of negative numbers are 0."""
    del node
    real = np.float32(_scale(source)) * np.maximum(differences, 0).astype(np.float32)
    codes = np.floor(np.sqrt(real) / np.float32(_scale(target))).astype(np.int64)
    return np.asarray((codes + target.zero_point).clip(target.lo, target.hi))


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
    "abs": _absolute,
    "clamp": _limited,
    "elu": _looked_up,
    "exp": _looked_up,
    "hard_swish": _hard_swish,
    "leaky_relu": _leaky,
    "log": _looked_up,
    "pointwise": _looked_up,
    "relu": _limited,
    "requantize": _requantized,
    "sigmoid": _looked_up,
    "sqrt": _root,
    "tanh": _looked_up,
})
