"""Front ends of networks that hear, of real numbers."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.audio.log_spectrum import mirror
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.ir.operators.audio import LogSpectrumAttributes, MicroFrontendAttributes
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__ = ["log_mel", "micro_frontend", "micro_frontend_step", "micro_noise"]

_FULL_SCALE = 1 << 15


@operator("log_bands", batch=always)
@operator("log_mel", batch=always)
def log_mel(call: Evaluation) -> Array:
    """Compute logarithms of power; a first sample of no frame is for the emphasis."""
    attributes = call.node.attributes(LogSpectrumAttributes)
    samples = mirror(np.asarray(call.args[0][:, 0, :, 0], np.float64), attributes.mirrored)
    front = attributes.front
    if attributes.before or not front.emphasis:
        features = front.apply(samples)
    else:
        features = front.apply(samples[:, 1:], before=samples[:, :1])
    return np.asarray(features.transpose(0, 2, 1)[..., None])


@operator("micro_frontend", batch=always)
def micro_frontend(call: Evaluation) -> Array:
    """Compute integers, as there is no definition in real numbers."""
    attributes = call.node.attributes(MicroFrontendAttributes)
    features = attributes.front.apply(_integers(call.args[0])) * attributes.scale
    return np.asarray(features.transpose(0, 2, 1)[..., None])


@operator("micro_frontend_step", batch=always)
def micro_frontend_step(call: Evaluation) -> Array:
    """Compute the same of samples behind others, whose noise was estimated."""
    attributes = call.node.attributes(MicroFrontendAttributes)
    features, _ = attributes.front.go_on(_integers(call.args[0]), _noise(call.args[1]))
    return np.asarray(features.transpose(0, 2, 1)[..., None]) * attributes.scale


@operator("micro_noise", batch=always)
def micro_noise(call: Evaluation) -> Array:
    """Estimate the noise after the samples."""
    front = call.node.attributes(MicroFrontendAttributes).front
    _, noise = front.go_on(_integers(call.args[0]), _noise(call.args[1]))
    return np.asarray(noise[..., None, None], np.float64)


def _integers(samples: Array) -> IntArray:
    rounded = np.floor(np.asarray(samples[:, 0, :, 0], np.float64) * _FULL_SCALE + 0.5)
    return rounded.clip(-_FULL_SCALE, _FULL_SCALE - 1).astype(np.int64)


def _noise(values: Array) -> IntArray:
    return np.asarray(values[:, :, 0, 0]).astype(np.int64)
