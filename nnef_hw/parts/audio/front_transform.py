"""The transform of a window, as instructions: samples to the power of bins."""

from __future__ import annotations

from collections.abc import Sequence

from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.parts.audio.front_words import LIMB
from nnef_hw.parts.audio.program import Base, Factor, Load, Op, Place, Register, Slice
from nnef_hw.parts.audio.sums import SumWriter

__all__ = ["SAMPLES", "TransformWriter"]

SAMPLES = 512
"""Where the oldest sample is; numbers of the transform are in front of it."""
M, K, J = Register.M, Register.K, Register.J
HALF, HIGH = Slice.HALF, Slice.HIGH


class TransformWriter(SumWriter):
    """Appends the window, the stages of a transform, and the power of its bins to a program.

    Attributes
    ----------
    front
        The front end.
    """

    front: MicroFrontend

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
