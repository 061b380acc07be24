"""Factors of TensorFlow Lite Micro's audio front end: tables and constants."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.audio.logarithm import log2_table
from nnef_hw.arithmetic.audio.micro_frontend import (
    SMOOTHING_BITS,
    WINDOW_BITS,
    MicroFrontend,
    gain_table,
)

__all__ = ["LIMB", "FrontWords"]

LIMB = 16
"""Bits of a word."""


class FrontWords:
    """Factors in their memory: tables by name, and constants that are given a place when used.

    Parameters
    ----------
    front
        The front end.
    mult
        What a feature is multiplied by at last.

    Attributes
    ----------
    words
        All of them.
    tables
        Where each table begins.
    """

    def __init__(self, front: MicroFrontend, mult: int) -> None:
        self.words: list[int] = []
        self.tables: dict[str, int] = {}
        self._constants: dict[int, int] = {}
        fft, bank = front.fft, front.bank
        # samples behind the window are 0
        self._table("window", front.coefficients << 15 - WINDOW_BITS)
        # a real part a quarter later is an imaginary part
        cosines = fft.roots(np.arange(front.points)).real
        self._table("cosines", [_with_sign(int(x)) for x in cosines])
        lengths = np.asarray(bank.lengths)
        weights = self._table("weights", [w for each in bank.filters for w in each.weights])
        self._table("starts", weights + np.cumsum(lengths) - lengths)
        self._table("firsts", [2 * each.first for each in bank.filters])
        self._table("lengths", lengths)
        self._table("slopes", [_with_sign(int(x)) for x in np.diff(log2_table())])
        self._table("excess", log2_table()[:-1])
        # by the number of zeros above a noise of 32 bits
        gains = np.asarray(gain_table(SMOOTHING_BITS - front.correction))[::-1].T
        self._table("gain", gains[0])
        for name, row in zip(("slope", "bend"), gains[1:], strict=True):
            self._table(name, [_with_sign(int(x)) for x in row])
        self._table("mult", [mult >> LIMB, mult % (1 << LIMB)])

    def _table(self, name: str, words: object) -> int:
        at = self.tables[name] = len(self.words)
        self.words += [int(x) for x in np.asarray(words)]
        return at

    def constant(self, value: int) -> int:
        """Return where a constant is."""
        if value not in self._constants:
            self._constants[value] = len(self.words)
            self.words.append(value)
        return self._constants[value]


def _with_sign(value: int) -> int:
    """Return a word of a magnitude of 15 bits, and a sign above it."""
    assert abs(value) < 1 << LIMB - 1, value
    return abs(value) | (value < 0) << LIMB - 1
