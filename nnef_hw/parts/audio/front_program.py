"""The program of TensorFlow Lite Micro's audio front end, and the constants that it reads."""

from __future__ import annotations

from collections.abc import Sequence

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
from nnef_hw.parts.audio.front_words import LIMB, FrontWords
from nnef_hw.parts.audio.program import (
    ADDRESS_BITS,
    WRITE_DELAY,
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

__all__ = ["HIGHEST", "MEMORY_WORDS", "ROOT_STEPS", "SAMPLES", "FrontProgram"]

MEMORY_WORDS = 1 << ADDRESS_BITS
"""Words of the memory of numbers, and of that of factors."""
ROOT_STEPS = 24
"""Bits of a root before it is rounded: half of those of a filter's sum."""
HIGHEST = (1 << 11) - 1
"""No feature is more: the logarithm of 32 bits is 1,420 steps of 1/64."""
SAMPLES = 512
"""Where the oldest sample is; numbers of the transform are in front of it."""
M, K, C, J, L = Register.M, Register.K, Register.C, Register.J, Register.L
LOW, HALF, HIGH, TOP = Slice.LOW, Slice.HALF, Slice.HIGH, Slice.TOP


class FrontProgram(SumWriter):
    """Instructions and constants of the front end, for features that become codes.

    Numbers lie in words of 16 bits, wider ones in two of them. Numbers of the transform are in
    front, real parts in even words; behind them the samples of a window, then what is kept and
    computed for each channel.

    Parameters
    ----------
    front
        The front end.
    mult
        What a feature is multiplied by at last, of at most 32 bits.

    Attributes
    ----------
    code
        The instructions.
    words
        The factors.
    take
        Address of the instruction that takes samples.
    clear_again
        Address of the first one that clears estimates of noise.
    """

    def __init__(self, front: MicroFrontend, mult: int) -> None:
        self.front = front
        places, free = {}, SAMPLES + front.points
        for name in ("noise", "noise_high", "signal", "signal_high", "scaled", "scaled_high"):
            places[name] = free
            free += front.channels
        super().__init__(FrontWords(front, mult), places, free)
        self._begin()
        self._window()
        for n in range(len(front.fft.stages)):
            self._stage(n)
        self._apart()
        self._power()
        self._channels()
        self._noise()
        self._features()
        self.code: tuple[Instruction, ...] = tuple(self._program.code)
        self.words = tuple(self._words.words)
        assert len(self.words) <= MEMORY_WORDS, f"{len(self.words)} factors"
        self.numbers = self._next
        assert self.numbers <= MEMORY_WORDS, f"{self.numbers} numbers"

    def _begin(self) -> None:
        """Clear what is kept, make constants, take samples."""
        program, points = self._program, self.front.points
        self._clear("half", base=Base.HALF)
        program.set(M, 0)
        with program.loop(M, 1, points):
            self._clear(Place(SAMPLES, M))
        # 2**14 * 2 is 1 in the upper half
        self._add("half", 2, base=Base.ZERO, to="half_up")
        self._add("half", 2, base=Base.ZERO, to="one", bits=HALF)
        self.clear_again = program.here
        program.set(M, 0)
        with program.loop(M, 1, 2 * self.front.channels):
            self._clear(Place(self._at("noise"), M))
        self._add("one", 32, base=Base.ZERO, to="32")
        self.take = program.here + WRITE_DELAY - 1
        program.add(Instruction(kind=Kind.TAKE))
        assert program.code[self.take].kind == Kind.TAKE, "a gap of another length"

    def _clear(self, to: str | Place, base: Base = Base.ZERO) -> None:
        """Write a constant, 0 by default."""
        self._program.add(
            Instruction(
                op=Op.ADD, base=base, word=self._word(0), writes=True, target=self._read(to)
            )
        )

    def _window(self) -> None:
        """Weigh samples, put them in the transform's order, and make them as large as they may be.

        The window moves on meanwhile.
        """
        program, front = self._program, self.front
        program.set(K, 0)
        with program.loop(K, 1, front.points):
            self._add(
                Place(SAMPLES, Register.REVERSED), self._table("window", Register.REVERSED),
                base=Base.ZERO, signed=True, to=Place(0, K), bits=HALF,
            )  # fmt: skip
        program.set(M, 0)
        with program.loop(M, 1, front.window - front.hop):
            self._add(Place(SAMPLES + front.hop, M), base=Base.ZERO, to=Place(SAMPLES, M))
        # sums of both signs: that below 0 has no bits
        program.set(M, 0)
        with program.loop(M, 1, front.points):
            self._add(Place(0, M), base=Base.ZERO, signed=True)
            self._add(Place(0, M), base=Base.ZERO, signed=True, minus=True, load=Load.SIZES)
            self._add("one", op=Op.HOLD, load=Load.SIZES)
        self._add("one", 0, base=Base.SIZES, load=Load.COUNT)
        self._repeat(15, Op.NORMALIZE)
        self._add("one", 0, base=Base.COUNT, to="shift", bits=HIGH)
        program.set(M, 0)
        with program.loop(M, 1, front.points):
            self._add(Place(0, M), Factor.POWER, base=Base.ZERO, signed=True, to=Place(0, M))

    def _divide(self, radix: int) -> None:
        """Divide all numbers of the transform."""
        program, front = self._program, self.front
        program.set(M, 0)
        with program.loop(M, 1, front.points):
            self._add(Place(0, M), front.fft.one // radix, base=Base.HALF, signed=True,
                      to=Place(0, M), bits=HALF)  # fmt: skip

    def _turn(
        self, re: Place, im: Place, real: Place, imag: Place, to: tuple[Place, Place]
    ) -> None:
        """Multiply a complex number by a root of one."""
        both = (re, real, im, imag, True), (re, imag, im, real, False)
        for place, (first, by, second, other, minus) in zip(to, both, strict=True):
            self._add(first, by, base=Base.HALF, signed=True, signed_factor=True)
            self._add(
                second, other, minus=minus, signed=True, signed_factor=True, to=place, bits=HALF
            )

    def _sum(
        self, a: Place, b: Place, to: Place, *, minus: bool = False, times: int = 1
    ) -> None:  # fmt: skip
        """Add or subtract a number of the transform, or twice that."""
        self._add(a, base=Base.ZERO, signed=True)
        self._add(b, times, minus=minus, signed=True, to=to)

    def _stage(self, number: int) -> None:
        """Compute a stage of the complex transform, of radix 4."""
        program, front = self._program, self.front
        stage = front.fft.stages[number]
        assert stage.radix == 4, "a stage of another radix"
        self._divide(4)
        # a register for the first of four numbers, another for the angle of the second
        four = [(Place(2 * q * stage.span, M), Place(2 * q * stage.span + 1, M)) for q in range(4)]
        program.set(M, 0)
        with program.loop(M, 6 * stage.span, front.points):
            program.set(J, 0)
            with program.loop(J, 2 * stage.stride, 2 * stage.stride * stage.span):
                self._combine(four)
                program.step(M, 2)

    def _combine(self, four: Sequence[tuple[Place, Place]]) -> None:
        """Turn three of four numbers by their angles, and transform all of them."""
        first, second, third = turned = [
            (Place(self._at(f"{name}_re")), Place(self._at(f"{name}_im")))
            for name in ("first", "second", "third")
        ]
        for q, by in enumerate((J, Register.J2, Register.J3), 1):
            real = self._table("cosines", by)
            imag = self._table("cosines", by, self.front.points // 4)
            self._turn(*four[q], real, imag, turned[q - 1])
        # sums and differences of the even ones are in the first two, then those of the odd ones
        for part in range(2):
            self._sum(four[0][part], second[part], four[1][part], minus=True)
            self._sum(four[0][part], second[part], four[0][part])
            self._sum(first[part], third[part], four[2][part])
            self._sum(first[part], third[part], four[3][part], minus=True)
        rest_re, rest_im = four[3]
        for part in range(2):
            self._sum(four[0][part], four[2][part], four[0][part])
        self._sum(four[1][0], rest_im, four[1][0])
        self._sum(four[1][1], rest_re, four[1][1], minus=True)
        # the differences, of the sums
        for part in range(2):
            self._sum(four[0][part], four[2][part], four[2][part], minus=True, times=2)
        self._sum(four[1][0], rest_im, first[0], minus=True, times=2)
        self._sum(four[1][1], rest_re, rest_im, times=2)
        self._add(first[0], base=Base.ZERO, to=rest_re)

    def _apart(self) -> None:
        """Make the transform of real samples of that of pairs of them: all bins but the first."""
        program, front = self._program, self.front
        self._divide(2)
        re, im, other_re, other_im = Place(0, M), Place(1, M), Place(0, K), Place(1, K)
        program.set(M, 2)
        program.set(K, front.points - 2)
        program.set(J, 1)
        half = 1 << LIMB - 2
        rest = Place(self._at("rest_re")), Place(self._at("rest_im"))
        turned = Place(self._at("turned_re")), Place(self._at("turned_im"))
        with program.loop(J, 1, front.points // 4 + 1):
            self._sum(re, other_re, rest[0], minus=True)
            self._sum(im, other_im, rest[1])
            self._sum(re, other_re, self._read("sum_re"))
            self._sum(im, other_im, self._read("sum_im"), minus=True)
            self._turn(
                *rest,
                self._table("cosines", J, front.points // 4),
                self._table("cosines", J, front.points // 2),
                turned,
            )
            for part, first, second in (("re", re, other_re), ("im", im, other_im)):
                name = f"turned_{part}"
                # a middle bin is both: what is written last stays
                self._add(f"sum_{part}", half, base=Base.ZERO, signed=True)
                self._add(name, half, signed=True, to=first, bits=HALF)
                is_im = part == "im"
                self._add(f"sum_{part}", half, base=Base.ZERO, signed=True, minus=is_im)
                self._add(name, half, signed=True, minus=not is_im, to=second, bits=HALF)
            program.step(M, 2)
            program.step(K, -2)

    def _power(self) -> None:
        """Replace bins by their power, the lower half first."""
        program, filters = self._program, self.front.bank.filters
        program.set(M, 2 * filters[0].first)
        re, im = Place(0, M), Place(1, M)
        with program.loop(M, 2, 2 * (filters[-1].first + len(filters[-1].weights))):
            self._add(re, op=Op.HOLD, signed=True, load=Load.KEPT)
            self._add(re, Factor.KEPT, base=Base.ZERO, signed=True)
            self._add(im, op=Op.HOLD, signed=True, load=Load.KEPT)
            self._add(im, Factor.KEPT, signed=True, to=re)
            self._write(im, HIGH)

    def _channels(self) -> None:
        """Sum the power of each channel, and take its root."""
        program = self._program
        program.set(C, 0)
        with program.loop(C, 1, self.front.channels):
            # upper halves first; a sum of none begins it
            for half in (1, 0):
                for load, name in (
                    (Load.M, "firsts"), (Load.J, "starts"), (Load.L, "lengths"),
                ):  # fmt: skip
                    self._add("one", self._table(name, C), op=Op.HOLD, load=load)
                self._add("one", 0, base=Base.ZERO if half else Base.UP)
                with program.loop(L, -1, 0):
                    program.step(M, 2)
                    program.step(J, 1)
                    self._add(Place(half, M).moved(M, 2), Place(0, J).moved(J, 1))
            self._repeat(ROOT_STEPS, Op.ROOT)
            self._add("one", 0, base=Base.ROOT)
            self._add("shift", op=Op.HOLD, load=Load.COUNT)
            self._repeat(15, Op.SHIFT)
            self._write_wide("signal", by=C)
            # in the steps of the noise, 32 bits
            self._times("signal", 1 << SMOOTHING_BITS, by=C)
            self._write_wide("scaled", by=C)

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
