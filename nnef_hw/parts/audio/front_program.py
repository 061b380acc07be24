"""The program of TensorFlow Lite Micro's audio front end, and the constants that it reads."""

from __future__ import annotations

from nnef_hw.arithmetic.audio.micro_frontend import (
    SMOOTHING_BITS,
    MicroFrontend,
)
from nnef_hw.parts.audio.front_features import FeatureWriter
from nnef_hw.parts.audio.front_transform import SAMPLES, TransformWriter
from nnef_hw.parts.audio.front_words import FrontWords
from nnef_hw.parts.audio.program import (
    ADDRESS_BITS,
    WRITE_DELAY,
    Base,
    Instruction,
    Kind,
    Load,
    Op,
    Place,
    Register,
    Slice,
)

__all__ = ["HIGHEST", "MEMORY_WORDS", "ROOT_STEPS", "FrontProgram"]

MEMORY_WORDS = 1 << ADDRESS_BITS
"""Words of the memory of numbers, and of that of factors."""
ROOT_STEPS = 24
"""Bits of a root before it is rounded: half of those of a filter's sum."""
HIGHEST = (1 << 11) - 1
"""No feature is more: the logarithm of 32 bits is 1,420 steps of 1/64."""
M, K, C, J, L = Register.M, Register.K, Register.C, Register.J, Register.L
LOW, HALF, HIGH, TOP = Slice.LOW, Slice.HALF, Slice.HIGH, Slice.TOP


class FrontProgram(TransformWriter, FeatureWriter):
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
