"""SPI as host link, for microcontrollers: the board is the peripheral, in mode 0."""

from amaranth import *
from amaranth.lib import cdc, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards.interfaces.spi import MIN_SCK_CYCLES

__all__ = ["SpiPhy"]


class SpiPhy(wiring.Component):
    """SPI peripheral as phy: mode 0, most significant bit first, sampled with the board's clock.

    The host clocks bytes in both directions at once. Where the board has nothing to say it sends 0,
    which is no start of a packet; a reply is clocked out with bytes of 0, which the board ignores.

    Members
    -------
    o, i
        Bytes from and to the host, see :mod:`.phy`.
    sck, copi, cs_n : In(1)
        Wires from the host, asynchronous; a period of ``sck`` takes at least ``MIN_SCK_CYCLES``. A
        byte is given up when ``cs_n`` rises.
    cipo : Out(1)
        Wire to the host; changes with the falling edge of ``sck``.
    """

    byte_cycles = 8 * MIN_SCK_CYCLES
    latency = 8 * MIN_SCK_CYCLES + 4

    def __init__(self):
        super().__init__({
            "o": Out(stream.Signature(8)),
            "i": In(stream.Signature(8)),
            "sck": In(1),
            "copi": In(1),
            "cs_n": In(1, init=1),
            "cipo": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        sck, copi, cs_n = Signal(), Signal(), Signal(init=1)
        m.submodules.sck = cdc.FFSynchronizer(self.sck, sck)
        m.submodules.copi = cdc.FFSynchronizer(self.copi, copi)
        m.submodules.cs_n = cdc.FFSynchronizer(self.cs_n, cs_n, init=1)

        before = Signal()
        rise, fall = sck & ~before, ~sck & before
        bits = Signal(range(8))
        received = Signal(8)
        sending = Signal(8)
        waiting = Signal(8)
        full = Signal()
        arrived = Signal()
        m.d.sync += [before.eq(sck), arrived.eq(0)]
        m.d.comb += [self.cipo.eq(sending[-1]), self.o.payload.eq(received)]

        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(arrived):
            m.d.sync += self.o.valid.eq(1)

        with m.If(cs_n):
            # the first bit has to be there before the first edge
            m.d.sync += [bits.eq(0), sending.eq(0)]
        with m.Else():
            with m.If(rise):
                m.d.sync += [received.eq(Cat(copi, received)), bits.eq(bits + 1)]
                m.d.sync += arrived.eq(bits == 7)
            with m.If(fall):
                m.d.sync += sending.eq(sending << 1)
                with m.If(bits == 0):
                    m.d.sync += [sending.eq(Mux(full, waiting, 0)), full.eq(0)]

        m.d.comb += self.i.ready.eq(~full)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [waiting.eq(self.i.payload), full.eq(1)]
        return m
