"""Numbers of decimal digits, as they are printed: a clock of microseconds, and a countdown."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Microseconds", "one_less"]


def one_less(value):
    """Return a number of decimal digits less one, of four bits each; behind 0 come nines."""
    found, borrow = [], C(1)
    for n in range(0, len(value), 4):
        digit = value[n : n + 4]
        found.append(Mux(borrow, Mux(digit == 0, 9, digit - 1), digit)[:4])
        borrow &= digit == 0
    return Cat(found)


class Microseconds(wiring.Component):
    """Count microseconds in decimal digits, which turn past to be printed while it stands still.

    Parameters
    ----------
    digits : int
        How many digits there are; it wraps.
    ticks, cycles : int
        So many microseconds are so many clock cycles; at most one per cycle.

    Members
    -------
    frozen : In(1)
        It stands still.
    turn : In(1)
        The highest digit becomes the lowest one; only while ``frozen``.
    top : Out(4)
        The highest digit.
    """

    def __init__(self, *, digits, ticks, cycles):
        if not 0 < ticks <= cycles:
            raise ValueError(f"{ticks} microseconds in {cycles} cycles cannot be counted")
        self.digits, self.ticks, self.cycles = digits, ticks, cycles
        super().__init__({"frozen": In(1), "turn": In(1), "top": Out(4)})

    def elaborate(self, platform):
        m = Module()
        timer, tick = Signal(range(self.cycles)), Signal()
        following = Signal(signed(len(timer) + 2))
        m.d.comb += following.eq(timer + self.ticks - self.cycles)
        with m.If(~self.frozen):
            m.d.sync += [timer.eq(timer + self.ticks), tick.eq(following >= 0)]
            with m.If(following >= 0):
                m.d.sync += timer.eq(following)
        value = Signal(4 * self.digits)
        m.d.comb += self.top.eq(value[-4:])
        carry = tick & ~self.frozen
        for n in range(self.digits):
            digit, below = value.word_select(n, 4), value.word_select((n - 1) % self.digits, 4)
            with m.If(self.turn):
                m.d.sync += digit.eq(below)
            with m.Elif(carry):
                m.d.sync += digit.eq(Mux(digit == 9, 0, digit + 1))
            carry = carry & (digit == 9)
        return m
