"""Normalization of the numbers of a pixel in integers: exact sums, one inverse root, one rounding.

Layer normalization, ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``, and the same of the
root of the mean square. Mean and variance are never divided out: of ``C`` numbers, ``C x - sum``
and ``C * sum of squares - sum ^ 2`` are integers.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import (
    MAX_PRODUCT_BITS,
    MAX_SHIFT,
    FloatArray,
    IntArray,
    QType,
)
from nnef_hw.arithmetic.records import JsonObject

__all__ = [
    "FACTOR_BITS",
    "MAX_FRACTION",
    "OFFSET_BITS",
    "ROOT_BITS",
    "NormalizeParams",
    "NormalizeRequant",
    "choose_normalize",
    "inverse_root",
]

FACTOR_BITS = 16
"""Bits of an inverse root, and of the magnitude of a mult."""

ROOT_BITS = FACTOR_BITS + 1
"""Bits of a square root."""

OFFSET_BITS = 10
"""Bits of an offset below a step of the result."""

MAX_FRACTION = 16
"""Most bits of a normalized number below 1."""

_FINER_BITS = 5
"""A step of a normalized number is so many bits finer than one of the result."""

_MOST_BITS = 20
"""Bits of an offset above a step of the result."""


def inverse_root(numbers: ArrayLike) -> tuple[IntArray, IntArray]:
    """Return ``R`` and ``k`` with ``R / 2**(16 + k)`` just below or at ``1 / sqrt(number)``.

    ``k = (bits - 1) div 2``, ``s = isqrt(number * 4**(16 - k))`` (what is below 1 is cut),
    ``R = (2**32 - 1) div s``: 2**15 <= R < 2**16. The error is less than 2**-15 of the result.
    Greater numbers never have a greater result.
    """
    n = np.asarray(numbers, np.int64)
    k = np.zeros(n.shape, np.int64)
    for place in range(1, 32):
        k += (n >> 2 * place) != 0
    scaled = np.where(
        k <= FACTOR_BITS,
        n << 2 * np.maximum(FACTOR_BITS - k, 0),
        n >> 2 * np.maximum(k - FACTOR_BITS, 0),
    )
    # float64 roots of integers below 2**53 are exact wherever these are squares
    root = np.floor(np.sqrt(scaled.astype(np.float64))).astype(np.int64)
    return ((1 << 2 * FACTOR_BITS) - 1) // root, k


@dataclass(frozen=True, slots=True)
class NormalizeRequant:
    """Normalize ``channels`` differences d = code - zero point, and map them onto codes.

    ``S`` is the sum of d, 0 unless ``centered``, and ``Q`` that of their squares.
    ``N = channels * Q - S**2 + epsilon``, ``(R, k) = inverse_root(max(N, 1))``;
    ``u = floor((channels * d - S) * R / 2**(16 + k - fraction))`` is the normalized number;
    ``q = clip(((floor(u * mult / 2**(shift - 10)) + offset + 512) >> 10) + zero_point, lo, hi)``:
    exact halves round up.

    Parameters
    ----------
    channels
        How many numbers are normalized together.
    centered
        Whether their mean is taken from them.
    epsilon
        What is added to the variance, in squared input steps times ``channels ** 2``.
    shift
        Right shift in bits, ``10..46``.
    fraction
        Bits of a normalized number below 1, ``0..16``.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    """

    channels: int
    centered: bool
    epsilon: int
    shift: int
    fraction: int
    zero_point: int
    lo: int
    hi: int

    def __post_init__(self) -> None:
        if not OFFSET_BITS <= self.shift <= MAX_SHIFT:
            raise ValueError(
                f"normalize shift must be in {OFFSET_BITS}..{MAX_SHIFT}, not {self.shift}"
            )
        if not 0 <= self.fraction <= MAX_FRACTION:
            raise ValueError(
                f"normalize fraction must be in 0..{MAX_FRACTION}, not {self.fraction}"
            )
        if self.epsilon < 0:
            raise ValueError(f"normalize epsilon must not be negative, not {self.epsilon}")
        if self.lo > self.hi:
            raise ValueError(f"normalize range {self.lo}..{self.hi} is empty")

    def deviation(self, largest: int) -> int:
        """Return the greatest N of differences of at most this magnitude."""
        return self.channels**2 * largest**2 + self.epsilon

    def apply(
        self, differences: ArrayLike, mult: ArrayLike, offset: ArrayLike, axis: int = 1
    ) -> IntArray:
        """Return the codes of normalized differences.

        Parameters
        ----------
        mult
            Signed multipliers of magnitude ``0..2**16 - 1``; one, or one per channel.
        offset
            What is added, in 2**-10 of a result's step; one, or one per channel.
        axis
            The axis of the channels.

        Raises
        ------
        OverflowError
            If N may reach ``2**62``.
        """
        d = np.asarray(differences, np.int64)
        assert d.shape[axis] == self.channels, (d.shape, self.channels)
        largest = max(int(d.max()), -int(d.min())) if d.size else 0
        if self.deviation(largest) >= 1 << MAX_PRODUCT_BITS:
            raise OverflowError(f"normalize sum of squares reaches 2**{MAX_PRODUCT_BITS}")
        squares = self.channels * np.square(d).sum(axis=axis, keepdims=True)
        total = d.sum(axis=axis, keepdims=True) * self.centered
        root, k = inverse_root(np.maximum(squares - total * total + self.epsilon, 1))
        normal = ((self.channels * d - total) * root) >> (FACTOR_BITS - self.fraction + k)
        shape = [1] * d.ndim
        shape[axis] = -1
        factors, offsets = (np.asarray(x, np.int64).reshape(shape) for x in (mult, offset))
        codes = ((normal * factors) >> (self.shift - OFFSET_BITS)) + offsets
        codes = ((codes + (1 << OFFSET_BITS - 1)) >> OFFSET_BITS) + self.zero_point
        return np.asarray(codes.clip(self.lo, self.hi), np.int64)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: JsonObject) -> NormalizeRequant:
        """Inverse of :meth:`to_json`."""
        return cls(**value)


class NormalizeParams(NamedTuple):
    """Integers of a normalization, with the formats that say what they stand for."""

    requant: NormalizeRequant
    mult: IntArray
    mult_qtype: QType
    offset: IntArray
    offset_qtype: QType


def choose_normalize(
    source: QType,
    target: QType,
    *,
    channels: int,
    centered: bool,
    epsilon: float,
    gamma: ArrayLike,
    beta: ArrayLike,
) -> NormalizeParams:
    """Find the integers of a normalization of codes.

    The fraction is the least for which a step of a normalized number is at most a 32nd of a step
    of the result, at most 16. The shift is the largest for which every mult,
    ``floor(gamma / target.scale * 2**(shift - fraction) + 0.5)``, fits 16 bits. Offsets far beyond
    the codes are cut.

    Raises
    ------
    ValueError
        If a factor is not finite, or too large for any shift, or sums may reach ``2**62``.
    """
    assert isinstance(source.scale, float), "activations have one scale"
    assert isinstance(target.scale, float), "activations have one scale"
    factors = np.asarray(gamma, np.float64) / target.scale
    offsets = np.asarray(beta, np.float64) / target.scale
    if not (np.isfinite(factors).all() and np.isfinite(offsets).all()):
        raise ValueError("normalize factors and offsets must be finite")
    largest = float(np.abs(factors).max())
    reach = largest * math.sqrt(channels) + (2 << target.bits)
    if reach >= 1 << _MOST_BITS - 1:
        raise ValueError(f"normalize factor {largest!r} is too large for {FACTOR_BITS} bits")
    wanted = math.ceil(math.log2(largest)) + _FINER_BITS if largest > 0 else 0
    fraction = min(max(wanted, 0), MAX_FRACTION)
    shift = _shift(factors, fraction)
    requant = NormalizeRequant(
        channels=channels,
        centered=centered,
        epsilon=math.floor(epsilon * channels**2 / source.scale**2 + 0.5),
        shift=shift,
        fraction=fraction,
        zero_point=target.zero_point,
        lo=target.lo,
        hi=target.hi,
    )
    limit = max(source.hi - source.zero_point, source.zero_point - source.lo)
    if requant.deviation(limit) >= 1 << MAX_PRODUCT_BITS:
        raise ValueError(
            f"its sums of squares of {channels} codes of {source.bits} bits, with an epsilon of "
            f"{requant.epsilon}, reach 2**{MAX_PRODUCT_BITS}"
        )
    mult_qtype = QType(FACTOR_BITS + 1, signed=True, scale=target.scale * 2.0 ** (fraction - shift))
    offset_qtype = QType(32, signed=True, scale=target.scale * 2.0**-OFFSET_BITS)
    return NormalizeParams(
        requant,
        _rounded(factors * 2.0 ** (shift - fraction)),
        mult_qtype,
        _rounded(offsets.clip(-2 * reach, 2 * reach) * 2.0**OFFSET_BITS),
        offset_qtype,
    )


def _shift(factors: FloatArray, fraction: int) -> int:
    for shift in range(MAX_SHIFT, OFFSET_BITS - 1, -1):
        if np.floor(np.abs(factors) * 2.0 ** (shift - fraction) + 0.5).max() < 1 << FACTOR_BITS:
            return shift
    raise ValueError(
        f"normalize factor {float(np.abs(factors).max())!r} is too large for {FACTOR_BITS} bits"
    )


def _rounded(values: FloatArray) -> IntArray:
    """Round magnitudes half up, so that equal ones of both signs stay equal."""
    return np.copysign(np.floor(np.abs(values) + 0.5), values).astype(np.int64)
