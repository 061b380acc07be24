"""The only definition of rounding, saturation, requantization and fixed-point formats.

The fixed reference, the hardware and the documentation (docs/numerics.md) all cite this module;
integers are Python ints or int64 arrays, and float64 appears only where a real number becomes
a code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.arrays import FloatArray, IntArray
from nnef_hw.arithmetic.records import JsonObject

__all__ = [
    "MAX_PRODUCT_BITS",
    "MAX_SHIFT",
    "AddRequant",
    "FloatArray",
    "IntArray",
    "QType",
    "Requant",
    "accumulator_range",
    "argmax_codes",
    "argmin_codes",
    "choose_add_requant",
    "choose_division",
    "choose_requant",
    "fold_zero_point",
    "signed_bits",
]


MAX_SHIFT = 46
MAX_PRODUCT_BITS = 62


def signed_bits(lo: int, hi: int) -> int:
    """Width of the two's complement number that holds every integer in ``[lo, hi]``."""
    return max(lo.bit_length() if lo >= 0 else (-lo - 1).bit_length(), hi.bit_length()) + 1


@dataclass(frozen=True, slots=True)
class QType:
    """A fixed-point format: ``real = scale * (code - zero_point)``.

    Parameters
    ----------
    bits
        Width of a code, 1..32 (activations 2..16, weights 1..9, biases 32).
    signed
        Two's complement codes, else unsigned.
    scale
        Step between codes, positive; one number, or one per output channel (weights, biases).
    zero_point
        The code of 0.0; within the range of codes.
    narrow
        The range is symmetric: the lowest two's complement code is not used (weights). With one
        bit the codes are -1 and +1.
    """

    bits: int
    signed: bool
    scale: float | tuple[float, ...]
    zero_point: int = 0
    narrow: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 32:
            raise ValueError(f"QType bits must be in 1..32, not {self.bits}")
        scales = self.scale if isinstance(self.scale, tuple) else (self.scale,)
        for scale in scales:
            if not (np.isfinite(scale) and scale > 0):
                raise ValueError(f"QType scale must be positive and finite, not {scale!r}")
        if not self.lo <= self.zero_point <= self.hi:
            raise ValueError(
                f"QType zero_point must be in {self.lo}..{self.hi}, not {self.zero_point}"
            )

    @property
    def lo(self) -> int:
        """Lowest code."""
        if not self.signed:
            return 0
        return -self.hi if self.narrow else -(1 << (self.bits - 1))

    @property
    def hi(self) -> int:
        """Highest code."""
        if self.is_binary:
            return 1
        return (1 << (self.bits - 1)) - 1 if self.signed else (1 << self.bits) - 1

    @property
    def is_binary(self) -> bool:
        """Whether the only codes are -1 and +1."""
        return self.bits == 1 and self.signed and self.narrow

    def _scale(self, rank: int, axis: int) -> FloatArray | float:
        if not isinstance(self.scale, tuple):
            return self.scale
        shape = [1] * rank
        shape[axis] = len(self.scale)
        return np.asarray(self.scale, np.float64).reshape(shape)

    def quantize(self, real: ArrayLike, axis: int = 0) -> IntArray:
        """Codes of real numbers: ``clip(floor(x / scale + 0.5) + zero_point)`` in float64.

        Of binary ones the sign: +1 for 0. ``axis`` is the channel axis that per-channel scales
        belong to.
        """
        x = np.asarray(real, np.float64)
        if self.is_binary:
            return np.where(x >= 0, 1, -1)
        codes = np.floor(x / self._scale(x.ndim, axis) + 0.5) + self.zero_point
        result: IntArray = np.clip(codes, self.lo, self.hi).astype(np.int64)
        return result

    def dequantize(self, codes: ArrayLike, axis: int = 0) -> FloatArray:
        """Real numbers of codes."""
        q = np.asarray(codes, np.float64)
        return np.asarray((q - self.zero_point) * self._scale(q.ndim, axis), np.float64)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values; floats survive the round trip."""
        scale = list(self.scale) if isinstance(self.scale, tuple) else self.scale
        return {
            "bits": self.bits,
            "signed": self.signed,
            "scale": scale,
            "zero_point": self.zero_point,
            "narrow": self.narrow,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> QType:
        """Inverse of :meth:`to_json`."""
        scale = value["scale"]
        return cls(
            bits=value["bits"],
            signed=value["signed"],
            scale=tuple(scale) if isinstance(scale, list) else scale,
            zero_point=value["zero_point"],
            narrow=value["narrow"],
        )


@dataclass(frozen=True, slots=True)
class Requant:
    """Map accumulators onto activation codes.

    ``q = clip(floor((acc * mult + offset + 2**(shift-1)) / 2**shift) + zero_point, lo, hi)``: exact
    halves round up (docs/arithmetic.md). A fused ReLU is only a higher ``lo``.

    Parameters
    ----------
    mult
        Unsigned multipliers, ``1..2**mult_bits - 1``; one for all channels or one per channel.
    shift
        Right shift in bits, ``1..46``, the same for all channels.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    mult_bits
        Width of the hardware's multiplier operand.
    offset
        What products get that is less than a step of the sums, ``0..2**shift - 1``: none, one for
        all channels, or one per channel.
    """

    mult: tuple[int, ...]
    shift: int
    zero_point: int
    lo: int
    hi: int
    mult_bits: int = 16
    offset: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.shift <= MAX_SHIFT:
            raise ValueError(f"requantize shift must be in 1..{MAX_SHIFT}, not {self.shift}")
        if not self.mult:
            raise ValueError("requantize needs at least one mult")
        for mult in self.mult:
            if not 1 <= mult < 1 << self.mult_bits:
                raise ValueError(
                    f"requantize mult must be in 1..{(1 << self.mult_bits) - 1}, not {mult}"
                )
        for offset in self.offset:
            if not 0 <= offset < 1 << self.shift:
                raise ValueError(
                    f"requantize offset must be in 0..{(1 << self.shift) - 1}, not {offset}"
                )
        if self.lo > self.hi:
            raise ValueError(f"requantize range {self.lo}..{self.hi} is empty")

    def of_channels(self, channels: slice) -> Requant:
        """Return the requantization of some of the channels."""
        mult, offset = (
            values if len(values) <= 1 else values[channels] for values in (self.mult, self.offset)
        )
        return replace(self, mult=mult, offset=offset)

    def apply(self, acc: ArrayLike, axis: int = 1) -> IntArray:
        """Requantize accumulators; ``axis`` is their channel axis.

        Raises
        ------
        OverflowError
            If ``|acc * mult|`` reaches ``2**62``.
        """
        values = np.asarray(acc, np.int64)
        if _magnitude(values) * max(self.mult) >= 1 << MAX_PRODUCT_BITS:
            raise OverflowError(f"requantize product reaches 2**{MAX_PRODUCT_BITS}")

        def along(constants: tuple[int, ...]) -> IntArray:
            array = np.asarray(constants, np.int64)
            if len(constants) == 1:
                return array.reshape(())
            shape = [1] * values.ndim
            shape[axis] = -1
            return array.reshape(shape)

        products = np.asarray(values * along(self.mult))
        if self.offset:
            products += along(self.offset)
        return _rescale(products, self)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        value: dict[str, object] = {
            "mult": list(self.mult),
            "shift": self.shift,
            "zero_point": self.zero_point,
            "lo": self.lo,
            "hi": self.hi,
            "mult_bits": self.mult_bits,
        }
        return {**value, "offset": list(self.offset)} if self.offset else value

    @classmethod
    def from_json(cls, value: JsonObject) -> Requant:
        """Inverse of :meth:`to_json`."""
        lists: dict[str, tuple[int, ...]] = {
            key: tuple(value[key]) for key in ("mult", "offset") if key in value
        }
        return cls(**{**value, **lists})


def _magnitude(values: IntArray) -> int:
    return max(int(values.max()), -int(values.min())) if values.size else 0


def _rescale(products: IntArray, requant: Requant | AddRequant) -> IntArray:
    """Shift with rounding, add the zero point and clip, all in place."""
    products += 1 << (requant.shift - 1)
    products >>= requant.shift
    products += requant.zero_point
    return products.clip(requant.lo, requant.hi, out=products)


def choose_requant(
    factors: ArrayLike,
    output: QType,
    *,
    mult_bits: int = 16,
    lo: int | None = None,
    hi: int | None = None,
    acc_bits: int = 32,
) -> Requant:
    """Find mult and shift for real factors ``scale_in * scale_w[c] / scale_out``.

    The shift is the largest for which every ``floor(factor * 2**shift + 0.5)`` fits ``mult_bits``
    and the product stays below ``2**62``; a factor that rounds to 0 becomes 1. Factors of two that
    all mults share are taken out again, so that powers of two have mult 1.

    Raises
    ------
    ValueError
        If a factor is not positive and finite, or too large for any shift.
    """
    real = np.atleast_1d(np.asarray(factors, np.float64))
    if not (np.isfinite(real).all() and (real > 0).all()):
        raise ValueError(f"requantize factors must be positive and finite, not {real.tolist()}")
    for shift in range(MAX_SHIFT, 0, -1):
        mult = np.floor(real * 2.0**shift + 0.5)
        top = int(mult.max()) if mult.max() < 2.0**62 else 1 << 62
        if top < 1 << mult_bits and top.bit_length() + acc_bits - 1 <= MAX_PRODUCT_BITS:
            mults = np.maximum(mult, 1).astype(np.int64)
            spare = _common_twos(mults, shift)
            return Requant(
                mult=tuple((mults >> spare).tolist()),
                shift=shift - spare,
                zero_point=output.zero_point,
                lo=output.lo if lo is None else lo,
                hi=output.hi if hi is None else hi,
                mult_bits=mult_bits,
            )
    raise ValueError(f"requantize factor {float(real.max())!r} is too large for {mult_bits} bits")


def choose_division(
    count: int, output: QType, *, acc_bits: int, lo: int | None = None, hi: int | None = None
) -> Requant:
    """Find the mult, shift and offset of ``floor(acc / count + 1/2)``, for every sum of that width.

    With ``mult = 2**shift div count + 1``, products exceed their share of ``2**shift`` by at most
    ``|acc|``; an offset of ``2**(acc_bits - 1)`` keeps those of negative sums from falling short.
    Both are less than what the next whole result is away.

    Raises
    ------
    ValueError
        If the shift is over 46.
    """
    reach = 1 << acc_bits - 1
    shift = (2 * count * (2 * reach + 1)).bit_length()
    mult = (1 << shift) // count + 1
    return Requant(
        mult=(mult,),
        shift=shift,
        zero_point=output.zero_point,
        lo=output.lo if lo is None else lo,
        hi=output.hi if hi is None else hi,
        mult_bits=mult.bit_length(),
        offset=(reach,),
    )


def _common_twos(mults: IntArray, shift: int) -> int:
    """Return how many factors of two all mults share; one shift is left to round with."""
    together = int(np.bitwise_or.reduce(mults))
    return min((together & -together).bit_length() - 1, shift - 1) if together else shift - 1


@dataclass(frozen=True, slots=True)
class AddRequant:
    """Add two operands of different steps and map the sum onto activation codes.

    ``acc = a * mult[0] + b * mult[1]`` of two differences ``code - zero_point``, then
    ``q = clip(floor((acc + 2**(shift-1)) / 2**shift) + zero_point, lo, hi)``: exact halves round
    up (docs/arithmetic.md). A difference has one negative mult. A fused ReLU is only a higher
    ``lo``.

    Parameters
    ----------
    mult
        Signed multipliers of both operands, of magnitude ``0..2**mult_bits - 1``.
    shift
        Right shift in bits, ``1..46``.
    zero_point, lo, hi
        Zero point and limits of the output codes.
    mult_bits
        Width of the multipliers' magnitude.
    """

    mult: tuple[int, int]
    shift: int
    zero_point: int
    lo: int
    hi: int
    mult_bits: int = 16

    def __post_init__(self) -> None:
        if not 1 <= self.shift <= MAX_SHIFT:
            raise ValueError(f"add shift must be in 1..{MAX_SHIFT}, not {self.shift}")
        if len(self.mult) != 2:
            raise ValueError(f"add has two mults, not {len(self.mult)}")
        for mult in self.mult:
            if abs(mult) >= 1 << self.mult_bits:
                top = (1 << self.mult_bits) - 1
                raise ValueError(f"add mult must be in {-top}..{top}, not {mult}")
        if self.lo > self.hi:
            raise ValueError(f"add range {self.lo}..{self.hi} is empty")

    def apply(self, a: ArrayLike, b: ArrayLike) -> IntArray:
        """Return the codes of the sum of two arrays of differences, which are broadcast.

        Raises
        ------
        OverflowError
            If ``|a * mult[0]| + |b * mult[1]|`` reaches ``2**62``.
        """
        operands = np.asarray(a, np.int64), np.asarray(b, np.int64)
        bound = sum(_magnitude(x) * abs(mult) for x, mult in zip(operands, self.mult, strict=True))
        if bound >= 1 << MAX_PRODUCT_BITS:
            raise OverflowError(f"add accumulator reaches 2**{MAX_PRODUCT_BITS}")
        acc = operands[0] * self.mult[0] + operands[1] * self.mult[1]
        return _rescale(np.asarray(acc), self)

    def to_json(self) -> dict[str, object]:
        """Plain JSON values."""
        return {
            "mult": list(self.mult),
            "shift": self.shift,
            "zero_point": self.zero_point,
            "lo": self.lo,
            "hi": self.hi,
            "mult_bits": self.mult_bits,
        }

    @classmethod
    def from_json(cls, value: JsonObject) -> AddRequant:
        """Inverse of :meth:`to_json`."""
        first, second = value["mult"]
        return cls(**{**value, "mult": (first, second)})


def choose_add_requant(
    factors: tuple[float, float],
    output: QType,
    *,
    mult_bits: int = 16,
    lo: int | None = None,
    hi: int | None = None,
    operand_bits: int = 17,
) -> AddRequant:
    """Find both mults and the shift for signed real factors ``+-scale_in / scale_out``.

    A mult is ``floor(|factor| * 2**shift + 0.5)`` with the factor's sign. The shift is the largest
    for which both fit ``mult_bits`` and the sum stays below ``2**62``, less factors of two that
    both mults share. Equal scales give equal mults; powers of two are exact.

    Parameters
    ----------
    operand_bits
        Width of the differences ``code - zero_point``, their sign included.

    Raises
    ------
    ValueError
        If a factor is not finite, or too large for any shift.
    """
    real = np.asarray(factors, np.float64)
    if not np.isfinite(real).all():
        raise ValueError(f"add factors must be finite, not {real.tolist()}")
    for shift in range(MAX_SHIFT, 0, -1):
        magnitude = np.floor(np.abs(real) * 2.0**shift + 0.5)
        if magnitude.max() >= 1 << mult_bits:
            continue
        first, second = (int(m) for m in np.copysign(magnitude, real))
        if (abs(first) + abs(second)) << (operand_bits - 1) < 1 << MAX_PRODUCT_BITS:
            spare = _common_twos(np.abs([first, second]), shift)
            return AddRequant(
                mult=(first >> spare, second >> spare),
                shift=shift - spare,
                zero_point=output.zero_point,
                lo=output.lo if lo is None else lo,
                hi=output.hi if hi is None else hi,
                mult_bits=mult_bits,
            )
    raise ValueError(f"add factor {float(np.abs(real).max())!r} is too large for {mult_bits} bits")


def fold_zero_point(bias: ArrayLike, weights: ArrayLike, zero_point: int) -> IntArray:
    """Bias for arrays that multiply raw codes: ``bias - zero_point * sum(weights)`` per channel.

    ``weights`` has shape [channels, ...], ``bias`` [channels]. Padding must then insert the
    input's zero point.
    """
    w = np.asarray(weights, np.int64)
    total = w.reshape(w.shape[0], -1).sum(axis=1)
    result: IntArray = np.asarray(bias, np.int64).reshape(-1) - zero_point * total
    return result


def accumulator_range(
    weights: ArrayLike, bias: ArrayLike, code_lo: int, code_hi: int
) -> tuple[int, int]:
    """Least and greatest final sum of ``bias[c] + sum(weights[c] * codes)`` over all inputs."""
    w = np.asarray(weights, np.int64)
    w = w.reshape(w.shape[0], -1)
    b = np.asarray(bias, np.int64).reshape(-1)
    positive, negative = np.maximum(w, 0).sum(axis=1), np.minimum(w, 0).sum(axis=1)
    lowest = b + positive * code_lo + negative * code_hi
    highest = b + positive * code_hi + negative * code_lo
    return int(lowest.min()), int(highest.max())


def argmax_codes(codes: ArrayLike, axis: int = 1) -> IntArray:
    """Index of the maximum, the lowest one of several; the axis stays with extent 1."""
    return np.expand_dims(np.argmax(np.asarray(codes), axis=axis), axis).astype(np.int64)


def argmin_codes(codes: ArrayLike, axis: int = 1) -> IntArray:
    """Index of the minimum, the lowest one of several; the axis stays with extent 1."""
    return np.expand_dims(np.argmin(np.asarray(codes), axis=axis), axis).astype(np.int64)
