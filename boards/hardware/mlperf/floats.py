"""Float32 numbers that come byte by byte, as codes and as fixed-point numbers."""

from amaranth import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.host.floats import MANTISSA

__all__ = ["FloatReader"]

_SPARE_BITS = 3
"""Bits of a quotient beyond those of a code: numbers out of the format's range."""


class FloatReader(wiring.Component):
    """Read float32 numbers, lowest byte first: the mantissa is shifted, and divided bit by bit.

    Golden model: :class:`nnef_hw.host.floats.FloatReading`.

    Parameters
    ----------
    reading : FloatReading

    Members
    -------
    clear : In(1)
        Forget bytes, and that a number was out of range.
    store : In(1)
        Take ``byte``; only while not ``busy``.
    byte : In(8)
    busy : Out(1)
        A number is read.
    done : Out(1)
        ``code`` and ``real`` are those of a number, for one cycle.
    code : Out(bits)
    real : Out(16)
        Magnitude, and the sign above it.
    beyond : Out(1)
        A number was out of range since ``clear``.

    Attributes
    ----------
    latency : int
        Cycles from the last byte of a number to ``done``, at most.
    """

    def __init__(self, reading):
        self.reading = reading
        self.real_width = 16
        self.steps = reading.bits + _SPARE_BITS
        self.latency = 256 + self.steps + 3
        super().__init__({
            "clear": In(1),
            "store": In(1),
            "byte": In(8),
            "busy": Out(1),
            "done": Out(1),
            "code": Out(reading.bits),
            "real": Out(self.real_width),
            "beyond": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        reading = self.reading
        width = reading.width
        word = Signal(32)
        exponent, is_negative = word[23:31], word[31]
        index = Signal(2)
        # a magnitude at first, then what is above the least code, with room for its division
        rest = Signal(signed(max(width + 2, reading.half.bit_length() + self.steps + 2)))
        count = Signal(signed(10))
        inexact, step = Signal(), Signal(range(self.steps))
        quotient = Signal(self.steps)
        divisor = 2 * reading.half << self.steps - 1
        shift = reading.fraction - reading.real_bits
        magnitude = Signal(self.real_width)
        m.d.comb += magnitude.eq(rest[shift:][: self.real_width - 1] + rest[shift - 1])
        highest = (1 << reading.bits) - 1
        m.d.comb += self.code.eq(
            Mux(quotient > highest, highest, quotient) + reading.lo)

        with m.FSM() as fsm:
            m.d.comb += self.busy.eq(~fsm.ongoing("TAKE"))
            with m.State("TAKE"):
                with m.If(self.store):
                    m.d.sync += [word.eq(Cat(word[8:], self.byte)), index.eq(index + 1)]
                    with m.If(index == 3):
                        m.next = "PLACE"
            with m.State("PLACE"):
                mantissa = Cat(word[:23], exponent != 0)
                m.d.sync += [rest.eq(mantissa << width - MANTISSA), inexact.eq(0),
                             count.eq(reading.largest_exponent - exponent)]
                m.next = "SHIFT"
            with m.State("SHIFT"):
                m.d.sync += count.eq(count - 1)
                with m.If(count > 0):
                    m.d.sync += [rest.eq(rest >> 1), inexact.eq(inexact | rest[0])]
                with m.Else():
                    with m.If((count < 0) | magnitude[-1]):
                        m.d.sync += self.beyond.eq(1)
                    m.d.sync += [
                        self.real.eq(Cat(magnitude[:-1], is_negative)),
                        rest.eq(Mux(is_negative, -rest - inexact, rest) - reading.least),
                        quotient.eq(0), step.eq(0),
                    ]
                    m.next = "DIVIDE"
            with m.State("DIVIDE"):
                reached = rest >= divisor
                m.d.sync += [rest.eq((rest - Mux(reached, divisor, 0)) << 1), step.eq(step + 1),
                             quotient.eq(Cat(reached, quotient))]
                with m.If(rest < 0):
                    m.d.sync += rest.eq(rest)
                with m.If(step == self.steps - 1):
                    m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.eq(1)
                m.next = "TAKE"
        with m.If(self.clear):
            m.d.sync += [self.beyond.eq(0), index.eq(0)]
        assert len(word[:23]) + 1 == MANTISSA
        return m
