"""Layer and RMS normalization over the channels of a pixel."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from nnef_hw.arithmetic.normalization import FACTOR_BITS, ROOT_BITS, NormalizeRequant
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.in_step import InStep
from nnef_hw.parts.base.part import (
    LogicProducts,
    Part,
    constant_tables,
    counter_bits,
    table_features,
)
from nnef_hw.parts.base.timing import Kernel, Log, Process, Stream

__all__ = ["SPACINGS", "Normalize", "NormalizePart"]

SPACINGS = (1, 2, 4, 8, 16)
"""Cycles per code."""

SUM_LATENCY = 4
"""Cycles from the last code of a pixel to its sums."""

GAP = 3
"""Least steps from the last code of a pixel that is read to the first of the next."""


@dataclass(frozen=True, kw_only=True)
class NormalizePart(Part):
    """Sums up a pixel, finds the root of another one, and multiplies a third one.

    Parameters
    ----------
    channels
        Codes per pixel.
    bits, signed
        Format of a code.
    out_bits, out_signed
        Format of a result.
    centered
        Whether the mean is taken from the codes.
    offset_bits
        Width of an offset, signed.
    scales, offsets
        Number of scales and offsets: 1, or one per channel.
    ram
        The device's block RAM.
    """

    label = "normalize"

    channels: int
    bits: int
    signed: bool
    out_bits: int
    out_signed: bool
    centered: bool
    offset_bits: int
    scales: int
    offsets: int
    ram: BlockRam

    @property
    @abstractmethod
    def interval(self) -> int:
        """Cycles per code."""

    @property
    @abstractmethod
    def root_cycles(self) -> int:
        """Cycles from the sums of a pixel to its root."""

    @property
    @abstractmethod
    def delay(self) -> int:
        """Steps from a code that is read to its result in the queue of two."""

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last code to its first result."""
        return SUM_LATENCY + self.root_cycles + 1 + self.delay + 1

    @property
    def pair_cycles(self) -> int:
        """Cycles from a pixel's first code to that of the next pixel but one.

        There is room for both, which one takes until it has been read again.
        """
        reading = (self.channels - 1) * self.interval
        one = max(self.channels, self.root_cycles + 1, reading + max(self.interval, GAP))
        return max(2 * one, self.channels + SUM_LATENCY + 1 + self.root_cycles + reading)

    def frame_cycles(self, pixels: int) -> int:
        """Cycles from the first code of a frame to that of the next one."""
        return -(-pixels * self.pair_cycles // 2)

    @property
    def code_memory(self) -> Tiling:
        """Memory of the codes of two pixels; the second one begins at a power of two."""
        depth = (1 << counter_bits(self.channels)) + self.channels
        return tile_memory(self.ram, depth, self.bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.code_memory,)

    @property
    def tables(self) -> tuple[int, int]:
        """Numbers of tables for scales and offsets, powers of two."""
        return constant_tables(self.scales), constant_tables(self.offsets)

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        loaded, read, rooted, started = (kernel.log() for _ in range(4))
        target = kernel.stream()
        kernel.start(self._load(origin, loaded, read))
        kernel.start(self._root(loaded, rooted, started))
        kernel.start(self._multiply(target, rooted, started, read))
        return target

    def _load(self, origin: Stream, loaded: Log, read: Log) -> Process:
        """Hold two pixels until they are read again."""
        time = -1
        for before in count(-2):
            if before >= 0:
                if len(read.times) <= before:
                    yield read, before + 1
                time = max(time, read.times[before])
            for _ in range(self.channels):
                time = max(time + 1, (yield origin))
                origin.accept(time)
            loaded.add(time)

    def _root(self, loaded: Log, rooted: Log, started: Log) -> Process:
        """Find an inverse root once the one before was taken."""
        for pixel in count():
            if len(loaded.times) <= pixel:
                yield loaded, pixel + 1
            time = loaded.times[pixel] + SUM_LATENCY
            if pixel:
                if len(started.times) < pixel:
                    yield started, pixel
                time = max(time, started.times[pixel - 1] + 1)
            rooted.add(time + self.root_cycles)

    def _multiply(self, target: Stream, rooted: Log, started: Log, read: Log) -> Process:
        """Read the codes of a pixel and multiply them.

        The next root is taken when the last code has left the memory two steps before.
        """
        clock = InStep()
        free, following = 0, 0
        for pixel in count():
            if len(rooted.times) <= pixel:
                yield rooted, pixel + 1
            start = max(rooted.times[pixel], free)
            started.add(start)
            reading = max(clock.later(start + 1, 0), following)
            for channel in range(self.channels):
                if channel:
                    reading = clock.later(reading, self.interval)
                clock.forget(reading)
                if channel == self.channels - 1:
                    read.add(reading)
                    free = clock.later(reading, GAP - 1)
                    following = clock.later(reading, self.interval)
                leaving = clock.enter(clock.later(reading, self.delay))
                clock.leave((yield target, leaving))


@dataclass(frozen=True, kw_only=True)
class Normalize(NormalizePart):
    """Multiplies by an inverse root.

    Its contents are ``requant``, ``zero_point``, ``mult`` and ``offset``.

    Parameters
    ----------
    epsilon_bits
        Width of what is added to the variance.
    fraction
        Bits of a normalized number below 1.
    spacing
        Cycles per code.
    """

    component = "nnef_hw.rtl.functions.normalize:Normalize"
    costs = "normalize"

    epsilon_bits: int
    fraction: int
    spacing: int

    def __post_init__(self) -> None:
        if self.spacing not in SPACINGS:
            raise ValueError(f"Normalize spacing must be in {SPACINGS}, not {self.spacing!r}")

    @property
    def interval(self) -> int:
        return self.spacing

    @property
    def digit_bits(self) -> int:
        """Bits of a factor per cycle and stage."""
        return 1 if self.spacing == FACTOR_BITS else 2

    @property
    def finer(self) -> int:
        """Bits by which the fraction of some normalized numbers may be shorter."""
        return 0

    @property
    def stages(self) -> int:
        """Stages of a multiplier."""
        return FACTOR_BITS // (self.digit_bits * self.spacing)

    @property
    def difference_bits(self) -> int:
        """Width of a code less what is taken from it, signed: the mean makes up for the rest."""
        return self.bits + (not self.centered)

    @property
    def largest(self) -> int:
        """The greatest magnitude of such a difference."""
        return 1 << self.bits - 1 if self.centered else (1 << self.bits) - 1

    @property
    def sum_bits(self) -> int:
        """Width of the sum of a pixel's differences, signed."""
        return self.difference_bits + counter_bits(self.channels)

    @property
    def square_bits(self) -> int:
        """Width of the sum of their squares."""
        return int((self.channels * self.largest**2).bit_length())

    @property
    def radicand_bits(self) -> int:
        """Width of the number whose root is taken, even."""
        most = self.channels**2 * self.largest**2 + (1 << self.epsilon_bits) - 1
        return 2 * -(-most.bit_length() // 2)

    @property
    def deviation_bits(self) -> int:
        """Width of ``channels * difference - sum``, signed."""
        return int((self.channels * ((1 << self.bits) - 1)).bit_length()) + 1

    @property
    def normal_bits(self) -> int:
        """Width of a normalized number, signed."""
        most = math.isqrt(self.channels << 2 * (self.fraction + 8))
        most += (most >> FACTOR_BITS - 2) + 1  # an inverse root is less than 2**-15 too great
        return ((most >> 8) + 1).bit_length() + 1

    @property
    def root_cycles(self) -> int:
        square = self.sum_bits if self.centered else 0
        return 3 + square + (self.radicand_bits // 2 - 1) + ROOT_BITS + FACTOR_BITS

    @property
    def delay(self) -> int:
        return 6 + 2 * self.stages * self.spacing

    def compute(
        self, codes: IntArray, *, requant: NormalizeRequant, zero_point: int,
        mult: Sequence[int], offset: Sequence[int],
    ) -> IntArray:  # fmt: skip
        """Return the normalized codes of codes [beats, 1]."""
        pixels = codes.reshape(-1, self.channels) - zero_point
        return requant.apply(pixels, mult, offset).reshape(-1, 1)

    @property
    def features(self) -> Mapping[str, float]:
        multiplied = self.deviation_bits + self.normal_bits
        scales = table_features((FACTOR_BITS + 1) * (self.scales > 1), self.scales)
        offsets = table_features(self.offset_bits * (self.offsets > 1), self.offsets)
        # The square of the sum is taken from the radicand.
        root = self.radicand_bits * (1 + self.centered)
        return {
            "sum bits": self.sum_bits + self.square_bits + root,
            "digit bits": multiplied * self.digit_bits * self.stages,
            "table LUTs": sum((*scales.values(), *offsets.values())),
        }

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return (LogicProducts(1, (self.difference_bits, self.difference_bits)),)

    def flip_flops(self, device: Device) -> int:
        del device
        sums = 4 * self.difference_bits + self.sum_bits + self.square_bits
        root = 2 * self.radicand_bits + self.sum_bits + 60
        stage = 2 * (self.deviation_bits + self.normal_bits) + FACTOR_BITS + 16
        return sums + root + self.stages * stage + 2 * self.deviation_bits + 5 * self.out_bits + 60
