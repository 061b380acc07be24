"""Scales and codes of a layer's weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.numerics import MAX_SHIFT
from nnef_hw.quantize.calibration.scheme import Scheme

__all__ = ["choose_scales", "fit_multipliers"]

FloatArray = NDArray[np.float64]

_BIAS_BITS = 24
_SHARES = np.linspace(1.0, 0.2, 81)
_LEAST_SHARE_OF_LARGEST = 2.0**-20
_CACHED = 8192
"""Weights, of 8 bytes each, that a processor's cache holds several times."""


def choose_scales(
    weights: ArrayLike,
    bias: ArrayLike,
    scheme: Scheme,
    source_scale: float,
    importance: FloatArray | None = None,
) -> FloatArray:
    """Return a scale for each output channel; all are the same if the scheme wants one.

    It is the share of the largest weight over the highest code that leaves the least squared
    error, but not so small that its bias would need over 24 bits.

    Parameters
    ----------
    weights
        [outC, ...].
    importance
        Mean square of the value that each weight is multiplied with; shape of ``weights``.
    """
    rows = np.asarray(weights, np.float64).reshape(len(np.asarray(weights)), -1)
    power = np.ones_like(rows) if importance is None else importance.reshape(rows.shape)
    scales = _least_error(rows, power, scheme)
    magnitude = np.abs(np.asarray(bias, np.float64).reshape(-1))
    scales = np.maximum(scales, magnitude / (source_scale * 2.0 ** (_BIAS_BITS - 1)))
    if not scales.any():
        return np.ones_like(scales)
    scales[scales == 0] = scales.max()
    scales = np.maximum(scales, scales.max() * _LEAST_SHARE_OF_LARGEST)
    if scheme.one_weight_scale:
        scales[:] = scales.max()
    return _powers_of_two(scales) if scheme.power_of_two else scales


def _least_error(rows: FloatArray, power: FloatArray, scheme: Scheme) -> FloatArray:
    """Return the scale of each row, 0 for rows of zeros."""
    unit = scheme.weight_format(1.0)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    largest[largest < np.finfo(np.float32).tiny] = 0.0
    if scheme.one_weight_scale:
        largest[:] = largest.max()
    candidates = largest[:, None] * _SHARES / unit.hi
    if scheme.power_of_two:
        candidates = _powers_of_two(candidates)
    errors = np.empty_like(candidates)
    all_steps = np.where(candidates > 0, candidates, 1.0)
    # Rows at a time that stay in the processor's cache while all candidates are tried.
    count = max(1, _CACHED // max(1, rows.shape[1]))
    for first in range(0, len(rows), count):
        part = slice(first, first + count)
        some, weight = rows[part], power[part]
        for n, steps in enumerate(all_steps[part].T[:, :, None]):
            difference = some - steps * unit.quantize(some / steps)
            errors[part, n] = (weight * difference**2).sum(axis=1)
    if scheme.one_weight_scale:
        errors[:] = errors.sum(axis=0)
    best = errors.argmin(axis=1)
    return np.asarray(np.take_along_axis(candidates, best[:, None], axis=1)[:, 0])


def _powers_of_two(values: FloatArray) -> FloatArray:
    """Return the least powers of two that are not below; 0 stays."""
    mantissa, exponent = np.frexp(values)
    powers = np.ldexp(1.0, exponent - (mantissa == 0.5))
    return np.where(values > 0, powers, 0.0)


def fit_multipliers(scales: FloatArray, ratio: float, mult_bits: int) -> FloatArray:
    """Raise scales until ``scale * ratio`` is a ``mult / 2**shift`` for each, exactly.

    Parameters
    ----------
    ratio
        Scale of the layer's input divided by that of its result.
    mult_bits
        Width of ``mult``; one shift serves all.
    """
    factors = scales * ratio
    top = (1 << mult_bits) - 1
    shift = int(np.floor(np.log2(top / factors.max())))
    while np.ceil(factors.max() * 2.0 ** (shift + 1)) <= top:
        shift += 1
    while np.ceil(factors.max() * 2.0**shift) > top:
        shift -= 1
    if not 1 <= shift <= MAX_SHIFT:
        return scales
    mults = np.maximum(np.ceil(factors * 2.0**shift), 1.0)
    return np.asarray(mults * 2.0**-shift / ratio)
