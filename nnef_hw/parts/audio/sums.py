"""Sums and products in instructions: numbers and factors by name, numbers of two words."""

from __future__ import annotations

from nnef_hw.parts.audio.front_words import FrontWords
from nnef_hw.parts.audio.program import (
    Base,
    Factor,
    Instruction,
    Load,
    Op,
    Place,
    Program,
    Register,
    Slice,
)

__all__ = ["SumWriter"]

_MANY = 5
"""Times from which on something is repeated in a loop."""
LOW, HALF, HIGH, TOP = Slice.LOW, Slice.HALF, Slice.HIGH, Slice.TOP


class SumWriter:
    """Appends instructions to a program, and gives numbers that it names a place.

    Parameters
    ----------
    words
        The factors.
    places
        Where numbers are that have a place already.
    free
        The first word of numbers that is free.
    """

    def __init__(self, words: FrontWords, places: dict[str, int], free: int) -> None:
        self._words = words
        self._program = Program()
        self._places = places
        self._next = free

    def _at(self, name: str) -> int:
        """Return where a number is that is computed once, or the first of a table of numbers."""
        if name not in self._places:
            self._places[name] = self._next
            self._next += 1
        return self._places[name]

    def _read(self, where: str | int | Place) -> Place:
        if isinstance(where, Place):
            return where
        return Place(where if isinstance(where, int) else self._at(where))

    def _word(self, factor: int | Place) -> Place:
        return factor if isinstance(factor, Place) else Place(self._words.constant(factor))

    def _table(self, name: str, by: Register = Register.NONE, at: int = 0) -> Place:
        return Place(self._words.tables[name] + at, by)

    def _add(
        self, where: str | int | Place, factor: int | Place | Factor = 1, *,
        base: Base = Base.SELF, minus: bool = False, signed: bool = False,
        signed_factor: bool = False, op: Op = Op.ADD, load: Load = Load.NONE,
        to: str | int | Place | None = None, bits: Slice = LOW,
    ) -> None:  # fmt: skip
        """Add a product to the sum, or to what it begins with; write bits of the sum."""
        self._program.add(Instruction(
            read=self._read(where), word=Place(0) if isinstance(factor, Factor)
            else self._word(factor), factor=factor if isinstance(factor, Factor) else Factor.WORD,
            base=base, minus=minus, signed=signed, signed_factor=signed_factor, op=op, load=load,
            writes=to is not None, target=Place(0) if to is None else self._read(to), bits=bits,
        ))  # fmt: skip

    def _write(self, to: str | int | Place, bits: Slice = LOW) -> None:
        """Write bits of the sum."""
        self._program.add(Instruction(writes=True, target=self._read(to), bits=bits))

    def _write_wide(self, to: str, bits: Slice = LOW, by: Register = Register.NONE) -> None:
        """Write 32 bits of the sum, from its first bit or from bit 15 on."""
        upper = {LOW: HIGH, HALF: TOP}[bits]
        self._write(Place(self._at(to), by), bits)
        self._write(Place(self._at(f"{to}_high"), by), upper)

    def _repeat(self, times: int, op: Op) -> None:
        """Do something to the sum several times; many times take two cycles each."""
        if times < _MANY:
            for _ in range(times):
                self._program.add(Instruction(op=op))
            return
        self._program.set(Register.L, times)
        with self._program.loop(Register.L, -1, 0):
            self._program.add(Instruction(op=op))

    def _shift(self, bits: int) -> None:
        """Shift the sum to the right."""
        self._repeat(bits, Op.HALVE)

    def _times(
        self, name: str, factor: int | Place | Factor, *, by: Register = Register.NONE,
        base: Base = Base.ZERO, minus: bool = False, signed_high: bool = False,
    ) -> None:  # fmt: skip
        """Multiply a number of two words; the sum so far counts ``2**16`` times if it is kept."""
        high, low = Place(self._at(f"{name}_high"), by), Place(self._at(name), by)
        self._add(high, factor, base=base, minus=minus, signed=signed_high)
        self._add(low, factor, base=Base.UP, minus=minus)
