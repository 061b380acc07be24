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
from nnef_hw.parts.functions.pixel_banks import hold_two_pixels

__all__ = ["FAST_SPACINGS", "SPACINGS", "Normalize", "NormalizePart"]

SPACINGS = (1, 2, 4, 8, 16)
"""Cycles per beat."""

FAST_SPACINGS = (1, 2)
"""Cycles per beat of a part that finds two bits of a root per cycle."""

SUM_LATENCY = 4
"""Cycles from the last beat of a pixel to its sums, where a beat is a code."""

GAP = 3
"""Least steps from the last beat of a pixel that is read to the first of the next."""


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
    lanes
        Codes per beat, of consecutive channels.
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
    lanes: int = 1

    def __post_init__(self) -> None:
        if self.channels % self.lanes:
            raise ValueError(
                f"{type(self).__name__} of {self.channels} channels has no beats of {self.lanes}"
            )

    @property
    def beats(self) -> int:
        """Beats of a pixel."""
        return self.channels // self.lanes

    @property
    def sum_latency(self) -> int:
        """Cycles from the last beat of a pixel to its sums: one more per two adders of codes."""
        return SUM_LATENCY + (counter_bits(self.lanes) + 1) // 2

    @property
    @abstractmethod
    def interval(self) -> int:
        """Cycles per beat."""

    @property
    @abstractmethod
    def root_cycles(self) -> int:
        """Cycles from the sums of a pixel to its root."""

    @property
    @abstractmethod
    def delay(self) -> int:
        """Steps from a beat that is read to its results in the queue of two."""

    @property
    def latency(self) -> int:
        """Cycles from a pixel's last beat to its first result."""
        return self.sum_latency + self.root_cycles + 1 + self.delay + 1

    @property
    def pair_cycles(self) -> int:
        """Cycles from a pixel's first beat to that of the next pixel but one.

        There is room for both, which one takes until it has been read again.
        """
        reading = (self.beats - 1) * self.interval
        one = max(self.beats, self.root_cycles + 1, reading + max(self.interval, GAP))
        return max(2 * one, self.beats + self.sum_latency + 1 + self.root_cycles + reading)

    def frame_cycles(self, pixels: int) -> int:
        """Cycles from the first beat of a frame to that of the next one."""
        return -(-pixels * self.pair_cycles // 2)

    @property
    def code_memory(self) -> Tiling:
        """Memory of the codes of two pixels; the second one begins at a power of two."""
        depth = (1 << counter_bits(self.beats)) + self.beats
        return tile_memory(self.ram, depth, self.lanes * self.bits)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.code_memory,)

    @property
    def tables(self) -> tuple[int, int]:
        """Numbers of tables for scales and offsets of a lane, powers of two."""
        return constant_tables(self._in_turn(self.scales)), constant_tables(
            self._in_turn(self.offsets)
        )

    def _in_turn(self, constants: int) -> int:
        """Return how many of so many constants come in turn in a lane."""
        return max(1, constants // self.lanes)

    def start(self, kernel: Kernel, *origins: Stream) -> Stream:
        [origin] = origins
        loaded, read, rooted, started = (kernel.log() for _ in range(4))
        target = kernel.stream()
        kernel.start(hold_two_pixels(origin, self.beats, loaded, read))
        kernel.start(self._root(loaded, rooted, started))
        kernel.start(self._multiply(target, rooted, started, read))
        return target

    def _root(self, loaded: Log, rooted: Log, started: Log) -> Process:
        """Find an inverse root once the one before was taken."""
        for pixel in count():
            if len(loaded.times) <= pixel:
                yield loaded, pixel + 1
            time = loaded.times[pixel] + self.sum_latency
            if pixel:
                if len(started.times) < pixel:
                    yield started, pixel
                time = max(time, started.times[pixel - 1] + 1)
            rooted.add(time + self.root_cycles)

    def _multiply(self, target: Stream, rooted: Log, started: Log, read: Log) -> Process:
        """Read the beats of a pixel and multiply them.

        The next root is taken when the last beat has left the memory two steps before.
        """
        clock = InStep()
        free, following = 0, 0
        for pixel in count():
            if len(rooted.times) <= pixel:
                yield rooted, pixel + 1
            start = max(rooted.times[pixel], free)
            started.add(start)
            reading = max(clock.later(start + 1, 0), following)
            for beat in range(self.beats):
                if beat:
                    reading = clock.later(reading, self.interval)
                clock.forget(reading)
                if beat == self.beats - 1:
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
        Cycles per beat.
    digits
        Bits of a root or of its inverse that a cycle finds, 1 or 2. A stage of a multiplier takes
        twice as many bits of a factor. More of them shorten the way of a lone pixel.
    """

    component = "nnef_hw.rtl.functions.normalize:Normalize"
    costs = "normalize"

    epsilon_bits: int
    fraction: int
    spacing: int
    digits: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.spacing not in SPACINGS:
            raise ValueError(f"Normalize spacing must be in {SPACINGS}, not {self.spacing!r}")
        if self.digits not in (1, 2) or not self.stages:
            raise ValueError(f"Normalize has no {self.digits!r} digits at spacing {self.spacing}")

    @property
    def interval(self) -> int:
        return self.spacing

    @property
    def digit_bits(self) -> int:
        """Bits of a factor per cycle and stage."""
        return self.digits if self.spacing == FACTOR_BITS else 2 * self.digits

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
        found = square, self.radicand_bits // 2 - 1, ROOT_BITS, FACTOR_BITS
        return 3 + sum(-(-bits // self.digits) for bits in found)

    @property
    def delay(self) -> int:
        return 6 + 2 * self.stages * self.spacing

    def compute(
        self, codes: IntArray, *, requant: NormalizeRequant, zero_point: int,
        mult: Sequence[int], offset: Sequence[int],
    ) -> IntArray:  # fmt: skip
        """Return the normalized codes of codes [beats, lanes]."""
        pixels = codes.reshape(-1, self.channels) - zero_point
        return requant.apply(pixels, mult, offset).reshape(-1, self.lanes)

    @property
    def features(self) -> Mapping[str, float]:
        multiplied = self.deviation_bits + self.normal_bits
        constants = (
            ((FACTOR_BITS + 1) * (self.scales > 1), self._in_turn(self.scales)),
            (self.offset_bits * (self.offsets > 1), self._in_turn(self.offsets)),
        )
        tables = sum(sum(table_features(*each).values()) for each in constants)
        # The square of the sum is taken from the radicand.
        root = self.radicand_bits * (1 + self.centered)
        # The first lane's shifter and limits are in what is fixed.
        others = (self.lanes - 1) * (3 * self.normal_bits + self.out_bits)
        return {
            "sum bits": self.sum_bits + self.square_bits + root + others,
            "digit bits": self.lanes * multiplied * self.digit_bits * self.stages,
            "table LUTs": self.lanes * tables,
        }

    @property
    def logic_products(self) -> Sequence[LogicProducts]:
        return (LogicProducts(self.lanes, (self.difference_bits, self.difference_bits)),)

    def flip_flops(self, device: Device) -> int:
        del device
        sums = self.lanes * 4 * self.difference_bits + self.sum_bits + self.square_bits
        root = 2 * self.radicand_bits + self.sum_bits + 60
        stage = 2 * (self.deviation_bits + self.normal_bits) + FACTOR_BITS + 16
        lane = self.stages * stage + 2 * self.deviation_bits + 5 * self.out_bits
        return sums + root + self.lanes * lane + 60
