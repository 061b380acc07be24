"""``LOGISTIC`` and ``TANH`` of 16-bit codes, as TensorFlow Lite's reference kernels compute them.

Both interpolate between the same 256 values of the logistic function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.ir import Node

__all__ = ["has_wide_table", "wide_table"]

Codes = NDArray[np.int64]

_BITS = 16
_TOP = (1 << _BITS) - 1
_PER_UNIT = 24
"""Values of the logistic function from one whole number to the next."""


def has_wide_table(node: Node, source: QType, target: QType) -> bool:
    """Tell whether a kernel computes it so: of a function of these, in the formats it demands."""
    is_wide = source.bits == target.bits == _BITS and target.scale == 2.0 ** (1 - _BITS)
    return (
        is_wide and _TABLES.get(node.op) is not None and source.zero_point == target.zero_point == 0
    )


def wide_table(node: Node, source: QType) -> Codes:
    """Return the results at every code of 16 bits, lowest code first; their scale is 2**-15."""
    codes = np.arange(-(1 << (_BITS - 1)), 1 << (_BITS - 1))
    return _TABLES[node.op](source, codes)


def _logistic_values() -> Codes:
    """Return 2**16 times the logistic function at 0, 1/24, ... 255/24, as the kernels have it.

    The function lies above the lines between its values, whose greatest error is halved: every
    value is greater by half of that error in the middle of the line behind it. The last value is
    the one that results are limited to.
    """
    at = np.arange(1 << 8) / _PER_UNIT
    step = 1 / _PER_UNIT

    def logistic(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return (1 << _BITS) / (1 + np.exp(-x))

    error = logistic(at + step / 2) - (logistic(at) + logistic(at + step)) / 2
    values = np.floor(logistic(at) + error / 2 + 0.5).astype(np.int64)
    values[-1] = _TOP
    return values


def _argument(source: QType, codes: Codes, exponents: Collection[int]) -> Codes:
    """Return real numbers in steps of 2**-12 / 3 (``SigmoidPrepare``, ``TanhPrepare``).

    Scales that are nearly a power of two, with one of these exponents, are taken for it.
    """
    assert isinstance(source.scale, float), "activations have one scale"
    exponent = round(math.log2(source.scale))
    if abs(math.log2(source.scale) - exponent) < 1e-3 and exponent in exponents:
        return codes * (3 << (exponent + 12))
    factor, shift = source.scale * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    half = (1 << shift) >> 1
    return (codes * int(factor) + half) >> shift


def _interpolated(argument: Codes, step_bits: int, highest: int) -> Codes:
    """Return 2**(16 + step_bits) times the logistic function of the argument's magnitude."""
    values = _logistic_values()
    magnitude = np.abs(argument)
    place, rest = magnitude >> step_bits, magnitude & ((1 << step_bits) - 1)
    place = np.minimum(place, len(values) - 1)
    after = np.minimum(place + 1, len(values) - 1)
    result = (values[place] << step_bits) + rest * (values[after] - values[place])
    return np.where(place == len(values) - 1, highest, result)


def _sigmoid(source: QType, codes: Codes) -> Codes:
    argument = _argument(source, codes, (-12,))
    above = _interpolated(argument, 9, 0x7FFF << 10)
    half = 1 << 9
    return np.where(argument >= 0, above + half, (1 << 25) - above + half - 1) >> 10


def _tanh(source: QType, codes: Codes) -> Codes:
    """Return ``2 * logistic(2 * x) - 1``."""
    argument = _argument(source, codes, (-12, -11))
    above = _interpolated(argument, 8, _TOP << 8) - (1 << 23)
    half = 1 << 7
    return np.where(argument >= 0, above + half, -above + half - 1) >> 8


_TABLES: Mapping[str, Callable[[QType, Codes], Codes]] = MappingProxyType({
    "sigmoid": _sigmoid,
    "tanh": _tanh,
})
