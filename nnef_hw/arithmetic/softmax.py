"""The only definition of softmax on codes: a table of exponentials, and one division.

The fixed reference, the hardware and the documentation (docs/numerics.md) all cite this module.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.arrays import IntArray
from nnef_hw.arithmetic.numerics import QType

__all__ = [
    "MAX_SOFTMAX_PLACES",
    "SOFTMAX_QTYPE",
    "exp_table",
    "softmax_codes",
    "softmax_places",
]

SOFTMAX_QTYPE = QType(bits=8, signed=False, scale=1 / 256, zero_point=0)
"""Format of a softmax's results, unless they are summed up in the network."""

MAX_SOFTMAX_PLACES = 16
"""Most bits of a probability below 1: those of an exponential."""


def exp_table(scale: float, entries: int = 256) -> IntArray:
    """``EXP[d] = floor(65535 * exp(-scale * d) + 1/2)`` for d = 0..entries-1."""
    d = np.arange(entries, dtype=np.float64)
    return np.floor(65535 * np.exp(-scale * d) + 0.5).astype(np.int64)


def softmax_places(qtype: QType) -> int:
    """Return p of a softmax's format, whose scale is ``2**-p``: 8..16, at least its bits.

    Raises
    ------
    ValueError
        If it is no format of a softmax.
    """
    assert isinstance(qtype.scale, float), "activations have one scale"
    places = round(-math.log2(qtype.scale))
    is_plain = not qtype.signed and qtype.zero_point == 0 and qtype.scale == 2.0**-places
    if not (is_plain and SOFTMAX_QTYPE.bits <= qtype.bits <= places <= MAX_SOFTMAX_PLACES):
        raise ValueError(f"a softmax has no results of the format {qtype}")
    return places


def softmax_codes(
    codes: ArrayLike,
    table: ArrayLike,
    axis: int = 1,
    qtype: QType = SOFTMAX_QTYPE,
    hidden: int | None = None,
) -> IntArray:
    """Softmax on codes with an :func:`exp_table`; the result is of a format of scale ``2**-p``.

    ``e = table[max - q]``, ``y = min(hi, (2**(p + 1) * e + S) div (2 * S))`` with S the sum of e.
    Of codes that are ``hidden`` e is 0, unless there are no others.
    """
    q = np.asarray(codes, np.int64)
    most = q.max(axis=axis, keepdims=True)
    e = np.asarray(table, np.int64)[most - q]
    if hidden is not None:
        e = np.where((q == hidden) & (most > hidden), 0, e)
    total = e.sum(axis=axis, keepdims=True)
    places = softmax_places(qtype)
    result: IntArray = np.minimum(qtype.hi, ((e << places + 1) + total) // (2 * total))
    return result
