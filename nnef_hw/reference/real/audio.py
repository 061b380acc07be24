"""Front ends of networks that hear, of real numbers."""

from __future__ import annotations

import numpy as np

from nnef_hw.ir.operators.audio import LogMelAttributes, MicroFrontendAttributes
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__ = ["log_mel", "micro_frontend"]

_FULL_SCALE = 1 << 15


@operator("log_mel", batch=always)
def log_mel(call: Evaluation) -> Array:
    """Compute logarithms of power; a first sample of no frame is for the emphasis."""
    samples = np.asarray(call.args[0][:, 0, :, 0], np.float64)
    attributes = call.node.attributes(LogMelAttributes)
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
    samples = np.floor(np.asarray(call.args[0][:, 0, :, 0], np.float64) * _FULL_SCALE + 0.5)
    codes = samples.clip(-_FULL_SCALE, _FULL_SCALE - 1).astype(np.int64)
    features = attributes.front.apply(codes) * attributes.scale
    return np.asarray(features.transpose(0, 2, 1)[..., None])
