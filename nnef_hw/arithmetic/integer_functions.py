"""Normalization and softmax of integer networks: codes in, codes out, by whole divisions.

What quantlib (https://github.com/pulp-platform/quantlib, ``algorithms/pact/pact_ops.py``) exports,
and what the kernels of Deeploy (https://github.com/pulp-platform/Deeploy,
``TargetLibraries/Generic/src``) compute of it: ``iLayerNorm``, ``iRMSNorm``, ``ITAMax``,
``iSoftmax``. Codes stand for themselves: scale 1, zero point 0.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.records import JsonObject

__all__ = [
    "SCALE_BITS",
    "IntegerNormalizeRequant",
    "integer_exponentials",
    "integer_normalized",
    "integer_softmax_codes",
    "shift_exponentials",
    "truncated_quotient",
]

SCALE_BITS = 32
"""Width of a scale and of an offset of a normalization, signed."""

_MEAN_SHIFT = 5
_SHIFTED = 256
"""ITA's exponential of 0, halved for every 32 codes below."""


def truncated_quotient(dividend: IntArray, divisor: IntArray | int) -> IntArray:
    """Return quotients without their fractions, as C divides; divisors are positive."""
    return np.asarray(np.sign(dividend) * (np.abs(dividend) // divisor))


@dataclass(frozen=True, slots=True)
class IntegerNormalizeRequant:
    """Normalize ``channels`` codes q, scale them, add offsets, and divide by a power of two.

    ``mean = trunc(sum(q) / channels)``, or 0 unless ``centered``;
    ``root = isqrt(floor(sum((q - mean)**2) / channels) + 1)``;
    ``y = clip(floor((trunc((q - mean) * scale / root) + offset) / 2**shift), lo, hi)``.

    This is ``Layernorm_s8_s8`` and ``iRMSnorm_s8_s8`` of Deeploy, ``PACTIntegerLayerNorm`` of
    quantlib; the limits are those of quantlib.

    Parameters
    ----------
    channels
        How many codes are normalized together.
    centered
        Whether their mean is taken from them.
    shift
        Bits of a result that are cut.
    lo, hi
        Limits of the result.
    """

    channels: int
    centered: bool
    shift: int
    lo: int
    hi: int

    def __post_init__(self) -> None:
        if not 0 <= self.shift < SCALE_BITS:
            raise ValueError(
                f"integer normalize shift must be in 0..{SCALE_BITS - 1}, not {self.shift}"
            )
        if self.lo > self.hi:
            raise ValueError(f"integer normalize range {self.lo}..{self.hi} is empty")

    def apply(
        self, codes: ArrayLike, scale: ArrayLike, offset: ArrayLike, axis: int = 1
    ) -> IntArray:
        """Return the codes of normalized codes.

        Parameters
        ----------
        scale, offset
            One, or one per channel; less than ``2**31``.
        axis
            The axis of the channels.
        """
        q = np.asarray(codes, np.int64)
        assert q.shape[axis] == self.channels, (q.shape, self.channels)
        shape = [1] * q.ndim
        shape[axis] = -1
        factors, offsets = (np.asarray(x, np.int64).reshape(shape) for x in (scale, offset))
        whole = integer_normalized(q, factors, offsets, (axis,), centered=self.centered)
        return np.asarray((whole >> self.shift).clip(self.lo, self.hi))

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> IntegerNormalizeRequant:
        """Inverse of :meth:`to_json`."""
        return cls(**value)


def integer_normalized(
    codes: IntArray, scale: IntArray, offset: IntArray, axes: tuple[int, ...], *, centered: bool
) -> IntArray:
    """Return ``trunc((q - mean) * scale / root) + offset`` of :class:`IntegerNormalizeRequant`.

    ``scale`` and ``offset`` broadcast.
    """
    total = codes.sum(axis=axes, keepdims=True)
    count = codes.size // max(total.size, 1)
    beside = codes - truncated_quotient(total, count) if centered else codes
    variance = np.square(beside).sum(axis=axes, keepdims=True) // count
    # float64 roots of integers below 2**52 are exact wherever these are squares
    root = np.floor(np.sqrt((variance + 1).astype(np.float64))).astype(np.int64)
    return np.asarray(truncated_quotient(beside * scale, root) + offset)


def integer_softmax_codes(
    codes: ArrayLike, table: ArrayLike, levels: int, axes: tuple[int, ...] = (1,)
) -> IntArray:
    """Softmax on codes: ``floor((levels - 1) * e / sum(e))`` with ``e = table[max - q]``.

    ``PACTIntegerSoftmax`` and ``PACTIntegerITAMax`` of quantlib. ITA divides first, by the sum, and
    shifts the quotient then: where exponentials are powers of two, this is the same.
    """
    q, entries = np.asarray(codes, np.int64), np.asarray(table, np.int64)
    below = q.max(axis=axes, keepdims=True) - q
    e = entries[np.minimum(below, entries.size - 1)]
    return np.asarray((levels - 1) * e // np.maximum(e.sum(axis=axes, keepdims=True), 1))


def shift_exponentials(entries: int = 256) -> IntArray:
    """Return ``256 >> (d + 16 >> 5)``: exponentials of ITAMax by how far a code is below."""
    d = np.arange(entries, dtype=np.int64)
    return np.asarray(_SHIFTED >> ((d + (1 << _MEAN_SHIFT - 1)) >> _MEAN_SHIFT))


def integer_exponentials(log2: int, a: int, b: int, c: int, entries: int = 256) -> IntArray:
    """Return exponentials of iSoftmax: a parabola, halved for every ``log2`` codes below.

    ``z = d div log2``, ``p = z * log2 - d``, ``e[d] = (a * (p + b)**2 + c) >> z``.
    """
    d = np.arange(entries, dtype=np.int64)
    halved = d // log2
    p = halved * log2 - d
    return np.asarray((a * (p + b) ** 2 + c) >> np.minimum(halved, 62))
