"""The discrete Fourier transform of real samples in fixed point, and its scaling."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import IntArray

__all__ = ["RealFft", "Stage", "Twiddles", "wrap"]

_POINTS = range(5, 12)


def wrap(values: IntArray, bits: int) -> IntArray:
    """Return two's complement numbers of so many bits: what is above them is cut."""
    half = 1 << (bits - 1)
    return ((values + half) & ((1 << bits) - 1)) - half


class Twiddles(NamedTuple):
    """Real and imaginary parts of roots of one."""

    real: IntArray
    imag: IntArray


class Stage(NamedTuple):
    """One stage of the complex transform.

    Attributes
    ----------
    radix
        Numbers that are combined: 4, or 2.
    span
        Distance of these numbers.
    stride
        Root ``q * j * stride`` belongs to number q of group j.
    """

    radix: int
    span: int
    stride: int


@dataclass(frozen=True)
class RealFft:
    """Discrete Fourier transform of ``points`` real samples, divided by ``points``.

    Pairs of samples are the real and imaginary parts of ``points / 2`` numbers, whose transform is
    taken apart at last. Stages of radix 4, and a first one of radix 2 if need be, decimate in time.
    Every number is divided before a stage, so that none grows: for a radix of r, it is multiplied
    by ``one // r``. Cosines are multiples of ``1 / one``, ``one = 2**cosine_bits - 1``. Products
    are rounded, ``(p + 2**(cosine_bits - 1)) >> cosine_bits``; every result is cut to ``bits`` bits
    in two's complement. With 16 and 15 bits these are the integers of kissfft in fixed point.

    Parameters
    ----------
    points
        Samples: a power of two, 32 .. 2,048.
    bits
        Bits of a sample, of a result, and of every real number in between: 16 .. 32.
    cosine_bits
        Bits of the magnitude of a cosine: 15 or 16.
    """

    points: int
    bits: int = 16
    cosine_bits: int = 15

    def __post_init__(self) -> None:
        if self.points not in (1 << n for n in _POINTS):
            raise ValueError(f"a transform has 32, 64 .. 2048 points, not {self.points}")
        if not 16 <= self.bits <= 32:
            raise ValueError(f"numbers of a transform have 16 to 32 bits, not {self.bits}")

        if self.cosine_bits not in (15, 16):
            raise ValueError(f"cosines have 15 or 16 bits, not {self.cosine_bits}")

    @property
    def one(self) -> int:
        """Integer that stands for a cosine of 1."""
        return (1 << self.cosine_bits) - 1

    @property
    def gain(self) -> float:
        """Factor between a result and the transform divided by ``points``: just below 1."""
        divisions = [*(stage.radix for stage in self.stages), 2]
        return math.prod(self.one // n * n / (1 << self.cosine_bits) for n in divisions)

    @property
    def half(self) -> int:
        """Numbers of the complex transform."""
        return self.points // 2

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """Stages in the order in which they are computed."""
        stages, span = [], 1
        while span < self.half:
            # Factors of 4 are taken from the outside, so a single 2 is left for the inside.
            radix = 2 if span == 1 and self.half.bit_length() % 2 == 0 else 4
            stages.append(Stage(radix, span, self.half // (radix * span)))
            span *= radix
        return tuple(stages)

    @cached_property
    def order(self) -> IntArray:
        """Which number stands in each place before the first stage."""
        order = np.zeros(1, np.int64)
        for stage in self.stages:
            order = np.concatenate([order * stage.radix + q for q in range(stage.radix)])
        return order

    def roots(self, angles: ArrayLike) -> Twiddles:
        """Return ``exp(-2j * pi * angle / points)`` in fixed point."""
        phases = np.asarray(angles, np.float64) * (2 * np.pi / self.points)
        real, imag = (np.floor(0.5 + self.one * part(phases)) for part in (np.cos, np.sin))
        return Twiddles(real.astype(np.int64), -imag.astype(np.int64))

    def apply(self, samples: ArrayLike) -> tuple[IntArray, IntArray]:
        """Return real and imaginary parts of bins ``0 .. points / 2`` of samples [..., points]."""
        x = np.asarray(samples, np.int64)
        real, imag = self._complex(x[..., 0::2], x[..., 1::2])
        return self._apart(real, imag)

    def _rounded(self, products: IntArray) -> IntArray:
        return wrap((products + (1 << self.cosine_bits - 1)) >> self.cosine_bits, self.bits)

    def _complex(self, real: IntArray, imag: IntArray) -> tuple[IntArray, IntArray]:
        shape = real.shape
        real, imag = real[..., self.order], imag[..., self.order]
        for stage in self.stages:
            split = (*shape[:-1], -1, stage.radix, stage.span)
            share = self.one // stage.radix
            parts = (
                self._rounded(real.reshape(split) * share),
                self._rounded(imag.reshape(split) * share),
            )
            angles = np.arange(stage.radix)[:, None] * np.arange(stage.span) * stage.stride
            turned = self._times(*parts, self.roots(2 * angles))
            # the first number of each group is not multiplied, not even by a cosine of 0
            re, im = (np.where(np.arange(stage.radix)[:, None] > 0, new, old)
                      for new, old in zip(turned, parts, strict=True))  # fmt: skip
            combined = self._combine4(re, im) if stage.radix == 4 else self._combine2(re, im)
            real, imag = (wrap(part, self.bits).reshape(shape) for part in combined)
        return real, imag

    @staticmethod
    def _combine2(re: IntArray, im: IntArray) -> tuple[IntArray, IntArray]:
        """Return sum and difference of pairs."""
        re0, re1, im0, im1 = re[..., 0, :], re[..., 1, :], im[..., 0, :], im[..., 1, :]
        return np.stack([re0 + re1, re0 - re1], -2), np.stack([im0 + im1, im0 - im1], -2)

    @staticmethod
    def _combine4(re: IntArray, im: IntArray) -> tuple[IntArray, IntArray]:
        """Return transforms of groups of four."""
        re0, re1, re2, re3 = (re[..., q, :] for q in range(4))
        im0, im1, im2, im3 = (im[..., q, :] for q in range(4))
        even_re, odd_re, even_im, odd_im = re0 + re2, re1 + re3, im0 + im2, im1 + im3
        down_re, down_im = re0 - re2, im0 - im2
        turn_re, turn_im = im1 - im3, re3 - re1
        real = [even_re + odd_re, down_re + turn_re, even_re - odd_re, down_re - turn_re]
        imag = [even_im + odd_im, down_im + turn_im, even_im - odd_im, down_im - turn_im]
        return np.stack(real, -2), np.stack(imag, -2)

    def _times(self, re: IntArray, im: IntArray, by: Twiddles) -> tuple[IntArray, IntArray]:
        """Return complex products."""
        return (
            self._rounded(re * by.real - im * by.imag),
            self._rounded(re * by.imag + im * by.real),
        )

    def _apart(self, real: IntArray, imag: IntArray) -> tuple[IntArray, IntArray]:
        """Return the transform of real samples, given that of the pairs of them."""
        half = self.half
        real, imag = (self._rounded(part * (self.one // 2)) for part in (real, imag))
        out_re = np.zeros((*real.shape[:-1], half + 1), np.int64)
        out_im = np.zeros_like(out_re)
        out_re[..., 0] = wrap(real[..., 0] + imag[..., 0], self.bits)
        out_re[..., half] = wrap(real[..., 0] - imag[..., 0], self.bits)
        k = np.arange(1, half // 2 + 1)
        mirrored_re, mirrored_im = real[..., half - k], imag[..., half - k]
        sum_re = wrap(real[..., k] + mirrored_re, self.bits)
        sum_im = wrap(imag[..., k] - mirrored_im, self.bits)
        rest_re = wrap(real[..., k] - mirrored_re, self.bits)
        rest_im = wrap(imag[..., k] + mirrored_im, self.bits)
        turned_re, turned_im = self._times(rest_re, rest_im, self.roots(k + self.points // 4))
        out_re[..., k] = (sum_re + turned_re) >> 1
        out_im[..., k] = (sum_im + turned_im) >> 1
        # the bin in the middle is its own partner, and keeps what is computed last
        out_re[..., half - k] = (sum_re - turned_re) >> 1
        out_im[..., half - k] = (turned_im - sum_im) >> 1
        return wrap(out_re, self.bits), wrap(out_im, self.bits)
