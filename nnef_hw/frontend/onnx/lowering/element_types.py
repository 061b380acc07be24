"""Numbers of ONNX's element types: which holds another one, and conversions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.frontend.onnx.file.model import ElementType

__all__ = ["cast", "contains"]


def contains(element: ElementType, source: ElementType) -> bool:
    """Whether an integer type has all values of another type."""
    if source.dtype != "integer":
        return source.dtype == "logical"
    (lo, hi), (least, most) = element.limits, source.limits
    return lo <= least and most <= hi


def cast(data: Array, element: ElementType) -> Array:
    """Convert numbers to an element type: toward 0, wrapping, rounded to narrow floats."""
    with np.errstate(all="ignore"):
        if element.dtype == "integer":
            return element.wrap(np.nan_to_num(np.trunc(data)).astype(np.int64))
        if element.name == "float16":
            return data.astype(np.float16)
        if element.name == "bfloat16":
            return _round_to_bfloat16(data.astype(np.float32))
    return data


def _round_to_bfloat16(data: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round to the nearest number with 8 bits of mantissa, halves to even."""
    bits = data.view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return np.where(np.isfinite(data), rounded.astype(np.uint32).view(np.float32), data)
