"""UART receiver and transmitter: 8 data bits, no parity, one stop bit."""

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces.uart import MIN_DIVIDER

__all__ = ["UartReceiver", "UartTransmitter", "receiver_latency"]


def receiver_latency(divider):
    """Latency of an :class:`UartReceiver`, which its caller may need before there is one."""
    return 9 * divider + divider // 2 + 3


def _check_divider(name, divider):
    if not isinstance(divider, int) or divider < MIN_DIVIDER:
        raise ValueError(f"{name} divider must be an integer of at least {MIN_DIVIDER}, "
                         f"not {divider!r}")


class UartReceiver(wiring.Component):
    """Bytes from an asynchronous line, each bit sampled once in its middle.

    A start bit that is gone by its middle is noise and ignored; a byte whose stop bit is low is
    dropped. The line cannot be stalled: a byte not taken before the next one arrives is lost.

    Parameters
    ----------
    divider : int
        Clock cycles per bit, at least 4.

    Members
    -------
    rx : In(1)
        The line, asynchronous, idle high.
    o : Out(stream.Signature(8))
        Received bytes; the payload changes while it waits only when a byte is lost.

    Attributes
    ----------
    latency : int
        Cycles from the falling edge of the start bit to ``o.valid``, give or take one.
    """

    def __init__(self, divider):
        _check_divider("UartReceiver", divider)
        self.divider = divider
        self.latency = receiver_latency(divider)
        super().__init__({"rx": In(1), "o": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules.synchronizer = cdc.FFSynchronizer(self.rx, line, init=1)

        timer = Signal(range(self.divider))
        bits_left = Signal(range(11))
        shift = Signal(8)
        stopped = Signal()

        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

        with m.If(bits_left == 0):
            m.d.sync += timer.eq(self.divider // 2 - 1)
            with m.If(~line):
                m.d.sync += bits_left.eq(10)
        with m.Elif(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Else():
            m.d.sync += [timer.eq(self.divider - 1), bits_left.eq(bits_left - 1)]
            with m.If((bits_left == 10) & line):
                m.d.sync += bits_left.eq(0)
            with m.If(bits_left == 1):
                m.d.comb += stopped.eq(line)
            with m.Else():
                m.d.sync += shift.eq(Cat(shift[1:], line))

        with m.If(stopped):
            m.d.sync += self.o.valid.eq(1)
        m.d.comb += self.o.payload.eq(shift)
        return m


class UartTransmitter(wiring.Component):
    """Bytes onto an asynchronous line, back to back when they come that fast.

    Parameters
    ----------
    divider : int
        Clock cycles per bit, at least 4.

    Members
    -------
    i : In(stream.Signature(8))
        Bytes to send; one is accepted every ``10 * divider`` cycles. ``ready`` is a register.
    tx : Out(1)
        The line, registered, idle high.

    Attributes
    ----------
    latency : int
        Cycles from an accepted byte to the falling edge of its start bit.
    """

    latency = 1

    def __init__(self, divider):
        _check_divider("UartTransmitter", divider)
        self.divider = divider
        super().__init__({"i": In(stream.Signature(8)), "tx": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        timer = Signal(range(self.divider))
        bits_left = Signal(range(11))
        shift = Signal(9)
        idle = Signal(init=1)
        m.d.comb += self.i.ready.eq(idle)
        m.d.sync += idle.eq((bits_left == 0) & (timer <= 1) & ~(self.i.valid & idle))

        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.Elif(bits_left != 0):
            m.d.sync += [
                timer.eq(self.divider - 1),
                bits_left.eq(bits_left - 1),
                Cat(self.tx, shift).eq(Cat(shift, 1)),
            ]
        with m.Elif(self.i.valid & idle):
            m.d.sync += [
                timer.eq(self.divider - 1),
                bits_left.eq(9),
                self.tx.eq(0),
                shift.eq(Cat(self.i.payload, 1)),
            ]
        return m
