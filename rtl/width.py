"""Width converters between streams of one code per beat and of several."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.rtl.stream import beat_layout

__all__ = ["Pack", "Unpack"]


class Pack(wiring.Component):
    """Gather ``lanes`` one-code beats of a pixel into one; golden model: reshape with zero filling.

    Takes a code per cycle. The last beat of a pixel is filled up with zeros where ``channels`` is
    no multiple of ``lanes``.

    Parameters
    ----------
    channels, lanes : int
        Codes per pixel, codes per output beat.
    bits, signed : int, bool
        Format of a code.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    latency : int
        Cycles from the accepted code that completes a beat to ``o.valid``.
    """

    latency = 1

    def __init__(self, *, channels, lanes, bits, signed):
        self.channels = channels
        self.lanes = lanes
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=1))),
            "o": Out(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        code = self.i.payload.data[0]
        blocks = -(-self.channels // self.lanes)
        used = min(self.lanes, self.channels)
        short = self.channels - (blocks - 1) * self.lanes  # codes of a pixel's last beat
        lane = Signal(used, init=1)  # of the next code, one-hot
        last_block = Const(1)
        complete = Signal()
        free = Signal()
        m.d.comb += [
            free.eq(~self.o.valid | self.o.ready),
            self.i.ready.eq(~complete | free),
        ]
        accept = self.i.valid & self.i.ready
        if short < used:
            block = Signal(range(blocks))
            last_block = block == blocks - 1
            with m.If(accept & complete):
                m.d.sync += block.eq(Mux(last_block, 0, block + 1))
        m.d.comb += complete.eq(lane[-1] | (lane[short - 1] & last_block))
        with m.If(accept):
            m.d.sync += lane.eq(Mux(complete, 1, lane << 1))

        # What stands in a register before its code is accepted does not matter: neither data
        # register waits for the input to be valid.
        gathered = [Signal.like(code, name=f"lane{n}", reset_less=True) for n in range(used - 1)]
        for n, register in enumerate(gathered):
            with m.If(lane[n]):
                m.d.sync += register.eq(code)
        with m.If(free):
            m.d.sync += [
                self.o.valid.eq(self.i.valid & complete),
                self.o.payload.last.eq(self.i.payload.last),
            ]
            for n, given in enumerate(self.o.payload.data[:used]):
                held = gathered[n] if n < used - 1 else code
                if n == short - 1:
                    m.d.sync += given.eq(Mux(lane[n], code, held))
                else:
                    m.d.sync += given.eq(Mux(lane[short - 1], 0, held) if n >= short else held)
        return m


class Unpack(wiring.Component):
    """Split beats of ``lanes`` codes into one-code beats; golden model: reshape.

    Gives a code per cycle; filling lanes beyond ``channels`` are dropped.

    Parameters
    ----------
    channels, lanes : int
        Codes per pixel, codes per input beat.
    bits, signed : int, bool
        Format of a code.

    Members
    -------
    i, o : stream.Signature(beat_layout)

    Attributes
    ----------
    latency : int
        Cycles from an accepted beat to its first ``o.valid``.
    """

    latency = 1

    def __init__(self, *, channels, lanes, bits, signed):
        self.channels = channels
        self.lanes = lanes
        super().__init__({
            "i": In(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=lanes))),
            "o": Out(stream.Signature(beat_layout(bits=bits, signed=signed, lanes=1))),
        })

    def elaborate(self, platform):
        m = Module()
        held = Signal.like(self.i.payload, reset_less=True)
        channel = Signal(range(self.channels))
        lane = Signal(range(self.lanes))
        final = Signal()

        m.d.comb += [
            final.eq((lane == self.lanes - 1) | (channel == self.channels - 1)),
            self.i.ready.eq(~self.o.valid | (self.o.ready & final)),
            self.o.payload.data[0].eq(held.data[lane]),
            self.o.payload.last.eq(held.last & final),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [
                channel.eq(Mux(channel == self.channels - 1, 0, channel + 1)),
                lane.eq(Mux(final, 0, lane + 1)),
            ]
            with m.If(final):
                m.d.sync += self.o.valid.eq(0)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [held.eq(self.i.payload), self.o.valid.eq(1)]
        return m
