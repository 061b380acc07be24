"""Requantizers: with our rounding, with TensorFlow Lite's, and of averages at borders."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from nnef_hw.devices import Device
from nnef_hw.parts.part import Pipe, counter_bits, rom_luts
from nnef_hw.parts.timing import Process, Stream

__all__ = ["AverageRequantizer", "Requantizer", "TfliteRequantizer"]

SHORT_TABLE = 16


@dataclass(frozen=True, kw_only=True)
class Requantizer(Pipe):
    """Multiplies sums digit by digit in a row of stages, shifts, rounds, clips.

    Parameters
    ----------
    channels
        Sums that come in turn, each with constants of its own.
    acc_bits, digit_bits, stages, bits, signed
        As of the component.
    factor_bits
        Width of the greatest number that sums are multiplied with.
    """

    component = "nnef_hw.rtl.requantizer:Requantizer"
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

    @property
    def constants(self) -> int:
        """Constants that sums take in turn."""
        return self.channels

    @property
    def interval(self) -> int:
        """Cycles per sum."""
        return -(-self.factor_bits // (self.digit_bits * self.stages))

    @property
    def features(self) -> Mapping[str, float]:
        table = 0.0
        if self.constants > 1:
            table = (self.acc_bits + self.mult_bits) * rom_luts(self.constants)
        short = self.constants <= SHORT_TABLE
        return {
            "digit bits": self.acc_bits * self.digit_bits * self.stages,
            "stage bits": self.acc_bits * self.stages,
            "serial bits": self.acc_bits * self.stages * (self.interval > 1),
            "round bits": self.acc_bits * (self.round_stages - 1),
            "short table": table if short else 0.0,
            "long table": 0.0 if short else table,
        }

    def flip_flops(self, device: Device) -> int:
        del device
        stage = 2 * self.acc_bits + 2
        stage += counter_bits(self.interval) + 1 if self.interval > 1 else 0
        digits = self.mult_bits * (self.stages + 1) // 2
        constants = 0
        if self.constants > 1:
            constants = self.acc_bits + self.mult_bits + counter_bits(self.constants)
        rounding = self.acc_bits * (self.round_stages - 1) + 3 * self.bits
        return self.stages * stage + digits + constants + rounding + 10

    def process(self, target: Stream, *origins: Stream) -> Process:
        """Let sums move while the queue of two codes is not full."""
        [origin] = origins
        stalls: deque[tuple[int, int]] = deque()

        def moved(time: int, cycles: int) -> int:
            """Return the cycle that comes so many cycles later, stalls not counted."""
            end = time + cycles
            for first, last in stalls:
                if first <= end and time <= last:
                    end += last - max(first, time) + 1
            return end

        given, interval = -1, self.interval
        delay = self.stages * interval + 1 + self.round_stages
        accepted = -interval
        while True:
            offered = yield origin
            if stalls:
                accepted = max(moved(offered, 0), moved(accepted, interval))
                while stalls and stalls[0][1] < accepted:
                    stalls.popleft()
                entered = moved(accepted, delay)
            else:
                accepted = max(offered, accepted + interval)
                entered = accepted + delay
            origin.accept(accepted)
            if given > entered:
                stalls.append((entered + 1, given))
            given = yield target, max(entered, given) + 1

    def build(self, **contents: Any) -> Any:
        """Return the component; contents are ``requant`` and ``bias``."""
        component = self.component_class()(
            in_bits=self.acc_bits, acc_bits=self.acc_bits, digit_bits=self.digit_bits,
            stages=self.stages, bits=self.bits, signed=self.signed, **contents,
        )  # fmt: skip
        assert component.interval == self.interval
        return component


@dataclass(frozen=True, kw_only=True)
class TfliteRequantizer(Requantizer):
    """Shifts by channel and rounds twice besides."""

    component = "nnef_hw.rtl.tflite_requantizer:TfliteRequantizer"
    round_stages = 3
    mult_bits = 31


@dataclass(frozen=True, kw_only=True)
class AverageRequantizer(Requantizer):
    """Takes the constant of a sum's row and column, the same for ``channels`` sums."""

    component = "nnef_hw.rtl.average_requantizer:AverageRequantizer"

    @property
    def constants(self) -> int:
        """Only few rows and columns differ: those at the border."""
        return 1

    def build(self, **contents: Any) -> Any:
        """Return the component; contents are ``requant``, ``bias`` and ``positions``."""
        return super().build(channels=self.channels, **contents)
