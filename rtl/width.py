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
        channel = Signal(range(self.channels))
        lane = Signal(range(self.lanes))
        gathered = [Signal.like(code, name=f"lane{n}") for n in range(self.lanes - 1)]
        complete = Signal()
        accept = Signal()

        m.d.comb += [
            complete.eq((lane == self.lanes - 1) | (channel == self.channels - 1)),
            self.i.ready.eq(~complete | ~self.o.valid | self.o.ready),
            accept.eq(self.i.valid & self.i.ready),
        ]
        with m.If(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        with m.If(accept):
            m.d.sync += [
                channel.eq(Mux(channel == self.channels - 1, 0, channel + 1)),
                lane.eq(Mux(complete, 0, lane + 1)),
            ]
            for n, register in enumerate(gathered):
                with m.If(complete):
                    m.d.sync += register.eq(0)
                with m.Elif(lane == n):
                    m.d.sync += register.eq(code)
            with m.If(complete):
                m.d.sync += [self.o.valid.eq(1), self.o.payload.last.eq(self.i.payload.last)]
                for n in range(self.lanes):
                    held = gathered[n] if n < self.lanes - 1 else 0
                    m.d.sync += self.o.payload.data[n].eq(Mux(lane == n, code, held))
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
