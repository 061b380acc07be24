"""The fixed-point reference of operators that only move codes [N, C, ...]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nnef_hw.ir import Node

__all__ = ["repeat_pixels", "take_slice"]

Codes = NDArray[np.int64]


def take_slice(x: Codes, node: Node) -> Codes:
    """Return a part along one axis: a canonical ``slice``."""
    [axis], [begin], [end] = (node.attrs[key] for key in ("axes", "begin", "end"))
    part: Codes = x[(slice(None),) * axis + (slice(begin, end),)]
    return part


def repeat_pixels(x: Codes, node: Node) -> Codes:
    """Repeat rows and columns: ``nearest_upsample``."""
    for axis, factor in enumerate(node.attrs["factor"], start=2):
        x = x.repeat(factor, axis=axis)
    return x
