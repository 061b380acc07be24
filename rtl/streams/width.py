"""Width converter from a stream to one of more codes per beat."""

from amaranth import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["Pack"]


class Pack(wiring.Component):
    """Gather beats of ``in_lanes`` codes of a pixel; golden model: reshape with zero filling.

    Takes a beat per cycle and gives beats of ``lanes`` codes. The last beat of a pixel is filled up
    with zeros where ``channels`` is no multiple of ``lanes``.

    Members
    -------
    i, o : stream.Signature(beat_layout)
    """

    def __init__(self, part: parts.Pack):
        self.part = part
        codes = {"bits": part.bits, "signed": part.signed}
        super().__init__({
            "i": In(stream.Signature(beat_layout(**codes, lanes=part.in_lanes))),
            "o": Out(stream.Signature(beat_layout(**codes, lanes=part.lanes))),
        })

    def elaborate(self, platform):
        m = Module()
        # A beat is what a code would be if there were one in each.
        code = self.i.payload.data.as_value()
        channels = self.part.channels // self.part.in_lanes
        lanes = self.part.lanes // self.part.in_lanes
        blocks = -(-channels // lanes)
        used = min(lanes, channels)
        short = channels - (blocks - 1) * lanes  # beats in a pixel's last one
        lane = Signal(used, init=1)  # of the next beat, one-hot
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

        # What stands in a register before its beat is accepted does not matter: neither data
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
            for n in range(used):
                result = self.o.payload.data.as_value().word_select(n, len(code))
                held = gathered[n] if n < used - 1 else code
                if n == short - 1:
                    m.d.sync += result.eq(Mux(lane[n], code, held))
                else:
                    m.d.sync += result.eq(Mux(lane[short - 1], 0, held) if n >= short else held)
        return m
