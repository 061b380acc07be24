"""The systolic array."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import Tiling
from nnef_hw.parts.arrays.weights import WeightRom, WeightStore
from nnef_hw.parts.base.part import LogicProducts, Pipe, counter_bits
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.base.untyped import Content, Hardware
from nnef_hw.parts.windows.passes import window_cycles

__all__ = ["DSP_BITS", "ArrayPart", "SystolicArray", "tree_bits"]

DSP_BITS = 8
"""Widest codes and weights that a DSP block takes, of a product of two and of two sums."""

SHORT_SHARE = 0.36
"""LUTs of a multiplier with at most two weights, as a share of any other's."""


def tree_bits(count: int, width: int) -> int:
    """Register bits of an adder tree of ``count`` products of ``width`` bits."""
    bits = 0
    while count > 1:
        count, width = -(-count // 2), width + 1
        bits += count * width
    return bits


@dataclass(frozen=True, kw_only=True)
class ArrayPart(Pipe):
    """Multiply-accumulate units; items are passes over a window, and then sums.

    Parameters
    ----------
    channels
        Output channels.
    lanes
        Codes at once of each of them, or channels at once.
    kept_passes
        Passes whose sums may be in the array, at least 1.
    x_bits, x_signed, w_bits, acc_bits
        Formats of codes, weights and sums; one bit holds weights of +1 and -1.
    in_dsp
        How many multipliers are in DSP blocks, the first ones; the others are in LUTs. They are
        built in pairs, of which the second one goes with the first.
    weights
        Where its weights come from.
    weight_delay
        Registers between the weight memories and the multipliers, for devices whose block RAMs
        are slow and far from their multipliers.
    out_lanes
        Sums per beat, of consecutive channels.
    """

    label = "array"

    channels: int
    lanes: int
    kept_passes: int
    x_bits: int
    x_signed: bool
    w_bits: int
    acc_bits: int
    in_dsp: int
    weights: WeightStore
    weight_delay: int
    out_lanes: int = 1

    @property
    @abstractmethod
    def latency(self) -> int:
        """Cycles from the accepted last word of a pass to its first sum."""

    @property
    @abstractmethod
    def runs(self) -> list[int]:
        """Multipliers of every run of pairs; the last one of a run may be alone."""

    @property
    def runs_in_dsp(self) -> list[int]:
        """Numbers of the multipliers that are in DSP blocks."""
        found, left = [], self.in_dsp
        for run in self.runs:
            count = min(max(left, 0), run)
            found.append(min(count + count % 2, run))
            left -= run
        return found

    def dsp(self, device: Device) -> int:
        return sum(-(-count // device.products_per_dsp(self.w_bits)) for count in self.runs_in_dsp)

    @property
    def in_logic(self) -> int:
        return self.multipliers - sum(self.runs_in_dsp)

    @property
    @abstractmethod
    def depth(self) -> int:
        """Words of a weight memory."""

    @property
    @abstractmethod
    def widths(self) -> Sequence[int]:
        """Bits of a word of every weight memory: one for each group that reads the same word."""

    @abstractmethod
    def arranged(self, weights: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the weights as [depth, weights of a word], for every weight memory."""

    def _checked(self, weights: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Return weights that have the shape."""
        if weights.shape != shape:
            name = type(self).__name__
            raise ValueError(f"{name} needs weights of shape {shape}, not {weights.shape}")
        return weights

    @property
    def absent_weight(self) -> int:
        """Weight of a product that is not needed: all of its bits are 0."""
        return 1 if self.w_bits == 1 else 0

    @property
    def weight_memories(self) -> tuple[Tiling, ...]:
        """Shape of every weight memory."""
        return self.weights.tilings(self.depth, self.widths)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return self.weights.memories(self.depth, self.widths)

    @property
    def table_registers(self) -> int:
        """Registers behind the weights that are in LUTs."""
        return self.weights.columns(self.depth, self.widths)

    def build(self, **contents: Content) -> Hardware:
        """Return the component with read-only memories of the weights."""
        assert isinstance(self.weights, WeightRom)
        words = self.arranged(contents["weights"])
        return super().build(weights=self.weights.build(words, self.w_bits))

    def made(self, component: Hardware) -> list[Hardware]:
        return [component, *component.weights]

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        # few weights each are half constants
        share = SHORT_SHARE if self.depth <= 2 and self.weights.table_bits(self.widths) else 1.0
        return (LogicProducts(share * self.in_logic, (self.x_bits, self.w_bits)),)

    @property
    def timing(self) -> ArrayPart:
        return replace(self, in_dsp=0, weights=self.weights.timing)

    @abstractmethod
    def window_cycles(self, interval: int, *, queued: bool) -> Fraction:
        """Cycles of all passes over a window, if a beat is taken every ``interval`` cycles.

        ``queued`` if two more may wait for that.
        """

    def _beats(self, sums: IntArray) -> IntArray:
        """Return sums [windows, channels], which wrap, as beats [beats, out_lanes]."""
        half = 1 << self.acc_bits - 1
        wrapped = (sums + half) % (2 * half) - half
        return np.asarray(wrapped.reshape(-1, self.out_lanes))


@dataclass(frozen=True, kw_only=True)
class SystolicArray(ArrayPart):
    """Rows of units, each of ``lanes`` products per word.

    Parameters
    ----------
    words
        Window words of a pass (T of the design).
    rows, group_rows
        Output channels at once; rows that share a weight memory.

    Attributes
    ----------
    products_per_multiplier
        Products of codes and weights that a multiplier makes.
    row_unit
        Rows that share multipliers: those of a group are a multiple of it.

    Raises
    ------
    ValueError
        If there are more rows than channels, or in a group than in all; if it is to keep more than
        two passes; if channels, rows or those of a group are not whole beats.
    """

    component = "nnef_hw.rtl.arrays.array:SystolicArray"
    costs = "array"
    products_per_multiplier: ClassVar[int] = 1
    row_unit: ClassVar[int] = 1

    words: int
    rows: int
    group_rows: int

    def __post_init__(self) -> None:
        if not 1 <= self.group_rows <= self.rows <= self.channels:
            raise ValueError(
                f"SystolicArray needs group_rows <= rows <= {self.channels} channels, "
                f"not {self.group_rows!r} and {self.rows!r}"
            )
        if self.kept_passes not in {1, 2}:
            raise ValueError(f"SystolicArray kept_passes must be 1 or 2, not {self.kept_passes!r}")
        sizes = self.channels, self.rows, self.group_rows
        if self.out_lanes < 1 or any(size % self.out_lanes for size in sizes):
            raise ValueError(
                f"SystolicArray channels, rows and group_rows {sizes} must be multiples of "
                f"out_lanes {self.out_lanes!r}"
            )

    @classmethod
    def suits(cls, device: Device, *, x_bits: int, w_bits: int, weights: NDArray[np.int64]) -> bool:
        """Whether the device has multipliers of this kind, and they take such codes and weights."""
        del device, x_bits, w_bits, weights
        return True

    @classmethod
    def is_useful(cls, device: Device, rows: int, lanes: int) -> bool:
        """Whether an array of this kind and size can be, and gains anything over a plain one."""
        del device, rows, lanes
        return True

    @classmethod
    def multipliers_of(cls, rows: int, lanes: int) -> int:
        """Return the multipliers of an array of that size."""
        return rows * lanes

    @classmethod
    def dsp_choices(cls, rows: int, lanes: int) -> tuple[int, ...]:
        """List how many multipliers of an array of that size may be in DSP blocks."""
        return cls.multipliers_of(rows, lanes), 0

    @classmethod
    def offsets(
        cls, weights: NDArray[np.int64], *, x_bits: int, x_signed: bool
    ) -> NDArray[np.int64]:
        """Return the excess of the sums of every channel, modulo ``2**acc_bits``.

        ``weights`` are those that the array takes, [channels, words, lanes].
        """
        del x_bits, x_signed
        return np.zeros(len(weights), np.int64)

    @property
    def multipliers(self) -> int:
        return self.multipliers_of(self.rows, self.lanes)

    @property
    def passes(self) -> int:
        """Passes over a window."""
        return -(-self.channels // self.rows)

    @property
    def results(self) -> list[int]:
        """Beats of sums of every pass."""
        starts = range(0, self.channels, self.rows)
        return [min(self.rows, self.channels - first) // self.out_lanes for first in starts]

    @property
    def sum_stage(self) -> int:
        """Registers from an accepted word to the sum of its products, hops left out."""
        return 3 + self.weight_delay + (self.lanes - 1).bit_length()

    @property
    def latency(self) -> int:
        return self.sum_stage + 4

    def window_cycles(self, interval: int, *, queued: bool) -> Fraction:
        return window_cycles(
            self.channels // self.out_lanes, self.rows // self.out_lanes, self.words,
            self.latency, self.kept_passes, interval, queued,
        )  # fmt: skip

    @property
    def group_sizes(self) -> list[int]:
        """Rows of every group that shares a weight memory."""
        starts = range(0, self.rows, self.group_rows)
        return [min(self.group_rows, self.rows - first) for first in starts]

    @property
    def depth(self) -> int:
        """Words of a weight memory."""
        return self.passes * self.words

    @property
    def widths(self) -> list[int]:
        return [rows * self.lanes * self.w_bits for rows in self.group_sizes]

    def arranged(self, weights: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return [pass and word, row and lane] of every group.

        ``weights`` are [channels, words, lanes], in window order; absent lanes are 0.
        """
        self._checked(weights, (self.channels, self.words, self.lanes))
        rows = np.full((self.passes * self.rows, self.words, self.lanes), self.absent_weight)
        rows[: self.channels] = weights
        by_pass = rows.reshape(self.passes, self.rows, self.words, self.lanes).swapaxes(1, 2)
        groups = np.split(by_pass, range(self.group_rows, self.rows, self.group_rows), axis=2)
        return [group.reshape(self.depth, -1) for group in groups]

    @property
    def runs(self) -> list[int]:
        return [rows * self.lanes for rows in self.group_sizes]

    def compute(self, words: IntArray, *, weights: IntArray) -> IntArray:
        """Return the sums [beats, out_lanes] of passes of words [passes, words, lanes].

        ``weights`` are [channels, words, lanes].
        """
        return self._beats(self._sums(words, weights))

    def _sums(self, words: IntArray, weights: IntArray) -> IntArray:
        """Return the sums [windows, channels]."""
        windows = words.reshape(-1, self.passes, self.words, self.lanes)
        channels = np.arange(self.channels) // self.rows
        sums: IntArray = np.einsum("pcwl,cwl->pc", windows[:, channels], weights)
        return sums

    @property
    def features(self) -> Mapping[str, float]:
        address, groups = counter_bits(self.depth), len(self.group_sizes)
        return {
            "sum bits": self.rows * self.acc_bits,
            "kept bits": self.rows * self.acc_bits * (self.kept_passes - 1),
            "tree bits": self.rows * tree_bits(self.lanes, self.x_bits + self.w_bits),
            "hop bits": self.x_bits * self.lanes * (groups + 1)
            + address * (groups - 1)
            + 5 * groups,
            "address bits": address,
            **self.weights.features(self.depth, self.widths),
        }

    @property
    def _address_bits(self) -> int:
        """Bits of the address that hops from group to group beside the codes."""
        return counter_bits(self.depth) + 5

    def flip_flops(self, device: Device) -> int:
        del device
        groups, word = len(self.group_sizes), self.x_bits * self.lanes
        tree = tree_bits(self.lanes, self.x_bits + self.w_bits)
        ff = self.rows * (self.acc_bits * (1 + self.kept_passes) + tree)
        ff += word * (groups + 1) + self._address_bits * groups + self.table_registers
        ff += self.weight_delay * (self.multipliers * self.w_bits + word * groups)
        if self.weight_delay:
            ff -= self.weights.registered_bits(self.depth, self.widths)
        ff += self.in_logic * 2 * (self.x_bits + self.w_bits)
        return ff + 25 + 5 * (self.lanes - 1).bit_length()

    def process(self, target: Stream, *origins: Stream) -> Process:
        [origin] = origins
        results = self.results
        emptied = [-1] * self.kept_passes
        latency = self.latency
        while True:
            for count in results:
                accepted = yield origin
                if accepted <= emptied[0]:
                    accepted = emptied[0] + 1
                origin.accept(accepted)
                sent = max(accepted + latency, emptied[-1] + 1) - 1
                for _ in range(count):
                    sent = yield target, sent + 1
                emptied = [*emptied[1:], sent]
