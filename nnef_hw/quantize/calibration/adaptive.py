"""Rounding the weights of a layer so that the errors of its results cancel.

After Frantar et al., "GPTQ" (2022), which is optimal brain quantization in one order for all
rows: a weight is rounded, and those that are still real take up its error, by least squares over
what the layer reads on samples. The least squares target is the layer's real result from the real
network, so that errors made by layers before are taken back too, as far as weights can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.quantize.calibration.simulate import Covariance, Moments

__all__ = ["fit_weights", "round_adaptively"]

FloatArray = NDArray[np.float64]

_DAMPING = 0.01
"""Share of the mean square of what a layer reads that is added to every square."""

_FIT_DAMPING = 0.1
"""The same for real weights, which may follow noise of few samples further away."""

_BLOCK = 32


def fit_weights(weights: FloatArray, moments: Moments) -> FloatArray:
    """Return the real weights whose results on quantized values are the best.

    They are those nearest to the results of ``weights`` [groups, rows, K] on real values.
    """
    fitted = weights.copy()
    for part in moments.parts:
        own = fitted[..., part.span]
        wanted = own @ (part.cross - part.square)
        own += np.linalg.solve(_damped(part.square, _FIT_DAMPING), wanted.swapaxes(1, 2)).swapaxes(
            1, 2
        )
    return fitted


def round_adaptively(
    weights: FloatArray, scales: FloatArray, qtype: QType, moments: Moments
) -> NDArray[np.int64]:
    """Return codes [groups, rows, K] of weights; ``scales`` is [groups, rows, 1].

    ``qtype`` has scale 1.
    """
    codes = np.empty(weights.shape, np.int64)
    for part in moments.parts:
        codes[..., part.span] = _round(weights[..., part.span], scales, qtype, part)
    return codes


def _round(
    weights: FloatArray, scales: FloatArray, qtype: QType, part: Covariance
) -> NDArray[np.int64]:
    """Return the codes of those weights that one covariance is of."""
    square = _damped(part.square, _DAMPING)
    order = np.argsort(-np.diagonal(square, axis1=1, axis2=2), axis=1, kind="stable")
    square = np.take_along_axis(square, order[:, :, None], axis=1)
    square = np.take_along_axis(square, order[:, None, :], axis=2)
    upper = np.linalg.cholesky(np.linalg.inv(square)).swapaxes(1, 2)
    adjusted = np.take_along_axis(weights / scales, order[:, None, :], axis=2)
    codes = np.empty(adjusted.shape, np.int64)
    count = adjusted.shape[2]
    for start in range(0, count, _BLOCK):
        block = range(start, min(start + _BLOCK, count))
        errors = np.empty((*adjusted.shape[:2], len(block)))
        for k in block:
            codes[..., k] = qtype.quantize(adjusted[..., k])
            error = (adjusted[..., k] - codes[..., k]) / upper[:, k, k, None]
            errors[..., k - start] = error
            inside = slice(k, block.stop)
            adjusted[..., inside] -= error[..., None] * upper[:, k, None, inside]
        behind = slice(block.stop, count)
        adjusted[..., behind] -= errors @ upper[:, start : block.stop, behind]
    result = np.empty_like(codes)
    np.put_along_axis(result, order[:, None, :], codes, axis=2)
    return result


def _damped(square: FloatArray, share: float) -> FloatArray:
    """Return invertible square matrices: a constant is added to the diagonal."""
    mean = np.trace(square, axis1=1, axis2=2) / square.shape[1]
    level = share * np.where(mean > 0, mean, 1.0)
    return np.asarray(square + level[:, None, None] * np.eye(square.shape[1]))
