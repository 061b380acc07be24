"""Features of a frame's channels, as instructions: noise, gain, logarithm."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.audio.logarithm import LOG_BITS, SLOPE_BITS
from nnef_hw.arithmetic.audio.micro_frontend import (
    GAIN_BITS,
    NEPER,
    NOISE_BITS,
    REMAINS,
    SHRUNK_BITS,
    SMOOTHING,
    SMOOTHING_BITS,
    SNR_BITS,
    MicroFrontend,
)
from nnef_hw.parts.audio.front_words import LIMB
from nnef_hw.parts.audio.program import (
    Base,
    Factor,
    Instruction,
    Kind,
    Load,
    Op,
    Place,
    Register,
    Slice,
)
from nnef_hw.parts.audio.sums import SumWriter

__all__ = ["FeatureWriter"]

M, K, C, J, L = Register.M, Register.K, Register.C, Register.J, Register.L
LOW, HALF, HIGH, TOP = Slice.LOW, Slice.HALF, Slice.HIGH, Slice.TOP


class FeatureWriter(SumWriter):
    """Appends what becomes of the sums of channels to a program.

    Attributes
    ----------
    front
        The front end.
    take
        Address of the instruction that takes samples.
    """

    front: MicroFrontend
    take: int

    def _noise(self) -> None:
        """Let the noise of even channels follow, then that of odd ones."""
        program, scale = self._program, 1 << NOISE_BITS
        for parity, share in enumerate(SMOOTHING):
            follow = int(np.float32(share) * scale)
            program.set(C, parity)
            with program.loop(C, 2, self.front.channels + parity):
                keep = 2 * (scale - follow)
                for half, base in (("_high", Base.ZERO), ("", Base.UP)):
                    self._add(Place(self._at(f"scaled{half}"), C), 2 * follow, base=base)
                    self._add(Place(self._at(f"noise{half}"), C), keep)
                self._write_wide("noise", HALF, by=C)

    def _features(self) -> None:
        """Compute each channel's feature, and give it."""
        program, front = self._program, self.front
        program.set(C, 0)
        with program.loop(C, 1, front.channels):
            self._reduce()
            self._gain()
            self._ratio()
            self._logarithm()
            self._add("feature", self._table("mult"), base=Base.ZERO)
            self._add("feature", self._table("mult", at=1), base=Base.UP)
            program.add(Instruction(kind=Kind.GIVE))
        program.jump(self.take)

    def _reduce(self) -> None:
        """Subtract the noise from the signal, of which a little remains."""
        for half, base in (("_high", Base.ZERO), ("", Base.UP)):
            self._add(Place(self._at(f"scaled{half}"), C), base=base)
            self._add(Place(self._at(f"noise{half}"), C), minus=True)
        self._repeat(1, Op.LIMIT)
        self._shift(SMOOTHING_BITS)
        self._write_wide("left")
        self._times("signal", 2 * int(np.float32(REMAINS) * (1 << NOISE_BITS)), by=C)
        self._write_wide("least", HALF)
        self._add("left_high", base=Base.ZERO)
        self._add("least_high", minus=True)
        self._add("left", base=Base.UP)
        self._add("least", minus=True)
        self._greater("least")
        self._write_wide("reduced")

    def _greater(self, name: str) -> None:
        """Make the greater of two numbers of what one is more than the other."""
        self._repeat(1, Op.LIMIT)
        self._add(name)
        # its upper half is added 2**16 times
        self._add(f"{name}_high", 1 << LIMB - 1)
        self._add(f"{name}_high", 1 << LIMB - 1)

    def _gain(self) -> None:
        """Find the gain of a channel by the number of bits of its noise, and what is below them."""
        by_zeros = Register.COUNT
        self._add("one", 0, base=Base.ZERO, load=Load.COUNT)
        self._times("noise", 1, by=C)
        self._repeat(32, Op.NORMALIZE)
        self._write("place", HALF)
        # ten bits of it
        self._add("place", 1 << 9, base=Base.ZERO, to="place", bits=HALF)
        self._add("half_up", self._table("gain", by_zeros), base=Base.HALF)
        self._write_wide("gain")
        self._add("32", self._table("slope", by_zeros), base=Base.ZERO, signed_factor=True)
        self._write_wide("rise")
        self._add("place", self._table("bend", by_zeros), base=Base.ZERO, signed_factor=True)
        self._shift(5)
        self._add("rise")
        self._add("rise_high", 1 << LIMB - 1, signed=True)
        self._add("rise_high", 1 << LIMB - 1, signed=True)
        self._write_wide("rise")
        self._add("place", op=Op.HOLD, load=Load.KEPT)
        self._add("rise_high", Factor.KEPT, base=Base.ZERO, signed=True)
        self._add("gain_high")
        self._add("rise", Factor.KEPT, base=Base.UP)
        self._add("gain", to="gain", bits=HALF)

    def _ratio(self) -> None:
        """Multiply the signal by its gain, and shrink small results."""
        front = self.front
        self._add("gain", op=Op.HOLD, load=Load.KEPT)
        self._times("reduced", Factor.KEPT)
        self._shift(GAIN_BITS - front.correction - SNR_BITS)
        self._write_wide("ratio")
        small = (2 << SNR_BITS) - 1
        self._add("ratio_high", base=Base.ZERO, minus=True)
        self._add("one", small, base=Base.UP)
        self._add("ratio", minus=True)
        self._repeat(1, Op.LIMIT)
        self._write("rest")
        self._times("ratio", 1)
        self._shift(SNR_BITS - SHRUNK_BITS)
        self._add("one", 1 << SHRUNK_BITS, minus=True)
        self._write_wide("large")
        self._add("one", small, base=Base.ZERO)
        self._add("rest", minus=True, to="small")
        self._add("small", op=Op.HOLD, load=Load.KEPT)
        self._add("small", Factor.KEPT, base=Base.ZERO)
        self._shift(2 + 2 * SNR_BITS - SHRUNK_BITS)
        self._write("small")
        # the square is the greater one of small ratios
        self._times("large", 1, signed_high=True)
        self._add("small", minus=True)
        self._repeat(1, Op.LIMIT)
        self._add("small")
        self._write_wide("ratio")

    def _logarithm(self) -> None:
        """Take the natural logarithm, in steps of 1/64."""
        self._add("one", 0, base=Base.ZERO, load=Load.COUNT)
        self._times("ratio", 1 << self.front.correction)
        self._repeat(31, Op.NORMALIZE)
        self._add("one", op=Op.HOLD, load=Load.SEGMENT)
        self._write("fraction", HALF)
        self._add("one", 0, base=Base.COUNT, to="zeros", bits=HIGH)
        # what is behind an entry of the table, 2**7 times
        self._add("fraction", 1 << LIMB - SLOPE_BITS, base=Base.ZERO, to="behind")
        self._add("one", 31, base=Base.ZERO)
        self._add("zeros", minus=True, to="places")
        self._add("behind", self._table("slopes", J), base=Base.ZERO, signed_factor=True)
        # the original shifts it by 16 bits, not by 9
        self._shift(LOG_BITS + LIMB - SLOPE_BITS)
        self._add("fraction")
        self._add("one", self._table("excess", J))
        self._write_wide("fraction")
        self._add("fraction_high", base=Base.ZERO)
        self._add("places", to="places")
        self._add("places", NEPER, base=Base.ZERO)
        self._add("fraction", NEPER, base=Base.UP)
        self._add("half_up", 1)
        # rounded twice: (n + 2**9) >> 10 of its upper bits
        self._add("half_up", 1 << 10)
        self._shift(26)
        self._write("feature")
