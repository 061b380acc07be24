"""A stream some codes later, as a branch that waits for rows of later steps needs it."""

from amaranth import *
from amaranth.lib import wiring

from nnef_hw import parts
from nnef_hw.rtl.streams.stream import code_streams

__all__ = ["Delay"]


class Delay(wiring.Component):
    """Give a code some times after reset, then hand on the input; golden model: that.

    A beat per cycle, the first one in the second cycle after reset. ``o`` is ``i`` behind them, in
    the same cycle, but for the ends of its frames. Nothing is given during a reset.

    Members
    -------
    i : In(stream.Signature(beat_layout))
        Waits until the codes have left.
    o : Out(stream.Signature(beat_layout))
    """

    def __init__(self, part: parts.Delay):
        self.part = part
        super().__init__(code_streams(part))

    def elaborate(self, platform):
        m = Module()
        part = self.part
        present, passing = Signal(), Signal()
        position = Signal(range(part.count))
        place = Signal(range(part.frame))
        final = place == part.frame - 1
        code = Const(part.code % (1 << part.bits), part.bits)
        m.d.comb += [
            self.o.valid.eq(Mux(passing, self.i.valid, present)),
            self.o.payload.data.eq(Mux(passing, self.i.payload.data.as_value(), code)),
            self.o.payload.last.eq(final),
            self.i.ready.eq(passing & self.o.ready),
        ]
        m.d.sync += present.eq(1)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += place.eq(Mux(final, 0, place + 1))
        with m.If(~passing & present & self.o.ready):
            m.d.sync += [position.eq(position + 1), passing.eq(position == part.count - 1)]
        return m
