"""Quotient of two codes, with TensorFlow Lite's rounding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.arithmetic.tflite.division import DIFFERENCE_BITS, FRACTION_BITS, TfliteQuotient
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.parts.base.timing import Process, Stream
from nnef_hw.parts.functions.eltwise import TwoOperands

__all__ = ["Quotient"]


@dataclass(frozen=True, kw_only=True)
class Quotient(TwoOperands):
    """One quotient at a time; its contents are ``requant`` and ``in_zero_points``.

    Parameters
    ----------
    in_bits, in_signed
        Formats of the codes of both operands, of at most 8 bits.
    out_bits, out_signed
        Format of the result.
    digit_bits
        Bits of a factor that are multiplied per cycle.
    inverts
        Whether the second operand is divided by the first one.
    ram
        The device's block RAM.
    """

    component = "nnef_hw.rtl.functions.quotient:Quotient"
    label = "quotient"
    costs = "quotient"

    in_bits: tuple[int, int]
    in_signed: tuple[bool, bool]
    out_bits: int
    out_signed: bool
    digit_bits: int
    ram: BlockRam
    inverts: bool = False

    @property
    def order(self) -> tuple[int, int]:
        """Which operand is the dividend, and which the divisor."""
        return (1, 0) if self.inverts else (0, 1)

    @property
    def digits(self) -> tuple[int, int]:
        """Digits of a dividend with its sign, and of the ratio of scales."""
        bits = DIFFERENCE_BITS + 1, FRACTION_BITS
        return -(-bits[0] // self.digit_bits), -(-bits[1] // self.digit_bits)

    @property
    def latency(self) -> int:
        return sum(self.digits) + 6

    @property
    def interval(self) -> int:
        return self.latency + 1

    @property
    def reciprocal_bits(self) -> int:
        """Width of a reciprocal without its highest bit, which is set."""
        return FRACTION_BITS - 1

    @property
    def moved_bits(self) -> int:
        """Width of the number of places that a reciprocal is shifted by."""
        return (DIFFERENCE_BITS - 1).bit_length()

    @property
    def memory(self) -> Tiling:
        """Memory of the reciprocals of all divisors, with their places and signs."""
        width = self.reciprocal_bits + self.moved_bits + 1
        return tile_memory(self.ram, 1 << self.in_bits[self.order[1]], width)

    @property
    def memories(self) -> tuple[Tiling, ...]:
        return (self.memory,)

    def compute(
        self, a: IntArray, b: IntArray, *, requant: TfliteQuotient, in_zero_points: tuple[int, int]
    ) -> IntArray:
        """Return the quotients of codes [beats, 1] of both operands."""
        differences = a - in_zero_points[0], b - in_zero_points[1]
        return requant.apply(*(differences[n] for n in self.order))

    @property
    def features(self) -> Mapping[str, float]:
        return {"digit bits": self.digit_bits}

    def flip_flops(self, device: Device) -> int:
        del device
        return 200

    def process(self, target: Stream, *origins: Stream) -> Process:
        idle = 0
        while True:
            time = idle
            for origin in origins:
                time = max(time, (yield origin))
            for origin in origins:
                origin.accept(time)
            idle = (yield target, time + self.latency) + 1
