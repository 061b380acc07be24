"""Choice of a token by its score: the greatest, or at random by weights of a softmax."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from nnef_hw.arithmetic.numerics import IntArray

__all__ = ["Xorshift", "choose_code", "sampling_weights"]

_WORD = (1 << 32) - 1
_UNIT = (1 << 16) - 1


class Xorshift:
    """Marsaglia's generator of 32 bits with shifts by 13, 17 and 5.

    Parameters
    ----------
    seed
        Any integer; it is spread over the bits, so that neighbours give different numbers.
    """

    def __init__(self, seed: int) -> None:
        state = seed * 0x9E3779B9 + 0x7F4A7C15 & _WORD
        self.state = state or 1
        for _ in range(8):
            self.draw()

    def draw(self) -> int:
        """Return the next number, from 1 to 2**32 - 1."""
        x = self.state
        x ^= x << 13 & _WORD
        x ^= x >> 17
        x ^= x << 5 & _WORD
        self.state = x
        return x


def sampling_weights(scale: float, temperature: float, codes: int) -> IntArray:
    """Return weights by how many codes a score is below the greatest one.

    Those are ``floor(65535 * exp(-d * scale / temperature) + 0.5)`` for d from 0 to ``codes - 1``.
    """
    step = scale / temperature
    return np.array([math.floor(_UNIT * math.exp(-d * step) + 0.5) for d in range(codes)], np.int64)


def choose_code(scores: ArrayLike, weights: IntArray | None, generator: Xorshift) -> int:
    """Return the place of one of several scores, in integers alone.

    Without weights that is the first of the greatest. Else a number r is drawn, and it is the first
    place up to which weights sum up to more than ``(r * sum) >> 32``.
    """
    codes = np.asarray(scores, np.int64).reshape(-1)
    if weights is None:
        return int(codes.argmax())
    sums = np.cumsum(weights[codes.max() - codes])
    threshold = generator.draw() * int(sums[-1]) >> 32
    return int(np.searchsorted(sums, threshold, side="right"))
