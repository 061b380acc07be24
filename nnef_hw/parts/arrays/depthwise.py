"""The array that sums over taps, one channel at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.arrays.array import ArrayPart, tree_bits
from nnef_hw.parts.base.part import SHORT_TABLE, counter_bits
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["DepthwiseArray"]


@dataclass(frozen=True, kw_only=True)
class DepthwiseArray(ArrayPart):
    """A unit for each of ``lanes`` channels, which sums over the positions of a window.

    Parameters
    ----------
    positions
        Products of each sum.
    taps
        Positions per word.
    lut_ram
        Whether the device's LUTs can be memory: sums wait in them, else in registers.
    shared
        Whether all lanes take the same codes: output channels of one window.

    Raises
    ------
    ValueError
        If there are more lanes than channels, more taps than positions, or no pass is kept; if
        channels or lanes are not whole beats.
    """

    component = "nnef_hw.rtl.arrays.depthwise:DepthwiseArray"
    costs = "tap array"

    positions: int
    taps: int
    lut_ram: bool
    shared: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.lanes <= self.channels:
            raise ValueError(
                f"DepthwiseArray lanes must be in 1..{self.channels}, not {self.lanes!r}"
            )
        if not 1 <= self.taps <= self.positions:
            raise ValueError(
                f"DepthwiseArray taps must be in 1..{self.positions}, not {self.taps!r}"
            )
        if self.kept_passes < 1:
            raise ValueError(
                f"DepthwiseArray kept_passes must be at least 1, not {self.kept_passes!r}"
            )
        sizes = self.channels, self.lanes
        if self.out_lanes < 1 or any(size % self.out_lanes for size in sizes):
            raise ValueError(
                f"DepthwiseArray channels and lanes {sizes} must be multiples of "
                f"out_lanes {self.out_lanes!r}"
            )

    @property
    def multipliers(self) -> int:
        return self.lanes * self.taps

    @property
    def word_codes(self) -> int:
        """Codes of a word."""
        return self.taps * self._codes_of_tap

    @property
    def _codes_of_tap(self) -> int:
        return 1 if self.shared else self.lanes

    @property
    def words(self) -> int:
        """Words of a pass."""
        return -(-self.positions // self.taps)

    @property
    def blocks(self) -> int:
        """Blocks of ``lanes`` channels."""
        return -(-self.channels // self.lanes)

    @property
    def sum_stage(self) -> int:
        """Registers from an accepted word to the sum of its products."""
        return 2 + self.weight_delay + (self.taps - 1).bit_length()

    @property
    def pass_stage(self) -> int:
        """Registers from the accepted last word of a pass to its sums."""
        return self.sum_stage + (self.words > 1)

    @property
    def latency(self) -> int:
        return 2 + self.pass_stage + (self.kept_passes > 1)

    def window_cycles(self, interval: int, *, queued: bool) -> Fraction:
        """Cycles of all passes over a window: enough of them are kept for that."""
        del queued
        return Fraction(sum(max(self.words, beats * interval) for beats in self.beats))

    @property
    def beats(self) -> list[int]:
        """Beats in which the sums of each block leave."""
        starts = range(0, self.channels, self.lanes)
        return [min(self.lanes, self.channels - first) // self.out_lanes for first in starts]

    @property
    def depth(self) -> int:
        """Words of the weight memory."""
        return self.blocks * self.words

    @property
    def widths(self) -> list[int]:
        return [self.multipliers * self.w_bits]

    def arranged(self, weights: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return [block and word, tap and lane]; ``weights`` are [channels, positions]."""
        self._checked(weights, (self.channels, self.positions))
        shape = self.blocks * self.lanes, self.words * self.taps
        padded = np.full(shape, self.absent_weight)
        padded[: self.channels, : self.positions] = weights
        by_block = padded.reshape(self.blocks, self.lanes, self.words, self.taps)
        return [by_block.transpose(0, 2, 3, 1).reshape(self.depth, self.multipliers)]

    @property
    def runs(self) -> list[int]:
        return [self.multipliers]

    def compute(self, words: IntArray, *, weights: IntArray) -> IntArray:
        """Return the sums [beats, out_lanes] of passes of words [passes, words, taps and lanes].

        ``weights`` are [channels, positions]. Codes that lanes share come once.
        """
        padded = np.zeros((self.blocks * self.lanes, self.words * self.taps), np.int64)
        padded[: self.channels, : self.positions] = weights
        by_block = padded.reshape(self.blocks, self.lanes, self.words, self.taps)
        windows = words.reshape(-1, self.blocks, self.words, self.taps, self._codes_of_tap)
        whole = np.broadcast_to(windows, (*windows.shape[:-1], self.lanes))
        sums = np.einsum("pbwtl,blwt->pbl", whole, by_block)
        return self._beats(sums.reshape(len(sums), -1)[:, : self.channels])

    @property
    def features(self) -> Mapping[str, float]:
        return {
            "columns": self.table_registers if self.depth <= SHORT_TABLE else 0,
            "sum bits": self.lanes * self.acc_bits,
            "kept bits": self.lanes * self.acc_bits * (self.kept_passes - 1),
            "tree bits": self.lanes * tree_bits(self.taps, self.x_bits + self.w_bits),
            "hop bits": 2 * self.x_bits * self.word_codes + 5,
            "address bits": counter_bits(self.depth),
            **self.weights.features(self.depth, self.widths),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        columns = self.table_registers
        weights = columns or sum(self.widths)
        ff = self.word_codes * self.x_bits * (1 + self.weight_delay)
        ff += weights * self.weight_delay + columns
        if self.weight_delay:
            ff -= self.weights.registered_bits(self.depth, self.widths)
        sums = 1 + (self.words > 1)
        # More than two sets of sums are in LUT RAM, if there is any.
        if self.kept_passes == 2 or not self.lut_ram:
            sums += self.kept_passes - 1
        tree = tree_bits(self.taps, self.x_bits + self.w_bits)
        ff += self.lanes * (self.acc_bits * sums + tree)
        ff += self.in_logic * 5 * (self.x_bits + self.w_bits) // 2
        return ff + 35

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        results = self.beats
        emptied = deque([-1] * self.kept_passes, maxlen=self.kept_passes)
        latency = self.latency
        while True:
            for count in results:
                accepted = yield origin
                if accepted <= emptied[0]:
                    accepted = emptied[0] + 1
                origin.accept(accepted)
                sent = max(accepted + latency - 1, emptied[-1])
                for _ in range(count):
                    sent = yield target, sent + 1
                emptied.append(sent)
