"""Requantizers: with our rounding, with TensorFlow Lite's, and of averages at borders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.numerics import IntArray, Requant
from nnef_hw.arithmetic.tflite.numerics import TfliteRequant
from nnef_hw.hardware.devices import Device
from nnef_hw.parts.base.in_step import InStep
from nnef_hw.parts.base.part import Pipe, constant_tables, counter_bits, table_features
from nnef_hw.parts.base.timing import Process, Stream

__all__ = ["AverageRequantizer", "Requantizer", "TfliteRequantizer"]


@dataclass(frozen=True, kw_only=True)
class Requantizer(Pipe):
    """Multiplies sums digit by digit in a row of stages, shifts, rounds, clips.

    Its contents are ``requant`` and ``bias``.

    Parameters
    ----------
    channels
        Sums that come in turn, each with constants of its own.
    acc_bits
        Width of the sums, signed; it suffices for them with their bias, too.
    factor_bits
        Width of the greatest number that sums are multiplied with.
    digit_bits
        Bits of the factor per stage and cycle; each of them is one more adder in a row.
    stages
        Multipliers in a row, at most one per digit.
    bits, signed
        Format of the output codes.
    offset_bits
        Width of what is added to products; 0 if nothing is.

    Attributes
    ----------
    round_stages
        Registers behind the multipliers.
    mult_bits
        Bits of a factor, unless a scheme asks for more.

    Raises
    ------
    ValueError
        If a digit has more bits than a factor may have, or there are more stages than digits.
    """

    component = "nnef_hw.rtl.arrays.requantizer:Requantizer"
    label = "requantize"
    costs = "requantizer"
    round_stages: ClassVar[int] = 1
    mult_bits: ClassVar[int] = 16

    channels: int
    acc_bits: int
    factor_bits: int
    digit_bits: int
    stages: int
    bits: int
    signed: bool
    offset_bits: int = 0

    def __post_init__(self) -> None:
        name = type(self).__name__
        most = max(self.mult_bits, self.factor_bits)
        if not 1 <= self.digit_bits <= most:
            raise ValueError(f"{name} digit_bits must be in 1..{most}, not {self.digit_bits!r}")
        digits = -(-self.factor_bits // self.digit_bits)
        if not 1 <= self.stages <= digits:
            raise ValueError(f"{name} stages must be in 1..{digits}, not {self.stages!r}")

    @property
    def constants(self) -> int:
        """Constants that sums take in turn."""
        return self.channels

    @property
    def tables(self) -> int:
        """Tables that hold the constants, a power of two; each with a register if several."""
        return constant_tables(self.constants)

    @property
    def operand_bits(self) -> int:
        """Width of what is multiplied, signed: products have at least the bits of an offset."""
        return max(self.acc_bits, self.offset_bits + 1) if self.offset_bits else self.acc_bits

    @property
    def interval(self) -> int:
        """Cycles per sum."""
        return -(-self.factor_bits // (self.digit_bits * self.stages))

    @property
    def delay(self) -> int:
        """Cycles from an accepted sum to its code in the queue of two, if nothing stalls."""
        return self.stages * self.interval + 1 + self.round_stages

    @property
    def latency(self) -> int:
        """Cycles from an accepted sum to its code."""
        return self.delay + 1

    def compute(
        self, sums: IntArray, *, requant: Requant | TfliteRequant, bias: Sequence[int]
    ) -> IntArray:
        """Return the codes [beats, 1] of sums [beats, 1]."""
        acc = sums.reshape(-1, self.channels) + np.array(bias)
        return requant.apply(acc).reshape(-1, 1)

    @property
    def features(self) -> Mapping[str, float]:
        constant_bits = self.acc_bits + self.mult_bits + self.offset_bits
        table_bits = constant_bits if self.constants > 1 else 0
        return {
            "digit bits": self.operand_bits * self.digit_bits * self.stages,
            "stage bits": self.operand_bits * self.stages,
            "serial bits": self.operand_bits * self.stages * (self.interval > 1),
            "round bits": self.acc_bits * (self.round_stages - 1),
            **table_features(table_bits, self.constants),
        }

    def flip_flops(self, device: Device) -> int:
        del device
        stage = 2 * self.operand_bits + 2
        stage += counter_bits(self.interval) + 1 if self.interval > 1 else 0
        digits = self.mult_bits * (self.stages + 1) // 2
        constants = 0
        if self.constants > 1:
            words = 1 if self.tables == 1 else 1 + self.tables
            constant_bits = self.acc_bits + self.mult_bits + self.offset_bits
            constants = words * constant_bits + counter_bits(self.constants)
        rounding = self.acc_bits * (self.round_stages - 1) + 3 * self.bits
        return self.stages * stage + digits + constants + rounding + self.offset_bits + 10

    def process(self, target: Stream, *origins: Stream) -> Process:
        """Let sums move while the queue of two codes is not full."""
        [origin] = origins
        clock, interval, delay = InStep(), self.interval, self.delay
        accepted, stalls = -interval, clock.stalls
        while True:
            offered = yield origin
            if stalls:
                accepted = max(clock.later(offered, 0), clock.later(accepted, interval))
                clock.forget(accepted)
            else:
                accepted += interval
                if offered > accepted:
                    accepted = offered
            origin.accept(accepted)
            leaving = clock.later(accepted, delay) if stalls else accepted + delay
            clock.leave((yield target, clock.enter(leaving)))


@dataclass(frozen=True, kw_only=True)
class TfliteRequantizer(Requantizer):
    """Shifts by channel and rounds twice besides."""

    component = "nnef_hw.rtl.arrays.tflite_requantizer:TfliteRequantizer"
    round_stages = 3
    mult_bits = 31


@dataclass(frozen=True, kw_only=True)
class AverageRequantizer(Requantizer):
    """Takes the constant of a sum's row and column, the same for ``channels`` sums.

    ``positions`` belong to its contents.
    """

    component = "nnef_hw.rtl.arrays.average_requantizer:AverageRequantizer"

    @property
    def constants(self) -> int:
        """Only few rows and columns differ: those at the border."""
        return 1

    def compute(  # type: ignore[override]
        self, sums: IntArray, *, requant: Requant, bias: Sequence[int],
        positions: Sequence[Sequence[int]],
    ) -> IntArray:  # fmt: skip
        """Return the codes [beats, 1] of sums [beats, 1]."""
        places = np.repeat(np.reshape(positions, -1), self.channels)
        by_place = replace(requant, mult=tuple(requant.mult[place] for place in places))
        return by_place.apply(sums.reshape(-1, len(places)) + bias[0]).reshape(-1, 1)
