"""Scales and codes of a layer's weights."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.numerics import MAX_SHIFT
from nnef_hw.quantize.scheme import Scheme

__all__ = ["choose_scales", "fit_multipliers"]

FloatArray = NDArray[np.float64]

_BIAS_BITS = 24
_SHARES = np.linspace(1.0, 0.2, 81)
_LEAST_SHARE_OF_LARGEST = 2.0**-20


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
    real = np.asarray(weights, np.float64)
    rows = real.reshape(len(real), -1)
    factor = np.ones_like(rows) if importance is None else importance.reshape(rows.shape)
    bits = scheme.weight_bits
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if scheme.power_of_two or not scheme.per_channel:
        largest = np.full_like(largest, largest.max())
    top = scheme.weight_format(1.0).hi
    candidates = largest[:, None] / top * (_SHARES if bits > 1 else _SHARES * 0.9)
    candidates = np.maximum(candidates, float(np.finfo(np.float32).tiny))
    if scheme.power_of_two:
        candidates = 2.0 ** np.ceil(np.log2(candidates))
    unit = scheme.weight_format(1.0)
    errors = np.stack(
        [
            (factor * (rows - s * unit.quantize(rows / s)) ** 2).sum(axis=1)
            for s in candidates.T[:, :, None]
        ],
        axis=1,
    )
    if scheme.power_of_two or not scheme.per_channel:
        errors = np.broadcast_to(errors.sum(axis=0), errors.shape)
    scales = np.take_along_axis(candidates, errors.argmin(axis=1)[:, None], axis=1)[:, 0]
    magnitude = np.abs(np.asarray(bias, np.float64).reshape(-1))
    least = np.broadcast_to(magnitude / (source_scale * 2.0 ** (_BIAS_BITS - 1)), scales.shape)
    dead = (largest == 0) & (least == 0)
    scales = np.maximum(np.where(largest == 0, 0.0, scales), least)
    scales[dead] = scales.max() if scales.any() else 1.0
    if scheme.power_of_two or not scheme.per_channel:
        scales[:] = scales.max()
        if scheme.power_of_two:
            scales = 2.0 ** np.ceil(np.log2(scales))
    return np.asarray(np.maximum(scales, scales.max() * _LEAST_SHARE_OF_LARGEST))


def fit_multipliers(scales: FloatArray, ratio: float, mult_bits: int) -> FloatArray:
    """Raise scales until ``scale * ratio`` is a ``mult / 2**shift`` for each, exactly.

    Parameters
    ----------
    ratio
        Scale of what the layer reads over that of its result.
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
