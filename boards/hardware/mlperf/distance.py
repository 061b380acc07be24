"""The mean of squared differences between an input and a result, in decimal digits."""

from amaranth import *
from amaranth.lib import memory, wiring
from amaranth.lib.wiring import In, Out

__all__ = ["Distance"]

_READ_CYCLES = 4
"""Cycles until code, and then its number, have come from their memories."""


class Distance(wiring.Component):
    """Sum squares of differences, one bit of one factor per cycle, then find the mean's digits.

    Golden model: ``DistanceBenchmark.results`` of :mod:`nnef_hw.host.benchmarks`.

    Parameters
    ----------
    numbers : Sequence[int]
        Signed number of each pattern of a code's bits.
    count : int
        Codes of a result, and numbers of an input.
    digits : int
        Decimal digits.
    unit : int
        Sum of which the highest digit is 1.
    first : int
        Sum to begin with: half a unit of the lowest digit.

    Members
    -------
    clear, store : In(1)
        Begin with the first number; keep ``real`` as the next one.
    real : In(16)
        A number of the input: magnitude, and the sign above it.
    start : In(1)
        Measure.
    busy : Out(1)
        It is measured.
    beyond : Out(1)
        The mean has too many digits.
    next_code : Out(1)
        The next code of the result is wanted.
    code : In(code)
        Code of the result, two cycles later.
    digit : Out(4)
    push : Out(1)
        ``digit`` is the next one, highest first, for one cycle.

    Attributes
    ----------
    latency : int
        Cycles from ``start`` to the last digit, at most.
    """

    def __init__(self, numbers, *, count, digits, unit, first):
        self.numbers, self.count, self.digits = list(numbers), count, digits
        self.unit, self.first = unit, first
        self.latency = count * (_READ_CYCLES + 21) + 11 * digits
        super().__init__({
            "clear": In(1),
            "store": In(1),
            "real": In(16),
            "start": In(1),
            "busy": Out(1),
            "beyond": Out(1),
            "next_code": Out(1),
            "code": In((len(self.numbers) - 1).bit_length()),
            "digit": Out(4),
            "push": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.reals = reals = memory.Memory(shape=16, depth=self.count, init=[])
        m.submodules.numbers = numbers = memory.Memory(
            shape=signed(16), depth=len(self.numbers), init=self.numbers)
        write, read, table = reals.write_port(), reals.read_port(), numbers.read_port()
        place, index = Signal(range(self.count)), Signal(range(self.count))
        m.d.comb += [
            write.addr.eq(place), write.data.eq(self.real), write.en.eq(self.store),
            read.addr.eq(index), read.en.eq(~self.store), table.addr.eq(self.code),
        ]
        with m.If(self.store):
            m.d.sync += place.eq(place + 1)
        with m.If(self.clear):
            m.d.sync += place.eq(0)

        difference = Signal(signed(18))
        factor, shifted = Signal(17), Signal(34)
        total = Signal(max((10 * self.unit).bit_length() + 1, len(shifted) + 2))
        wait, left = Signal(range(_READ_CYCLES)), Signal(range(self.digits))
        magnitude = Cat(read.data[:15], C(0, 1)).as_signed()
        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("IDLE"))
            with m.State("IDLE"):
                with m.If(self.start):
                    m.d.sync += [index.eq(0), wait.eq(0), total.eq(self.first), left.eq(0),
                                 self.digit.eq(0), self.beyond.eq(0)]
                    m.next = "READ"
            with m.State("READ"):
                m.d.sync += [
                    wait.eq(wait + 1),
                    difference.eq(table.data - Mux(read.data[15], -magnitude, magnitude)),
                ]
                with m.If(wait == _READ_CYCLES - 1):
                    m.d.sync += wait.eq(0)
                    m.next = "SIGN"
            with m.State("SIGN"):
                absolute = Mux(difference < 0, -difference, difference)
                m.d.sync += [factor.eq(absolute), shifted.eq(absolute[:17])]
                m.next = "SQUARE"
            with m.State("SQUARE"):
                m.d.sync += [factor.eq(factor >> 1), shifted.eq(shifted << 1)]
                with m.If(factor[0]):
                    m.d.sync += total.eq(total[:-1] + shifted)
                with m.If(total[-1]):
                    m.d.sync += self.beyond.eq(1)
                with m.If(factor == 0):
                    m.d.comb += self.next_code.eq(1)
                    m.d.sync += index.eq(index + 1)
                    m.next = "READ"
                    with m.If(index == self.count - 1):
                        m.next = "DIGIT"
            with m.State("DIGIT"):
                with m.If(total >= self.unit):
                    m.d.sync += [total.eq(total - self.unit), self.digit.eq(self.digit + 1)]
                    with m.If(self.digit == 9):
                        m.d.sync += self.beyond.eq(1)
                        m.next = "IDLE"
                with m.Else():
                    m.d.comb += self.push.eq(1)
                    m.d.sync += [total.eq((total << 3) + (total << 1)), self.digit.eq(0),
                                 left.eq(left + 1)]
                    with m.If(left == self.digits - 1):
                        m.next = "IDLE"
        return m
