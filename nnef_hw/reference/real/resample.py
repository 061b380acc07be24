"""Float reference: up- and down-sampling by whole factors (spec section 4.3.4)."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.images.rearrange import repeat_pixels
from nnef_hw.arithmetic.images.windows import gather_taps, pad_border
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import always

__all__: list[str] = []


@operator("area_downsample", "nearest_downsample", batch=always)
def downsample(call: Evaluation) -> Array:
    x, factor = call.args[0], list(call.attr("factor"))
    taps = gather_taps(x, factor, factor, [1] * len(factor))
    return taps[0] if call.node.op == "nearest_downsample" else np.mean(taps, axis=0)


@operator("nearest_upsample", batch=always)
def nearest_upsample(call: Evaluation) -> Array:
    return repeat_pixels(call.args[0], call.attr("factor"))


@operator("multilinear_upsample", batch=always)
def multilinear_upsample(call: Evaluation) -> Array:
    """Interpolate axis by axis; the border holds one element beyond each end."""
    x, border = call.args[0], call.attr("border")
    for axis, factor in enumerate(call.attr("factor"), start=2):
        extent = x.shape[axis]
        place = _places(call.attr("method"), extent, factor)
        left = np.floor(place).astype(np.int64)
        weight = (place - left).reshape(-1, *[1] * (x.ndim - axis - 1))
        padded = pad_border(x, [(0, 0)] * axis + [(1, 1)] + [(0, 0)] * (x.ndim - axis - 1), border)
        low, high = (padded.take(left + step, axis) for step in (1, 2))
        x = (1 - weight) * low + weight * high
    return x


def _places(method: str, extent: int, factor: int) -> Array:
    """Place of every result element in the input."""
    i = np.arange(extent * factor, dtype=np.float64)
    if method == "asymmetric":
        return i / factor
    if method == "symmetric":
        return (i - (factor - 1) / 2) / factor
    return i * ((extent - 1) / max(extent * factor - 1, 1))
