"""Logistic function and tanh of 16-bit codes, as gemmlowp's fixed-point library computes them.

TensorFlow Lite's integer LSTM has them between its gates. Numbers are 16-bit integers with a fixed
number of integer bits: Qn has n of them, and a sign.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["MOST_INTEGER_BITS", "short_logistic", "short_tanh"]

IntArray = NDArray[np.int64]

MOST_INTEGER_BITS = 4
"""Of a number whose tanh is taken."""

_TOP = (1 << 15) - 1
_FACTORS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)
"""``exp(-2**n)`` for n = -2..4, in 32 bits."""


def short_logistic(codes: ArrayLike, integer_bits: int = 3) -> IntArray:
    """Q0 ``1 / (1 + exp(-x))`` of numbers with so many integer bits."""
    x = np.asarray(codes, np.int64)
    positive = _shifted(_reciprocal(_exp(-np.abs(x), integer_bits)), 1)
    return np.where(x > 0, positive, np.where(x < 0, _TOP - positive, 1 << 14))


def short_tanh(codes: ArrayLike, integer_bits: int) -> IntArray:
    """Q0 ``tanh(x)`` of numbers with so many integer bits, at most :data:`MOST_INTEGER_BITS`."""
    x = np.asarray(codes, np.int64)
    inverse = _reciprocal(_exp(-np.abs(x), integer_bits + 1))
    magnitude = _shifted(inverse - (1 << 13), 2)
    return np.where(x == 0, 0, np.sign(x) * magnitude)


def _exp(a: IntArray, integer_bits: int) -> IntArray:
    """Q0 exp of numbers none of which is positive."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    rest = (a & (quarter - 1)) - quarter
    result = _exp_of_quarter(_shifted(rest, integer_bits))
    whole = rest - a
    for exponent, factor in enumerate(_FACTORS, start=-2):
        if exponent < integer_bits:
            is_set = (whole >> (fraction_bits + exponent)) & 1
            result = np.where(is_set == 1, _product(result, _short(factor)), result)
    return np.where(a == 0, _TOP, result)


def _exp_of_quarter(a: IntArray) -> IntArray:
    """Q0 exp of Q0 numbers in -1/4..0: a Taylor series about -1/8."""
    at_center, third = _short(1895147668), _short(715827883)
    x = a + (1 << 12)
    x2 = _product(x, x)
    x3, x4 = _product(x2, x), _product(x2, x2)
    series = _product(_divided(x4, 2) + x3, third) + x2
    return _saturated(at_center + _product(at_center, x + _divided(series, 1)))


def _reciprocal(a: IntArray) -> IntArray:
    """Q2 ``2 / (1 + a)`` of Q0 numbers in 0..1: three steps of Newton-Raphson."""
    half = (a + _TOP + 1) >> 1
    x = _short(1515870810) + _product(half, _short(-1010580540))
    for _ in range(3):
        error = (1 << 13) - _product(half, x)
        x = x + _shifted(_product(x, error), 2)
    return np.asarray(x)


def _short(value: int) -> IntArray:
    """Return a 32-bit constant in 16 bits."""
    return _divided(np.asarray(value, np.int64), 16)


def _product(a: ArrayLike, b: ArrayLike) -> IntArray:
    """Return ``a * b / 2**15`` rounded, halves up; saturated."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray(np.minimum((product + (1 << 14)) >> 15, _TOP))


def _divided(x: IntArray, exponent: int) -> IntArray:
    """Return ``x / 2**exponent`` rounded, halves away from 0."""
    half = (1 << exponent) >> 1
    return np.asarray(np.sign(x) * ((np.abs(x) + half) >> exponent))


def _shifted(x: IntArray, exponent: int) -> IntArray:
    """Return ``x * 2**exponent``, saturated."""
    return _saturated(x << exponent)


def _saturated(x: IntArray) -> IntArray:
    return np.asarray(x.clip(-_TOP - 1, _TOP))
