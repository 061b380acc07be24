"""Index of the largest or the smallest channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray, argmax_codes, argmin_codes
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.part import Part, counter_bits
from nnef_hw.parts.base.timing import Kernel, Process, Stream
from nnef_hw.parts.functions.eltwise import elastic_pipeline

__all__ = ["Argmax"]

TREE_LEVELS = 2
"""Levels of the tree over the codes of a beat between registers."""


@dataclass(frozen=True, kw_only=True)
class Argmax(Part):
    """Takes a beat per cycle; only the last of a pixel waits for the result's register.

    Beats of several codes pass a tree of comparisons first. Latency counts from a pixel's last
    beat.

    Parameters
    ----------
    channels
        Codes per pixel.
    bits, signed
        Format of a code.
    greatest
        Whether to look for the maximum; else it is the minimum.
    lanes
        Codes per beat.

    Raises
    ------
    ValueError
        If a pixel's codes fill no whole number of beats.
    """

    component = "nnef_hw.rtl.functions.argmax:Argmax"
    label = "argmax"
    costs = "argmax"
    channels: int
    bits: int
    signed: bool
    greatest: bool = True
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.lanes < 1 or self.channels % self.lanes:
            raise ValueError(
                f"Argmax channels {self.channels} must be a multiple of lanes {self.lanes!r}"
            )

    @property
    def tree_stages(self) -> int:
        """Registers of the tree over the codes of a beat, one behind the other."""
        return -(-counter_bits(self.lanes) // TREE_LEVELS)

    @property
    def latency(self) -> int:
        return self.tree_stages + 1

    @property
    def index_bits(self) -> int:
        """Width of the result, which is unsigned."""
        return max(1, counter_bits(self.channels))

    def compute(self, codes: IntArray) -> IntArray:
        """Return the index [pixels, 1] of the extremum of every pixel; codes are [beats, lanes]."""
        find = argmax_codes if self.greatest else argmin_codes
        return find(codes.reshape(-1, self.channels))

    @property
    def features(self) -> Mapping[str, float]:
        return {
            "code bits": self.bits * self.lanes,
            "index bits": counter_bits(self.channels) + sum(self._index_bits),
        }

    @property
    def _index_bits(self) -> list[int]:
        """Bits of the place in a beat of each code that is left behind a register of the tree."""
        left = [-(-self.lanes >> TREE_LEVELS * (n + 1)) for n in range(self.tree_stages)]
        place = counter_bits(self.lanes)
        return [min(place, TREE_LEVELS * (n + 1)) * count for n, count in enumerate(left)]

    def flip_flops(self, device: Device) -> int:
        del device
        left = sum(-(-self.lanes >> TREE_LEVELS * (n + 1)) for n in range(self.tree_stages))
        tree = self.bits * left + sum(self._index_bits) + 2 * self.tree_stages
        index = counter_bits(self.channels)
        best = self.bits + 2 * index if self.channels > self.lanes else 0
        return best + index + 2 + tree

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        if self.tree_stages:
            of_beats = kernel.stream()
            kernel.start(elastic_pipeline(of_beats, [origin], self.tree_stages))
            origin = of_beats
        target = kernel.stream()
        kernel.start(self._pixels(target, origin))
        return target

    def _pixels(self, target: Stream, origin: Stream) -> Process:
        """Take the beats of a pixel, and give its index when the one before has left."""
        sent = -1
        beats = self.channels // self.lanes
        while True:
            for beat in range(beats):
                offered = yield origin
                final = beat == beats - 1
                accepted = max(offered, sent) if final else offered
                origin.accept(accepted)
                if final:
                    sent = yield target, accepted + 1
