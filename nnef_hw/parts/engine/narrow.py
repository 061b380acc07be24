"""Weights of 4 bits in a shared engine: two words are one of its memories, or words are short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nnef_hw.hardware.devices import Device
from nnef_hw.parts.engine.feature import EngineSizes, Feature
from nnef_hw.parts.engine.fields import Record, fact
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = [
    "NARROW_BITS", "NarrowWeights", "ShortWeights", "WeightScale", "WeightWidth", "are_short",
    "packed_words", "short_words",
]  # fmt: skip

NARROW_BITS = CODE_BITS // 2
"""Bits of such a weight."""
_CHOICE_LUTS = 4.0
"""Per weight of a word: the choice of either half."""
_WIDE_LUTS = 4.0
"""Besides, where some layers have weights of 8 bits: the upper half of these, or the sign."""


@dataclass(frozen=True, kw_only=True)
class WeightWidth(Record):
    """Width of the weights of a layer."""

    halves: int = fact("weights have 4 bits: two words of them are one in memory", bits=1,
                       constant=True)  # fmt: skip
    # Of no load or send, which free nothing: it is no constant of the hardware.
    has_rest: int = fact("the last word that a convolution takes is half of one in memory", bits=1)


@dataclass(frozen=True, kw_only=True)
class NarrowWeights(Feature):
    """Two weights are one byte of flash, SDRAM and block RAM, of layers where they have 4 bits.

    The lower half of each byte is the weight of the first one of two words.

    Parameters
    ----------
    always
        Whether all layers have such weights.
    """

    label = "weights of 4 bits"
    says = (WeightWidth,)

    always: bool

    def fine(self, lanes: int) -> Mapping[str, tuple[str, int]]:
        """Return the halves of a word of weights."""
        del lanes
        return {"weight": ("half", 1)}

    def counts_finely(self, records: Sequence[Record]) -> bool:
        return any(isinstance(x, WeightWidth) and x.halves for x in records)

    def retired(
        self, records: Sequence[Record], retired: Sequence[tuple[int, int]]
    ) -> Sequence[tuple[int, int]]:
        """Return the words whose second halves are read, and what is left when the layer ends."""
        if not self.counts_finely(records):
            return retired
        found, done, last = [], 0, 0
        for count, first in retired:
            whole = (done + count) // 2 - done // 2
            if whole:
                found.append((whole, first + 1 - done % 2))
            done, last = done + count, first + count - 1
        return [*found, (1, last)] if done % 2 else found

    def luts(self, engine: EngineSizes, device: Device) -> float:
        del device
        each = _CHOICE_LUTS if self.always else _CHOICE_LUTS + _WIDE_LUTS
        return each * engine.weight_bits / CODE_BITS


@dataclass(frozen=True, kw_only=True)
class WeightScale(Record):
    """Scale of the weights of a layer, of an engine whose words of weights are short."""

    scaled: int = fact("weights are 16 times as large as in memory", bits=1, constant=True)


@dataclass(frozen=True, kw_only=True)
class ShortWeights(Feature):
    """All words of weights have 4 bits per multiplier, and half as many are in a block RAM.

    Layers have weights of 4 bits, or 16 times such ones, as averages have.

    Parameters
    ----------
    always
        Whether no layer has the greater ones.
    """

    label = "short words of weights"
    says = (WeightScale,)

    always: bool

    def luts(self, engine: EngineSizes, device: Device) -> float:
        del device
        each = 0.0 if self.always else _CHOICE_LUTS + _WIDE_LUTS
        return each * engine.rows * engine.lanes


def are_short(weights: NDArray[np.int64]) -> bool:
    """Whether weights have 4 bits, or are 16 times such ones."""
    return _fit(weights) or _are_scaled(weights)


def _fit(weights: NDArray[np.int64]) -> bool:
    most = 1 << (NARROW_BITS - 1)
    return bool((weights >= -most).all() and (weights < most).all())


def _are_scaled(weights: NDArray[np.int64]) -> bool:
    return not (weights % (1 << NARROW_BITS)).any() and _fit(weights >> NARROW_BITS)


def short_words(weights: NDArray[np.int64]) -> tuple[NDArray[np.int64], bool]:
    """Return weights as short words have them, and whether they are 16 times as large."""
    is_scaled = not _fit(weights)
    assert are_short(weights), "weights exceed 4 bits"
    return weights >> NARROW_BITS if is_scaled else weights, is_scaled


def packed_words(words: NDArray[np.int8]) -> NDArray[np.int8]:
    """Return words of weights of 4 bits, two in one; what the last one lacks is 0."""
    pairs = np.pad(words, ((0, len(words) % 2), (0, 0))) & ((1 << NARROW_BITS) - 1)
    return pairs[::2] | pairs[1::2] << NARROW_BITS
