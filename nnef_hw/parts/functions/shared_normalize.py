"""Normalization with constants that come from outside, for several layers in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nnef_hw.arithmetic.normalization import (
    FACTOR_BITS,
    MAX_FRACTION,
    OFFSET_BITS,
    NormalizeRequant,
)
from nnef_hw.hardware.devices import Device, Resources
from nnef_hw.parts.functions.normalize import Normalize

__all__ = ["SharedNormalize"]


@dataclass(frozen=True, kw_only=True)
class SharedNormalize(Normalize):
    """Normalizes for one layer after the other: ports have what differs between these.

    It has no table of scales or offsets, and no contents.

    Parameters
    ----------
    finer_steps
        By how much the longest fraction of any layer exceeds the shortest one.
    least_shift, farther_steps
        The least shift behind scales, and by how much the greatest one exceeds it.
    """

    component = "nnef_hw.rtl.functions.shared_normalize:SharedNormalize"
    trained_sizes = (
        "epsilon_bits", "offset_bits", "fraction", "finer_steps", "least_shift", "farther_steps",
    )  # fmt: skip

    finer_steps: int
    least_shift: int
    farther_steps: int
    scales: int = 1
    offsets: int = 1

    @property
    def finer(self) -> int:
        return self.finer_steps

    @property
    def scale_bits(self) -> int:
        """Width of a scale: its magnitude, and above that its sign."""
        return FACTOR_BITS + 1

    @property
    def constant_bits(self) -> int:
        """Width of the constants of a channel: scale, and above it the offset."""
        return self.scale_bits + self.offset_bits

    @staticmethod
    def whole_offset(requant: NormalizeRequant, offset: int) -> int:
        """Return the addend of a product: half a step and the zero point besides an offset."""
        return offset + (1 << OFFSET_BITS - 1) + (requant.zero_point << OFFSET_BITS)

    def constants(
        self, requant: NormalizeRequant, mult: Sequence[int], offset: Sequence[int]
    ) -> list[int]:
        """Return the constants of a layer's channels, of which one or all have their own."""
        scales, offsets = (
            list(values) * (self.channels if len(values) == 1 else 1) for values in (mult, offset)
        )
        mask = (1 << self.offset_bits) - 1
        return [
            abs(scale)
            | (scale < 0) << FACTOR_BITS
            | (self.whole_offset(requant, added) & mask) << self.scale_bits
            for scale, added in zip(scales, offsets, strict=True)
        ]

    @property
    def roomy(self) -> SharedNormalize:
        """Part with room for layers of other weights: a bit more, or less, of everything."""
        longest, least = (
            min(self.fraction + 1, MAX_FRACTION),
            max(self.least_shift - 1, OFFSET_BITS),
        )
        return replace(
            self, epsilon_bits=self.epsilon_bits + 2, fraction=longest,
            finer_steps=longest - max(self.fraction - self.finer_steps - 1, 0),
            offset_bits=self.offset_bits + 1, least_shift=least,
            farther_steps=self.least_shift + self.farther_steps + 1 - least,
        )  # fmt: skip

    def missing(self, built: SharedNormalize) -> Iterator[str]:
        """Yield the numbers that a part of the same size and format is too small for."""
        for what, own, there in (
            ("an epsilon of up to {1} bits", (0, self.epsilon_bits), (0, built.epsilon_bits)),
            ("offsets of up to {1} bits", (0, self.offset_bits), (0, built.offset_bits)),
            ("fractions of {0} to {1} bits", self._fractions, built._fractions),
            ("shifts of {0} to {1}", self._shifts, built._shifts),
        ):
            if own[0] < there[0] or own[1] > there[1]:
                yield f"takes {what.format(*own)}, there are {what.format(*there)}"

    @property
    def _fractions(self) -> tuple[int, int]:
        return self.fraction - self.finer_steps, self.fraction

    @property
    def _shifts(self) -> tuple[int, int]:
        return self.least_shift, self.least_shift + self.farther_steps

    @property
    def _farther_bits(self) -> int:
        return self.farther_steps.bit_length()

    def _estimate(self, device: Device) -> Resources:
        found = super()._estimate(device)
        # A shift by a few bits, and an epsilon that is no constant.
        moved = self._farther_bits * (self.normal_bits + FACTOR_BITS)
        more = self.lanes * moved + self.epsilon_bits
        return replace(
            found, lut=found.lut + more,
            ff=found.ff + self.lanes * (self.stages + 1) * self.offset_bits,
        )  # fmt: skip
